import { fireEvent, render, screen, waitFor, within } from "@testing-library/svelte";
import { beforeAll, beforeEach, expect, test, vi } from "vitest";
import { FakeBackend } from "../backend/fake";
import { FILES, recording } from "../backend/fake-data";
import MoreSettings from "../models/MoreSettings.svelte";
import SettingsPage from "../settings/SettingsPage.svelte";
import { Steno } from "../steno.svelte";
import { t } from "../text";
import { memorySize } from "../ui/format";
import App from "../../App.svelte";
import { fillIn } from "../testing";
import OwnSettings from "./OwnSettings.svelte";
import Queue from "./Queue.svelte";

// jsdom has no canvas: the chart is looked at in a real browser.
vi.mock("uplot", () => ({ default: class {} }));

const FIRST = recording(1, "/first.mp3", false);

let backend: FakeBackend;
let steno: Steno;

beforeAll(fillIn);

beforeEach(() => {
  backend = new FakeBackend(1);
  backend.settings.model = 1;
  backend.paused = true;
});

const found = (id: string) => screen.findByTestId(id);
const names = () => screen.getAllByTestId("job").map((job) => job.querySelector(".name")?.textContent);

async function queue(files = FILES.slice(0, 3)) {
  steno = new Steno(backend);
  render(Queue, { steno });
  await waitFor(() => expect(steno.setup).not.toBeNull());
  backend.drop(files);
  await waitFor(() => expect(steno.jobs.length).toBe(files.length));
}

/** How long the recordings are said to be. */
function lengths(...seconds: number[]) {
  const changed = steno.jobs.map((job, index) => ({ ...job, duration: seconds[index] ?? null }));
  backend.emit({ kind: "jobs", changed, removed: [], order: null });
}

test("the shortest first is chosen by keyboard, and the order given comes back", async () => {
  await queue();
  const given = names();
  const order = await found("order");
  await fireEvent.change(order, { target: { value: "shortest" } });
  expect(backend.shortestFirst).toBe(true);
  await waitFor(() => expect((order as HTMLSelectElement).value).toBe("shortest"));
  backend.emit({ kind: "jobs", changed: [], removed: [], order: [3, 1, 2] });
  await waitFor(() => expect(names()).toEqual([given[2], given[0], given[1]]));
  await fireEvent.change(order, { target: { value: "given" } });
  await waitFor(() => expect(names()).toEqual(given));
});

test("a row that is moved by key keeps the focus, in either direction", async () => {
  await queue();
  const [first] = names();
  const place = () => names().indexOf(first);
  const grip = screen.getAllByTestId("grip")[0] as HTMLElement;
  grip.focus();
  for (const [key, at] of [["ArrowDown", 1], ["ArrowDown", 2], ["ArrowUp", 1], ["ArrowUp", 0]] as const) {
    await fireEvent.keyDown(document.activeElement ?? document.body, { key });
    await waitFor(() => expect(place(), key).toBe(at));
    expect(document.activeElement).toBe(grip);
  }
  // Another's move takes the focus from nobody.
  grip.blur();
  backend.emit({ kind: "jobs", changed: [], removed: [], order: [3, 2, 1] });
  await waitFor(() => expect(place()).toBe(2));
  expect(document.activeElement).toBe(document.body);
});

test("a file that is added twice can be told apart", async () => {
  const [one, other] = FILES.slice(0, 2) as [string, string];
  await queue([one, other, one, one]);
  const [first, , second, third] = names() as [string, string, string, string];
  expect([second, third]).toEqual([`${first} (2)`, `${first} (3)`]);
});

test("a row says how long it is, where it came from and what its own settings are", async () => {
  await queue();
  lengths(754, 61);
  const own = { model_name: "whisper-small", model_folder: null, language: "de", translate: true, bilingual: false, beams: 5, several_languages: false, words: [], words_strength: null, prompt: "", channels: "mix" as const, voice_activity: 0.5, speakers: true, speaker_count: 2, output_folder: null, name_template: "", when_finished: null };
  const [first] = steno.jobs;
  if (!first) throw new Error("there is no job");
  backend.emit({ kind: "jobs", changed: [{ ...first, duration: 754, watched: true, own }], removed: [], order: null });
  const said = `${t.state(first)} · German, ${t.settings.translate}, ${t.settings.speakers}, whisper-small · 12:34 · ${t.watched.from}`;
  await waitFor(() => expect(document.querySelector(".detail")?.textContent).toBe(said));
});

