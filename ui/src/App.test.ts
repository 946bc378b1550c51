import type { ErrorCode } from "./lib/generated/contract";
import { fireEvent, render, screen, waitFor, within } from "@testing-library/svelte";
import { beforeAll, beforeEach, expect, test, vi } from "vitest";
import App from "./App.svelte";
import { FakeBackend } from "./lib/backend/fake";
import { FILES, SENTENCES } from "./lib/backend/fake-data";
import { Steno } from "./lib/steno.svelte";
import { t } from "./lib/text";

// jsdom has no canvas: the chart is looked at in a real browser.
vi.mock("uplot", () => ({
  default: class {
    setData() {}
    setSize() {}
    destroy() {}
  },
}));

let backend: FakeBackend;
let steno: Steno;

beforeAll(() => {
  // What jsdom lacks.
  HTMLElement.prototype.scrollIntoView = () => {};
  HTMLDialogElement.prototype.showModal = function () {
    this.open = true;
  };
  HTMLDialogElement.prototype.close = function () {
    this.open = false;
  };
  HTMLElement.prototype.hidePopover = () => {};
  HTMLMediaElement.prototype.load = () => {};
  HTMLMediaElement.prototype.pause = () => {};
  HTMLCanvasElement.prototype.getContext = () => null;
  globalThis.ResizeObserver = class {
    observe() {}
    unobserve() {}
    disconnect() {}
  };
});

beforeEach(() => {
  backend = new FakeBackend(1);
});

function show() {
  steno = new Steno(backend);
  render(App, { steno });
}

const found = (id: string) => screen.findByTestId(id);
const click = async (id: string) => fireEvent.click(await found(id));

async function finished() {
  await waitFor(() => expect(screen.getAllByTestId("job")[0]?.dataset["state"]).toBe("finished"), { timeout: 5000 });
}

test("a user's own recording waits for a word before the demonstration model gets it", async () => {
  show();
  await found("drop-zone");
  backend.drop(FILES.slice(0, 1));
  const question = await found("demonstration-question");
  expect(question.textContent).toContain(t.demonstration.text);
  expect(screen.queryAllByTestId("segment")).toEqual([]);
  await click("anyway");
  await finished();
  expect(screen.getAllByTestId("segment")[0]?.textContent).toContain(SENTENCES[0]);
  expect((await found("demonstration-banner")).textContent).toContain(t.demonstration.banner);
});

test("the sample is transcribed at once, and so is everything with a real model", async () => {
  show();
  await click("sample");
  await finished();
  expect(screen.queryByTestId("demonstration-question")).toBeNull();
});

test("another model sets free what waited for it", async () => {
  show();
  await found("drop-zone");
  backend.drop(FILES.slice(0, 1));
  await found("demonstration-question");
  await fireEvent.change(await found("model"), { target: { value: "1" } });
  await finished();
  expect(screen.queryByTestId("demonstration-banner")).toBeNull();
});

test("a wrong file is named with its reason and does not push aside what is read", async () => {
  show();
  await click("sample");
  await finished();
  backend.drop([FILES[4] ?? ""]);
  await waitFor(() => expect(screen.getAllByTestId("job").length).toBe(2));
  const wrong = screen.getAllByTestId("job")[1] as HTMLElement;
  expect(wrong.textContent).toContain(t.errors.unknown_format);
  expect((await found("title")).textContent).toBe("sample.flac");
  await fireEvent.click(within(wrong).getByText("Agenda.pdf"));
  const failure = await found("failure");
  expect(failure.textContent).toContain("This is not a recording. Choose an audio or video file.");
});

test("a file in the way is replaced only when asked for", async () => {
  show();
  await click("sample");
  await finished();
  backend.saveFailure = { code: "output_exists", file: "/x/sample.srt", message: "There.", remedy: "Say so." };
  await click("save");
  const toast = await found("toast");
  expect(toast.textContent).toContain(t.errors.output_exists);
  expect(toast.textContent).toContain("/x/sample.srt");
  expect(backend.saved).toEqual([]);
  await click("toast-action");
  await waitFor(() => expect(backend.saved).toEqual([[1, "srt", "beside_replacing"]]));
});

