import { fireEvent, render, screen, waitFor, within } from "@testing-library/svelte";
import { afterEach, beforeAll, expect, test, vi } from "vitest";
import App from "../../App.svelte";
import { FakeBackend } from "../backend/fake";
import type { Failure, Format } from "../generated/contract";
import { Steno } from "../steno.svelte";
import { fillIn, opened } from "../testing";
import { t } from "../text";
import { formatName } from "../transcript/formats";
import { list } from "../ui/format";

// jsdom has no canvas: the chart is looked at in a real browser.
vi.mock("uplot", () => ({ default: class {} }));

beforeAll(fillIn);
afterEach(() => vi.useRealTimers());

const FULL: Failure = { code: "disk_full", file: "/home/me/talk.srt", message: "The disk is full.", remedy: "Free some space." };
const why = t.save.notSaved(t.errors.disk_full);

test("a transcript that was not saved when it was finished is a warning until the formats chosen for that are saved", async () => {
  const backend = new FakeBackend(1);
  const steno = await opened(backend);
  const row = screen.getByTestId("job");
  expect(row.textContent).toContain("Done");
  backend.set(1, { not_saved: FULL, unsaved: { ...backend.exporting, formats: ["txt", "vtt"] } });
  await waitFor(() => expect(row.textContent).toContain(why));
  expect(row.textContent).not.toContain("Done");
  expect(row.classList).toContain("warned");
  expect(screen.getByTestId("announcement").textContent).toContain(why);
  expect(screen.getByTestId("toast").textContent).toContain(why);
  expect(screen.getByTestId("not-saved").textContent).toContain("/home/me/talk.srt");
  // The formats of Export are others.
  await steno.save(1, { ...backend.exporting, formats: ["srt"] }, "ask");
  expect(screen.getByTestId("save-unsaved").textContent).toContain(t.save.saveUnsaved(list(["txt", "vtt"].map((it) => formatName(it as Format)))));
  expect(row.textContent).toContain(why);
  await steno.save(1, { ...backend.exporting, formats: ["txt"] }, "ask");
  await waitFor(() => expect(screen.getByTestId("save-unsaved").textContent).toContain(t.save.saveUnsaved(formatName("vtt"))));
  const save = vi.spyOn(backend, "saveUnsaved");
  await fireEvent.click(screen.getByTestId("save-unsaved"));
  await waitFor(() => expect(save).toHaveBeenCalledWith(1, false));
  await waitFor(() => expect(row.textContent).toContain("Done"));
  expect(row.classList).not.toContain("warned");
  expect(screen.queryByTestId("not-saved")).toBeNull();
  expect(screen.queryByText(new RegExp(why))).toBeNull();
});

test("what is in the way of a format that waits is replaced after a question, where that was to go", async () => {
  const backend = new FakeBackend(1);
  const steno = await opened(backend);
  const exists: Failure = { code: "output_exists", file: "/home/me/talk.txt", message: "The file is there.", remedy: "" };
  backend.set(1, { not_saved: exists, unsaved: { ...backend.exporting, formats: ["txt"] } });
  const save = vi.spyOn(backend, "saveUnsaved").mockResolvedValueOnce({ files: [], failures: [{ format: "txt", failure: exists }] });
  await fireEvent.click(await screen.findByTestId("save-unsaved"));
  await waitFor(() => expect(steno.toasts.some(({ action }) => action?.label === t.save.replace)).toBe(true));
  steno.toasts.find(({ action }) => action?.label === t.save.replace)?.action?.run();
  await waitFor(() => expect(save).toHaveBeenLastCalledWith(1, true));
  await waitFor(() => expect(screen.queryByTestId("not-saved")).toBeNull());
});

test("a transcript that is not in the history says so in the list until it is", async () => {
  const backend = new FakeBackend(1);
  await opened(backend);
  const row = screen.getByTestId("job");
  backend.set(1, { not_stored: FULL });
  await waitFor(() => expect(row.textContent).toContain(t.save.notStored(t.errors.disk_full)));
  expect(row.classList).toContain("warned");
  expect(screen.getByTestId("not-stored").textContent).toContain(t.save.notStoredText);
  backend.set(1, { not_stored: null });
  await waitFor(() => expect(row.textContent).toContain("Done"));
  expect(screen.queryByTestId("not-stored")).toBeNull();
});

test("a recording that would begin anew says so before, and that its text is kept", async () => {
  const backend = new FakeBackend(1);
  await opened(backend);
  backend.set(1, { state: "cancelled", reached: 60, starts_over: false });
  await waitFor(() => expect(screen.getByTestId("retry").textContent).toContain(t.job.resume));
  expect(screen.queryByTestId("starts-over")).toBeNull();
  backend.set(1, { starts_over: true });
  await waitFor(() => expect(screen.getByTestId("retry").textContent).toContain(t.job.startAgain));
  expect(screen.getByTestId("retry-row").title).toBe(t.job.startAgain);
  expect(screen.getByTestId("starts-over").textContent).toContain(t.transcript.startsOverText);
});