test("all that failed is tried again, what was stopped is not", async () => {
  await queue();
  const failure = { code: "engine_failed", file: null, message: "It died.", remedy: null } as const;
  const states = ["failed", "failed", "cancelled"] as const;
  for (const [index, job] of steno.jobs.entries()) backend.set(job.id, { state: states[index] ?? "waiting", failure: index < 2 ? failure : null });
  await fireEvent.click(await found("retry-failed"));
  await waitFor(() => expect(screen.getAllByTestId("job").map((job) => job.dataset["state"])).toEqual(["waiting", "waiting", "cancelled"]));
});

test("all that failed is removed in one go, but for what has a text", async () => {
  await queue();
  const failure = { code: "engine_failed", file: null, message: "It died.", remedy: null } as const;
  for (const [index, job] of steno.jobs.entries()) backend.set(job.id, { state: "failed", failure, reached: index === 0 ? 60 : null });
  const button = await found("remove-failed");
  expect(button.textContent).toBe(t.order.removeFailed(2));
  await fireEvent.click(button);
  await waitFor(() => expect(screen.getAllByTestId("job")).toHaveLength(1));
  expect(steno.jobs[0]?.reached).toBe(60);
});

test("a recording that has not begun gets settings of its own, all that wait can get them, and they are taken back", async () => {
  await queue();
  const show = () => {
    const [job] = steno.jobs;
    if (!job || !steno.setup) throw new Error("nothing to show");
    return render(OwnSettings, { steno, setup: steno.setup, job });
  };
  let view = show();
  await fireEvent.change(screen.getByTestId("own-language"), { target: { value: "de" } });
  await waitFor(() => expect(steno.jobs[0]?.own?.language).toBe("de"));
  expect(steno.jobs[0]?.own?.model_name).toBe("whisper-small");
  expect(steno.jobs[1]?.own).toBeNull();
  view.unmount();
  view = show();
  await fireEvent.change(screen.getByTestId("own-words"), { target: { value: "Ærø, ，Aarhus、東京" } });
  await waitFor(() => expect(steno.jobs[0]?.own).toMatchObject({ words: ["Ærø", "Aarhus", "東京"], language: "de" }));
  view.unmount();
  view = show();
  await fireEvent.click(screen.getByTestId("own-all"));
  await waitFor(() => expect(steno.jobs.map((job) => job.own?.language)).toEqual(["de", "de", "de"]));
  await fireEvent.click(screen.getByTestId("own-reset"));
  await waitFor(() => expect(steno.jobs.map((job) => job.own?.language)).toEqual([undefined, "de", "de"]));
  view.unmount();
});

test("a running recording is paused and resumed by its row and by its key, while the queue goes on", async () => {
  backend.paused = false;
  backend.still = true;
  steno = new Steno(backend);
  render(App, { steno });
  await waitFor(() => expect(steno.setup).not.toBeNull());
  backend.show("paused");
  await waitFor(() => expect(steno.jobs.map((job) => job.state)).toEqual(["paused", "running", "waiting"]));
  const [first] = screen.getAllByTestId("job") as [HTMLElement];
  const reached = steno.jobs[0]?.reached ?? 0;
  expect(reached).toBeGreaterThan(0);
  expect(first.textContent).toContain(`${t.state({ ...FIRST, state: "paused" })} · ${t.progress.position(reached, 60)}`);
  steno.select(1);
  expect((await found("paused-job")).textContent).toContain(t.transcript.paused(t.progress.position(reached, 60)));
  const words = (await screen.findAllByTestId("segment")).length;
  expect(words).toBeGreaterThan(0);
  await fireEvent.click(within(first).getByTestId("resume-row"));
  await waitFor(() => expect(steno.jobs.map((job) => [job.id, job.state])).toEqual([[2, "running"], [1, "waiting"], [3, "waiting"]]));
  expect(screen.getAllByTestId("segment").length).toBe(words);
  // By its key, which is that of the recording that is shown.
  steno.select(2);
  const key = { key: "P", ctrlKey: true, shiftKey: true };
  await found("pause-job");
  await fireEvent.keyDown(document.body, key);
  await waitFor(() => expect(steno.jobs[0]?.state).toBe("paused"));
  await fireEvent.keyDown(document.body, key);
  await waitFor(() => expect(steno.jobs[0]?.state).toBe("waiting"));
  // The button of the queue says that it is the queue's.
  expect(screen.getByTestId("pause").textContent).toContain(t.queue.pause);
  expect(t.queue.pause).not.toBe(t.job.pause);
  expect(t.queue.resume).not.toBe(t.job.resume);
});