test("stopping keeps what was written, and trying again starts over", async () => {
  backend = new FakeBackend(50);
  show();
  await click("sample");
  await screen.findAllByTestId("segment", {}, { timeout: 5000 });
  await click("stop");
  await found("partial");
  expect(screen.getAllByTestId("segment").length).toBeGreaterThan(0);
  await click("retry");
  await waitFor(() => expect(screen.queryByTestId("partial")).toBeNull());
});

test("closing asks first, and staying is what Escape means", async () => {
  show();
  await found("drop-zone");
  backend.emit({ kind: "close_requested", unfinished: 2, unsaved: [1] });
  await waitFor(() => expect(screen.getByTestId("closing").textContent).toContain(t.closing.unfinished(2)));
  await fireEvent(screen.getByTestId("closing"), new Event("cancel"));
  expect(backend.closed).toBe(false);
  backend.emit({ kind: "close_requested", unfinished: 0, unsaved: [1] });
  await click("close-anyway");
  await waitFor(() => expect(backend.closed).toBe(true));
});

test("without an engine the window says so, with the way out, and can look again", async () => {
  const engine = backend.engine;
  backend.show("no_engine");
  show();
  await waitFor(() => expect(screen.getByTestId("engine").textContent).toContain(t.engine.missing));
  expect(screen.getAllByText(/set STENO_ENGINE/).length).toBeGreaterThan(0);
  backend.engine = engine;
  await fireEvent.click(screen.getByRole("button", { name: t.engine.again, hidden: true }));
  await waitFor(() => expect(screen.getByTestId("engine").textContent).toContain("CPU, 4 threads"));
});

test("the memory of an idle engine is freed on request", async () => {
  show();
  await fireEvent.click(await found("free-memory"));
  await waitFor(() => expect(backend.freed).toBe(1));
});

test("files held over the window are counted", async () => {
  show();
  await found("drop-zone");
  backend.emit({ kind: "drag_over", files: 3 });
  expect((await found("veil")).textContent).toContain(t.drag(3));
  backend.emit({ kind: "drag_left" });
  await waitFor(() => expect(screen.queryByTestId("veil")).toBeNull());
});

test("arrow keys go through the list", async () => {
  show();
  await found("drop-zone");
  backend.drop(FILES.slice(0, 3));
  await waitFor(() => expect(screen.getAllByTestId("job").length).toBe(3));
  const rows = screen.getAllByTestId("job").map((job) => job.querySelector<HTMLElement>(".row"));
  rows[0]?.focus();
  await fireEvent.keyDown(rows[0] as HTMLElement, { key: "ArrowDown" });
  expect(document.activeElement).toBe(rows[1]);
  expect((await found("title")).textContent).toBe("Lecture 2, questions.mp3");
});

test("stages are announced, every step of the progress is not", async () => {
  const said: string[] = [];
  show();
  const region = await found("announcement");
  new MutationObserver(() => said.push(region.textContent ?? "")).observe(region, { subtree: true, childList: true, characterData: true });
  await click("sample");
  await finished();
  await waitFor(() => expect(said.at(-1)).toBe("sample.flac: Done"));
  expect(new Set(said).size).toBe(said.length);
});