test("settings of earlier windows that could not be read are told of, with the copy of their file", async () => {
  const backend = new FakeBackend(1);
  const message = "Some of the window's settings can't be read: `language`.";
  backend.forgotten = { code: "bad_settings", file: "/home/me/window.unreadable.json", message, remedy: null };
  const steno = await opened(backend);
  await backend.changeSettings({ ...backend.settings, translate: true });
  expect(steno.toasts.filter(({ text }) => text === t.settings.forgotten), "once").toHaveLength(1);
  expect(screen.getByTestId("toast").textContent).toContain("/home/me/window.unreadable.json");
});

test("transcripts that were not saved are told of in one message", async () => {
  const backend = new FakeBackend(1);
  backend.drop(["/a/one.mp3", "/a/two.mp3", "/a/three.mp3"]);
  const steno = new Steno(backend);
  render(App, { steno });
  await waitFor(() => expect(steno.jobs).toHaveLength(3));
  backend.set(1, { not_saved: FULL });
  await waitFor(() => expect(screen.getByTestId("toast").textContent).toContain(`one.mp3: ${why}`));
  backend.set(2, { not_saved: FULL });
  backend.set(3, { not_saved: FULL });
  await waitFor(() => expect(screen.getAllByTestId("toast").map((toast) => toast.textContent).join()).toContain(t.save.notSavedAll(3)));
  expect(steno.toasts).toHaveLength(1);
  await fireEvent.click(screen.getByTestId("toast-action"));
  expect(steno.selected).toBe(3);
});

test("before closing the transcripts that would be lost are named", async () => {
  const backend = new FakeBackend(1);
  backend.drop(["/a/one.mp3", "/a/two.mp3", "/a/three.mp3", "/a/four.mp3", "/a/five.mp3"]);
  const steno = new Steno(backend);
  render(App, { steno });
  await waitFor(() => expect(steno.jobs).toHaveLength(5));
  backend.emit({ kind: "close_requested", unfinished: 0, unsaved: [2, 3, 4, 5] });
  const names = async () => within(await screen.findByTestId("unsaved")).getAllByRole("listitem", { hidden: true }).map((item) => item.textContent);
  expect(await names()).toEqual(["two.mp3", "three.mp3", "four.mp3", t.closing.more(1)]);
  backend.emit({ kind: "close_requested", unfinished: 0, unsaved: [5] });
  await waitFor(async () => expect(await names()).toEqual(["five.mp3"]));
});

test("that recordings need a model is said until they have one, are gone, or some time has passed", async () => {
  const backend = new FakeBackend(1);
  const steno = await opened(backend);
  await steno.backend.changeSettings({ ...backend.settings, model: 0 });
  const said = () => steno.toasts.map(({ text }) => text);
  const add = async (name: string) => {
    backend.drop([`/a/${name}.mp3`]);
    await waitFor(() => expect(said()).toEqual([t.queue.addedHeld(1)]));
  };
  await add("one");
  await backend.remove(steno.jobs.at(-1)?.id ?? 0);
  await waitFor(() => expect(said()).toEqual([]));
  await add("two");
  await backend.changeSettings({ ...backend.settings, model: 1 });
  await waitFor(() => expect(said()).toEqual([]));
  await backend.changeSettings({ ...backend.settings, model: 0 });
  vi.useFakeTimers({ shouldAdvanceTime: true });
  await add("three");
  await vi.advanceTimersByTimeAsync(40_000);
  expect(said()).toEqual([]);
});

test("while the engine is busy its job says what computes", async () => {
  const backend = new FakeBackend(1);
  backend.describe = () => new Promise(() => {});
  backend.show("running");
  const steno = new Steno(backend);
  render(App, { steno });
  await waitFor(() => expect(steno.jobs.length).toBeGreaterThan(0));
  const chip = screen.getByTestId("engine");
  expect(chip.textContent).toContain(t.engine.starting);
  backend.set(1, { state: "running", device: "cpu" });
  await waitFor(() => expect(chip.textContent?.trim()).toBe(t.engine.cpu(null)));
  backend.set(1, { device: "cuda:0" });
  await waitFor(() => expect(chip.textContent?.trim()).toBe(steno.fits?.device?.kind === "gpu" ? steno.fits.device.name : t.memory.kinds.gpu));
});

test("the button that stops says what becomes of the text", async () => {
  const backend = new FakeBackend(1);
  backend.still = true;
  backend.show("running");
  render(App, { steno: new Steno(backend) });
  backend.set(1, { state: "running" });
  await waitFor(() => expect(screen.getByTestId("stop").title).toBe(t.job.stopHint));
});

test("while a resumed recording is read again, its text is said to come back", async () => {
  const backend = new FakeBackend(1);
  backend.still = true;
  backend.drop(["/a/one.mp3"]);
  const steno = new Steno(backend);
  render(App, { steno });
  await waitFor(() => expect(steno.jobs).toHaveLength(1));
  backend.set(1, { state: "running", progress: null });
  await screen.findByText(t.transcript.waiting);
  backend.set(1, { reached: 1320 });
  await screen.findByText(t.transcript.resuming);
});