test("a recording that waits in a paused queue says that the queue is to be resumed", async () => {
  backend.still = true;
  steno = new Steno(backend);
  render(App, { steno });
  await waitFor(() => expect(steno.setup).not.toBeNull());
  backend.drop(FILES.slice(0, 2));
  await waitFor(() => expect(steno.jobs.map((job) => job.state)).toEqual(["waiting", "waiting"]));
  await screen.findByText(t.transcript.waitingPaused);
  await fireEvent.click(screen.getByTestId("pause"));
  await waitFor(() => expect(steno.setup?.paused).toBe(false));
  steno.select(2);
  await screen.findByText(t.transcript.waitingTurn);
  expect(screen.queryByText(t.transcript.waitingPaused)).toBeNull();
});

test("the text of a recording that is not finished is deleted only when the user says so again", async () => {
  backend.paused = false;
  backend.still = true;
  steno = new Steno(backend);
  render(App, { steno });
  await waitFor(() => expect(steno.setup).not.toBeNull());
  backend.show("paused");
  await waitFor(() => expect(steno.jobs.map((job) => job.state)).toEqual(["paused", "running", "waiting"]));
  const [paused, , waiting] = screen.getAllByTestId("job") as [HTMLElement, HTMLElement, HTMLElement];
  // Without a text there is nothing to lose.
  await fireEvent.click(within(waiting).getByTestId("remove-row"));
  await waitFor(() => expect(steno.jobs.map((job) => job.state)).toEqual(["paused", "running"]));
  const name = steno.jobs[0]?.name ?? "";
  await fireEvent.click(within(paused).getByTestId("remove-row"));
  await screen.findByText(t.job.losesText(name));
  expect(steno.jobs.map((job) => job.state)).toEqual(["paused", "running"]);
  await fireEvent.click(screen.getByText(t.job.removeText));
  await waitFor(() => expect(steno.jobs.map((job) => job.state)).toEqual(["running"]));
});

/** As many pages are drawn as changes are made: what is shown is always what the program has. */
function own() {
  const [job] = steno.jobs;
  if (!job || !steno.setup) throw new Error("nothing to show");
  return render(OwnSettings, { steno, setup: steno.setup, job });
}

test("of a file with several tracks one is chosen, and a part of it, which is checked where it is entered", async () => {
  await queue();
  backend.show("tracks");
  await waitFor(() => expect(steno.jobs[0]?.tracks.length).toBe(2));
  expect(document.querySelector(".detail")?.textContent).toContain(t.part.tracks(2));
  let view = own();
  expect(screen.getByTestId<HTMLDetailsElement>("own-settings").open).toBe(true);
  const name = (number: number, language: string, title: string) => `${number + 1}: ${language}, ${title}, aac, ${t.part.channels(2)}`;
  expect(screen.getByTestId("tracks").textContent).toBe(t.part.several(2, name(0, "English", "Stage")));
  const track = screen.getByTestId<HTMLSelectElement>("own-track");
  expect([...track.options].map((option) => option.text)).toEqual([t.part.byFile, name(0, "English", "Stage"), name(1, "German", "Interpreter")]);
  await fireEvent.change(track, { target: { value: "1" } });
  await waitFor(() => expect(steno.jobs[0]?.part).toEqual({ track: 1, from: null, to: null }));
  expect(document.querySelector(".detail")?.textContent).toContain(t.part.number(2));
  // (field, entered) -> what is said; null: it is taken.
  for (const [field, entered, said] of [
    ["own-from", "soon", t.editing.noTime],
    ["own-from", "13:00", t.part.tooLate("12:34")],
    ["own-to", "0", t.editing.endFirst],
    ["own-from", "1:30", null],
    ["own-to", "0:20", t.editing.endFirst],
    ["own-to", "20:00", null],
  ] as const) {
    view.unmount();
    view = own();
    await fireEvent.change(screen.getByTestId(field), { target: { value: entered } });
    if (said !== null) await waitFor(() => expect(screen.getByTestId("part-note").textContent.trim()).toBe(said));
  }
  await waitFor(() => expect(steno.jobs[0]?.part).toEqual({ track: 1, from: 90, to: 1200 }));
  view.unmount();
  own();
  expect(screen.getByTestId("part-note").textContent.trim()).toBe(t.part.beyond("12:34"));
  expect(document.querySelector(".detail")?.textContent).toContain("1:30–20:00");
});