test("two thousand events about one of three hundred recordings touch no other row", async () => {
  show();
  await found("drop-zone");
  backend.drop(Array.from({ length: 300 }, (_, index) => `/tapes/tape ${index + 1}.mp3`));
  await waitFor(() => expect(screen.getAllByTestId("job").length).toBe(300), { timeout: 10_000 });
  const touched = new Set<Node>();
  const observer = new MutationObserver((records) => {
    for (const { target } of records) touched.add((target instanceof Element ? target : target.parentElement)?.closest("li") ?? target);
  });
  observer.observe(screen.getByTestId("queue"), { subtree: true, childList: true, characterData: true, attributes: true });
  const job = steno.jobs[149];
  if (!job) throw new Error("there is no such job");
  const progress = { stage: "transcribe", duration: 2000, speed: 3, left: null } as const;
  for (let position = 0; position < 2000; position++) {
    backend.emit({ kind: "jobs", changed: [{ ...job, state: "running", progress: { ...progress, position } }], removed: [], order: null });
  }
  await waitFor(() => expect(screen.getAllByTestId("job")[149]?.dataset["state"]).toBe("running"));
  await waitFor(() => expect(screen.getByRole<HTMLProgressElement>("progressbar").value).toBeCloseTo(0.9995));
  expect([...touched]).toEqual([screen.getAllByTestId("job")[149]]);
}, 120_000);

test("all that is done is saved with one click, what can't be is named, the rest goes on", async () => {
  backend.settings.model = 1;
  show();
  await found("drop-zone");
  backend.drop(FILES.slice(0, 3));
  await waitFor(() => expect(screen.getAllByTestId("job").map((job) => job.dataset["state"])).toEqual(Array(3).fill("finished")), {
    timeout: 5000,
  });
  backend.saveFailure = { code: "output_exists", file: "/x/first.srt", message: "There.", remedy: "Say so." };
  await click("save-all");
  await waitFor(() => expect(backend.saved.map(([job]) => job)).toEqual([2, 3]));
  const toasts = await screen.findAllByTestId("toast");
  expect(toasts.map((toast) => toast.textContent)).toEqual([
    expect.stringContaining("/x/first.srt"),
    expect.stringContaining(t.save.doneAll(2)),
  ]);
  await click("remove-saved");
  await waitFor(() => expect(screen.getAllByTestId("job").length).toBe(1));
});

test("what a save of many could not write is told once, replaced, or saved elsewhere", async () => {
  backend.settings.model = 1;
  show();
  await found("drop-zone");
  backend.drop(FILES.slice(0, 4));
  const states = () => screen.getAllByTestId("job").map((job) => job.dataset["state"]);
  await waitFor(() => expect(states()).toEqual(Array(4).fill("finished")), { timeout: 5000 });
  const failure = (code: ErrorCode, file: string) => ({ code, file, message: "There.", remedy: "Do this." });
  backend.saveFailures.set(1, failure("output_exists", "/x/first.srt"));
  backend.saveFailures.set(2, failure("output_exists", "/x/second.srt"));
  backend.saveFailures.set(3, failure("disk_full", "/x/third.srt"));
  await click("save-all");
  await found("close-save-report");
  const report = await found("save-report");
  expect(report.textContent).toContain(t.save.notAll(3));
  expect(report.textContent).toContain(t.save.doneAll(1));
  for (const text of ["/x/first.srt", "/x/second.srt", "/x/third.srt", `${t.errors.output_exists} (2)`, `${t.errors.disk_full} (1)`]) {
    expect(report.textContent).toContain(text);
  }
  expect(screen.queryAllByTestId("toast").length).toBe(0);
  await click("show-written");
  expect(backend.shownInFolder).toEqual([4]);
  // What was not written can be saved again: it does not count as saved.
  expect((await found("save-all")).textContent).toContain("3");
  await click("replace-existing");
  await waitFor(() => expect(backend.saved.filter(([, , place]) => place === "beside_replacing").map(([job]) => job)).toEqual([1, 2]));
});

test("what could not be saved in several formats goes elsewhere", async () => {
  show();
  await click("sample");
  await finished();
  backend.saveFailures.set(1, { code: "output_unwritable", file: "/x/sample.srt", message: "No.", remedy: null });
  await click("save-as");
  await click("format-txt");
  await click("save-beside");
  await click("report-elsewhere");
  await waitFor(() => expect(backend.saved.length).toBeGreaterThan(0));
  expect(backend.saved.every(([job, , place]) => job === 1 && place === "ask")).toBe(true);
  await waitFor(() => expect(screen.queryByTestId("close-save-report")).toBeNull());
});