test("channels, speech, the text before and the accuracy are set for all, for one, and in presets", async () => {
  await queue();
  if (!steno.setup) throw new Error("there is no setup");
  const view = render(MoreSettings, { steno, setup: steno.setup });
  const accuracy = screen.getByTestId<HTMLSelectElement>("all-beams");
  const { usual, fast, balanced, accurate, most } = t.decoding.names;
  expect([...accuracy.options].map((option) => option.text)).toEqual([usual, fast, balanced, accurate, most]);
  for (const [field, value, setting, expected] of [
    ["all-beams", "5", "beams", 5],
    ["all-channels", "separate", "channels", "separate"],
    ["all-prompt", " Ærø ", "prompt", "Ærø"],
    ["all-threshold", "0,3", "voice_activity", 0.3],
    ["all-words", "Ærø", "words", ["Ærø"]],
    ["all-words-strength", "8", "words_strength", 8],
  ] as const) {
    await fireEvent.change(screen.getByTestId(field), { target: { value } });
    await waitFor(() => expect(steno.setup?.settings[setting]).toEqual(expected));
    await view.rerender({ steno, setup: steno.setup });
  }
  expect(screen.getByText(t.decoding.beamsHint(5))).toBeTruthy();
  for (const value of ["2", "", "much"]) {
    await fireEvent.change(screen.getByTestId("all-threshold"), { target: { value } });
    await waitFor(() => expect(screen.getByText(t.decoding.badThreshold)).toBeTruthy());
    expect(backend.settings.voice_activity).toBe(0.3);
  }
  await fireEvent.click(screen.getByTestId("all-speech-only"));
  await waitFor(() => expect(backend.settings.voice_activity).toBeNull());
  await view.rerender({ steno, setup: steno.setup });
  expect(screen.queryByTestId("all-threshold")).toBeNull();
  await fireEvent.input(screen.getByTestId("preset-name"), { target: { value: "Interviews" } });
  await fireEvent.submit(screen.getByTestId("preset-save").closest("form") as HTMLFormElement);
  await waitFor(() => expect(backend.presets[0]?.settings).toMatchObject({ beams: 5, channels: "separate", prompt: "Ærø", voice_activity: null }));
  const one = own();
  await fireEvent.change(screen.getByTestId("own-channels"), { target: { value: "right" } });
  await waitFor(() => expect(steno.jobs[0]?.own).toMatchObject({ channels: "right", prompt: "Ærø" }));
  expect(backend.settings.channels).toBe("separate");
  one.unmount();
});

test("a folder, a name with a preview, and what is saved when finished are set, and kept in presets", async () => {
  await queue();
  if (!steno.setup) throw new Error("there is no setup");
  const view = render(MoreSettings, { steno, setup: steno.setup });
  const shown = async () => {
    if (steno.setup) await view.rerender({ steno, setup: steno.setup });
  };
  const folder = screen.getByTestId<HTMLSelectElement>("all-output");
  await fireEvent.change(folder, { target: { value: "choose" } });
  await waitFor(() => expect(steno.setup?.settings.output_folder).toBe(0));
  await shown();
  expect([...folder.options].map((option) => option.text)).toEqual([t.watched.beside, "/home/me/Texts 1", t.watched.choose]);
  const note = () => screen.getByTestId("all-name-note").textContent.trim();
  const name = screen.getByTestId("all-name");
  expect(note()).toBe(t.output.hint);
  for (const [entered, said] of [
    ["{title}", t.output.unknown("title")],
    ["{name", t.output.brace],
    ["../{name}", t.output.forbidden("/")],
    ["{name}_{date}_{language}", t.output.preview(`${t.output.example}_2026-11-24_en.srt`)],
  ] as const) {
    await fireEvent.input(name, { target: { value: entered } });
    await waitFor(() => expect(note()).toBe(said));
    await fireEvent.change(name, { target: { value: entered } });
  }
  await waitFor(() => expect(backend.settings.name_template).toBe("{name}_{date}_{language}"));
  await fireEvent.click(screen.getByTestId("all-when-finished"));
  await waitFor(() => expect(backend.settings.when_finished?.formats).toEqual(["srt"]));
  await shown();
  await fireEvent.click(screen.getByTestId("all-finished-docx"));
  await waitFor(() => expect(backend.settings.when_finished?.formats).toEqual(["srt", "docx"]));
  await shown();
  await fireEvent.input(screen.getByTestId("preset-name"), { target: { value: "Court" } });
  await fireEvent.submit(screen.getByTestId("preset-save").closest("form") as HTMLFormElement);
  await waitFor(() => expect(backend.presets[0]?.settings).toMatchObject({ output_folder: 0, name_template: "{name}_{date}_{language}" }));
  for (const format of ["srt", "docx"]) {
    await fireEvent.click(screen.getByTestId(`all-finished-${format}`));
    await waitFor(() => expect(backend.settings.when_finished?.formats ?? []).not.toContain(format));
    await shown();
  }
  expect(backend.settings.when_finished).toBeNull();
});

test("settings are kept under a name, used, renamed and deleted", async () => {
  await queue();
  if (!steno.setup) throw new Error("there is no setup");
  backend.presets = [{ name: "Lectures", settings: { ...steno.setup.settings, language: "fr" }, missing_model: "/gone" }];
  steno.changeSettings({ language: "de", beams: 5 });
  await waitFor(() => expect(steno.setup?.settings.language).toBe("de"));
  render(MoreSettings, { steno, setup: steno.setup });
  await fireEvent.input(screen.getByTestId("preset-name"), { target: { value: " Interviews " } });
  await fireEvent.submit(screen.getByTestId("preset-save").closest("form") as HTMLFormElement);
  await waitFor(() => expect(screen.getAllByTestId("preset").length).toBe(2));
  expect(backend.presets[1]).toMatchObject({ name: "Interviews", settings: { language: "de", beams: 5 } });
  const [lectures, interviews] = screen.getAllByTestId("preset") as [HTMLElement, HTMLElement];
  expect(lectures.textContent).toContain(t.presets.missing("/gone"));
  await fireEvent.click(within(lectures).getByLabelText(t.presets.apply("Lectures")));
  await waitFor(() => expect(backend.settings.language).toBe("fr"));
  await fireEvent.click(within(interviews).getByLabelText(t.presets.applyToWaiting("Interviews")));
  await waitFor(() => expect(steno.jobs.map((job) => job.own?.beams)).toEqual([5, 5, 5]));
  const name = within(lectures).getByLabelText<HTMLInputElement>(t.presets.rename("Lectures"));
  await fireEvent.change(name, { target: { value: "Interviews" } });
  await waitFor(() => expect(steno.toasts.some((toast) => toast.failure?.code === "bad_settings")).toBe(true));
  expect(name.value).toBe("Lectures");
  await fireEvent.click(within(lectures).getByLabelText(t.presets.delete("Lectures")));
  await waitFor(() => expect(backend.presets.map((preset) => preset.name)).toEqual(["Interviews"]));
});

test("folders are watched, say where their texts go, and one that is gone is named here and in the queue", async () => {
  backend.show("watched");
  steno = new Steno(backend);
  render(Queue, { steno });
  render(SettingsPage, { steno });
  await waitFor(() => expect(screen.getAllByTestId("watched-folder").length).toBe(2));
  expect((await found("watched")).textContent).toContain(t.watched.gone(1));
  expect((await found("watched-failure")).textContent).toContain("its disk is not connected");
  const [first] = screen.getAllByTestId("watched-folder") as [HTMLElement];
  await fireEvent.click(within(first).getByLabelText(".docx"));
  await waitFor(() => expect(backend.watched[0]?.exporting.formats).toEqual(["txt", "srt", "docx"]));
  await fireEvent.click(within(first).getByText(t.watched.choose));
  await waitFor(() => expect(first.textContent).toContain("/home/me/Texts"));
  await fireEvent.click(screen.getByLabelText(t.watched.stop("/media/recorder")));
  await waitFor(() => expect(screen.queryByTestId("watched-failure")).toBeNull());
  await fireEvent.click(screen.getByTestId("watch-folder"));
  await waitFor(() => expect(backend.watched.length).toBe(2));
});