test("stopping all leaves nothing that could start", async () => {
  backend = new FakeBackend(50);
  backend.settings.model = 1;
  show();
  await found("drop-zone");
  backend.drop(FILES.slice(0, 3));
  await screen.findAllByTestId("segment", {}, { timeout: 5000 });
  await click("stop-all");
  await waitFor(() => expect(screen.getAllByTestId("job").map((job) => job.dataset["state"])).toEqual(Array(3).fill("cancelled")));
});

test("searching marks the words and goes from place to place", async () => {
  show();
  await click("sample");
  await finished();
  const shown: Element[] = [];
  HTMLElement.prototype.scrollIntoView = function () {
    shown.push(this);
  };
  const search = await found("search");
  await fireEvent.input(search, { target: { value: "harbour" } });
  const total = Math.ceil((20 - 2) / SENTENCES.length);
  await waitFor(() => expect(screen.getByTestId("matches").textContent).toBe(t.transcript.matches(1, total)));
  expect([...document.querySelectorAll("mark")].map((mark) => mark.textContent)).toEqual(Array(total).fill("harbour"));
  await fireEvent.keyDown(search, { key: "Enter" });
  await fireEvent.keyDown(search, { key: "Enter", shiftKey: true });
  await fireEvent.keyDown(search, { key: "Enter", shiftKey: true });
  expect(screen.getByTestId("matches").textContent).toBe(t.transcript.matches(total, total));
  expect(shown.at(-1)?.textContent).toContain("harbour");
  await fireEvent.keyDown(search, { key: "Escape" });
  expect(document.querySelectorAll("mark").length).toBe(0);
});

test("the order of what waits is changed by keyboard, and the next is taken by it", async () => {
  backend = new FakeBackend(50);
  backend.settings.model = 1;
  show();
  await found("drop-zone");
  backend.drop(FILES.slice(0, 4));
  await waitFor(() => expect(screen.getAllByTestId("job").length).toBe(4));
  const names = () => screen.getAllByTestId("job").map((job) => job.querySelector(".name")?.textContent);
  const before = names();
  const grips = await waitFor(() => {
    const found = screen.getAllByTestId("grip");
    expect(found.length).toBeGreaterThan(1);
    return found;
  });
  await fireEvent.keyDown(grips.at(-1) as HTMLElement, { key: "ArrowUp" });
  await waitFor(() => expect(names()).toEqual([before[0], before[1], before[3], before[2]]));
});

test("while the queue is paused nothing new is begun", async () => {
  backend.settings.model = 1;
  backend.paused = true;
  show();
  await found("drop-zone");
  backend.drop(FILES.slice(0, 2));
  await found("paused");
  await new Promise((done) => setTimeout(done, 50));
  expect(screen.getAllByTestId("job").map((job) => job.dataset["state"])).toEqual(["waiting", "waiting"]);
  await click("pause");
  await waitFor(() => expect(screen.getAllByTestId("job").map((job) => job.dataset["state"])).toEqual(["finished", "finished"]), {
    timeout: 5000,
  });
});

test("what is ticked for an export stays whatever else is set, and is not what is saved when finished", async () => {
  show();
  await click("sample");
  await finished();
  await click("format-docx");
  await click("format-srt");
  await click("format-txt");
  const label = () => screen.getByTestId("save").textContent;
  await waitFor(() => expect(label()).toContain(t.save.several(2)));
  await click("all-speakers");
  await waitFor(() => expect(backend.settings.speakers).toBe(true));
  await new Promise((done) => setTimeout(done, 20));
  expect(label()).toContain(t.save.several(2));
  await click("all-when-finished");
  await waitFor(() => expect(backend.settings.when_finished?.formats).toEqual(["srt"]));
  expect((await found("all-finished-note")).textContent).toBe(t.output.whenFinishedHint);
  await click("all-finished-pdf");
  await waitFor(() => expect(backend.settings.when_finished?.formats).toEqual(["srt", "pdf"]));
  expect(label()).toContain(t.save.several(2));
  await click("save");
  await waitFor(() => expect(backend.exporting.formats).toEqual(["txt", "docx"]));
  expect(backend.settings.when_finished?.formats).toEqual(["srt", "pdf"]);
});