test("the switches are on until they are put off, and the end of the queue is told with numbers alone", async () => {
  steno = new Steno(backend);
  render(SettingsPage, { steno });
  const awake = (await found("switch-stay_awake")) as HTMLInputElement;
  expect([awake.checked, ((await found("switch-notify")) as HTMLInputElement).checked]).toEqual([true, true]);
  await fireEvent.click(awake);
  await waitFor(() => expect(backend.switches).toEqual({ stay_awake: false, notify: true }));
  backend.emit({ kind: "queue_ended", finished: 3, failed: 1 });
  await waitFor(() => expect(backend.notified).toEqual([[t.work.ended(3), t.work.failed(1)]]));
});

test("a recording of which only a part could be decoded is not simply done", async () => {
  await queue();
  const [first] = steno.jobs;
  if (!first) throw new Error("there is no job");
  const changed = [{ ...first, state: "finished" as const, truncated_at: 24, duration: 600 }];
  backend.emit({ kind: "jobs", changed, removed: [], order: null });
  await waitFor(() => expect(document.querySelector("[data-testid=job]")?.textContent).toContain(t.job.truncated("0:24", "10:00")));
});

test("a model that does not fit into the free memory is announced above the queue while its job runs", async () => {
  await queue();
  const warning = {
    model: "whisper-medium",
    precision: "f16",
    device: { kind: "host" as const, name: "the CPU", free: 2e9, total: 16e9 },
    needed: 5e9,
    missing: 3e9,
    instead: { model: "whisper-small", precision: "q8_0", windows: 2 },
  };
  const tell = (fit_warning: typeof warning | Omit<typeof warning, "instead"> & { instead: null } | null) => {
    const changed = steno.jobs.map((job, index) => (index === 0 ? { ...job, fit_warning } : job));
    backend.emit({ kind: "jobs", changed, removed: [], order: null });
  };
  expect(screen.queryByTestId("fit-warning")).toBeNull();
  tell(warning);
  const shown = await found("fit-warning");
  const size = (bytes: number) => memorySize(bytes);
  for (const part of [
    t.fitWarning.title("whisper-medium", "f16"),
    t.fitWarning.needs(size(5e9), size(2e9), size(3e9)),
    t.fitWarning.instead("whisper-small", "q8_0"),
  ]) {
    expect(shown.textContent).toContain(part);
  }
  tell({ ...warning, instead: { model: "whisper-medium", precision: "f16", windows: 1 } });
  await waitFor(() => expect(shown.textContent).toContain(t.fitWarning.smaller(1)));
  tell({ ...warning, instead: null });
  await waitFor(() => expect(shown.textContent).toContain(t.fitWarning.nothing));
  tell(null);
  await waitFor(() => expect(screen.queryByTestId("fit-warning")).toBeNull());
});

test("what is added while another recording is shown is told, with a way to it", async () => {
  await queue(FILES.slice(0, 1));
  steno.select(1);
  backend.drop(FILES.slice(1, 3));
  await waitFor(() => expect(steno.toasts.map(({ text }) => text)).toEqual([t.queue.added(2)]));
  expect(steno.selected, "what is being read stays open").toBe(1);
  steno.show("history");
  steno.toasts[0]?.action?.run();
  expect([steno.view, steno.selected]).toEqual(["recordings", 2]);
});

test("the list is where it was when another view is left", async () => {
  backend.drop(Array.from({ length: 30 }, (_, index) => `/home/me/tape ${index}.mp3`));
  const steno = new Steno(backend);
  render(App, { steno });
  const list = await screen.findByTestId("queue");
  await waitFor(() => expect(screen.getAllByTestId("job")).toHaveLength(30));
  list.scrollTop = 900;
  await fireEvent.scroll(list);
  await fireEvent.click(screen.getByTestId("view-settings"));
  await waitFor(() => expect(screen.queryByTestId("queue")).toBeNull());
  const shown: Element[] = [];
  HTMLElement.prototype.scrollIntoView = function () {
    shown.push(this);
  };
  await fireEvent.click(screen.getByTestId("view-recordings"));
  const back = await screen.findByTestId("queue");
  expect(back.scrollTop).toBe(900);
  expect(shown.map((row) => row.getAttribute("data-job"))).toContain(String(steno.selected));
});