test("several formats are saved at once, and remembered", async () => {
  show();
  await click("sample");
  await finished();
  await click("format-docx");
  await click("format-vtt");
  await click("save-beside");
  await waitFor(() => expect(backend.saved.map(([, format]) => format)).toEqual(["srt", "vtt", "docx"]));
  expect(backend.exporting.formats).toEqual(["srt", "vtt", "docx"]);
  expect((await found("save")).textContent).toContain(t.save.several(3));
  // Text that spreadsheets would run, and the translation, are asked for apart.
  expect(screen.queryByTestId("raw-text")).not.toBeNull();
  await click("format-srt");
  expect(screen.queryByTestId("raw-text")).toBeNull();
  await click("format-csv");
  await click("raw-text");
  await click("export-translation");
  await click("save-beside");
  await waitFor(() => expect(backend.exporting).toMatchObject({ formats: ["vtt", "docx", "csv"], raw_text: true, translation: false }));
});

test("a transcript is translated, and English stands below its text", async () => {
  backend.languageOf = "de";
  show();
  await click("sample");
  await finished();
  const job = screen.getAllByTestId("job")[0] as HTMLElement;
  await click("translate-text");
  expect((await found("translate-text")).textContent).toContain(t.editing.translating);
  backend.translated(Number(job.dataset["job"] ?? 1));
  await waitFor(() => expect(screen.getAllByTestId("translation")[0]?.textContent).toMatch(/^\(English\)/));
});

test("memory is shown stage by stage against what was predicted, and what was given up is told", async () => {
  backend.squeezed = true;
  show();
  await click("sample");
  await finished();
  const warnings = screen.getAllByTestId("toast").map((toast) => toast.textContent);
  expect(warnings).toEqual([expect.stringContaining("from 8 to 4"), expect.stringContaining("q8_0")]);
  await click("tab-memory");
  expect((await found("predicted")).textContent).toBe("5.4 GB");
  expect((await found("measured")).textContent).toBe("5.5 GB");
  const stages = [...(await found("stages")).querySelectorAll("tbody tr")].map((row) => row.textContent);
  expect(stages.length).toBe(3);
  expect(stages[0]).toContain(t.memory.held);
  expect(stages[2]).toMatch(/99\.5.?%/);
  const notices = [...(await found("memory-notices")).querySelectorAll("li")].map((notice) => notice.dataset["code"]);
  expect(notices).toEqual(["memory.critical", "memory.batch_halved", "memory.precision_lowered"]);
  await click("memory-csv");
  await waitFor(() => expect(backend.charts.length).toBe(1));
  const [job, kind, bytes] = backend.charts[0] ?? [];
  expect([job, kind]).toEqual([1, "csv"]);
  expect(new TextDecoder().decode(bytes)).toMatch(/^seconds,device,checkpoint/);
});

test("speech without text can be transcribed again, and what was saved is not saved any more", async () => {
  show();
  await found("drop-zone");
  await click("sample");
  await finished();
  const again = await found("again");
  expect(again.getAttribute("aria-label")).toBe(t.transcript.againAt("0:21", "0:24"));
  await fireEvent.click(again);
  await screen.findByText(t.transcript.againRuns);
  const job = steno.jobs[0]?.id ?? 0;
  backend.foundAgain(job);
  await waitFor(() => expect(screen.queryByTestId("gaps")).toBeNull());
});
