import { fireEvent, render, screen, waitFor, within } from "@testing-library/svelte";
import { beforeAll, beforeEach, expect, test, vi } from "vitest";
import App from "../../App.svelte";
import { FakeBackend } from "../backend/fake";
import { FILES, SENTENCES } from "../backend/fake-data";
import type { Segment } from "../generated/contract";
import { Steno } from "../steno.svelte";
import { fillIn } from "../testing";
import { t } from "../text";
import { list } from "../ui/format";
import { pieces } from "./pieces";

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
  fillIn();
  globalThis.ResizeObserver = class {
    observe() {}
    unobserve() {}
    disconnect() {}
  };
});

const found = (id: string) => screen.findByTestId(id);
const click = async (id: string) => fireEvent.click(await found(id));
const texts = () => steno.text?.pages.flat().map((segment) => segment.text) ?? [];
const field = () => found("segment-text") as Promise<HTMLTextAreaElement>;

beforeEach(async () => {
  backend = new FakeBackend(1);
  backend.settings = { ...backend.settings, model: 1 };
  backend.show("finished");
  steno = new Steno(backend);
  render(App, { steno });
  await waitFor(() => expect(steno.setup && steno.text?.editing).toBeTruthy(), { timeout: 5000 });
});

async function open(number: number): Promise<HTMLTextAreaElement> {
  const row = (await screen.findAllByTestId("segment"))[number];
  if (!row) throw new Error(`there is no segment ${number}`);
  await fireEvent.dblClick(row.querySelector(".words") ?? row);
  return field();
}

test("a click on a word plays from it, and Enter, F2 or a letter writes there", async () => {
  const row = (await screen.findAllByTestId("segment"))[3];
  await fireEvent.click(row?.querySelector(".words") ?? document.body);
  expect(screen.queryByTestId("segment-text"), "a click alone does not write").toBeNull();
  const segment = steno.text?.at(3);
  const start = [...(segment?.text ?? "").matchAll(/\S+/g)][4]?.index ?? 0;
  for (const key of ["F2", "Enter", "x"]) {
    if (steno.editor) steno.editor.place = { segment: segment?.id ?? 0, word: 4 };
    await fireEvent.keyDown(await found("transcript"), { key });
    expect([(await field()).value, (await field()).selectionStart], key).toEqual([segment?.text, start]);
    await fireEvent.keyDown(await field(), { key: "Escape" });
    await waitFor(() => expect(screen.queryByTestId("segment-text")).toBeNull());
  }
});

const wait = (milliseconds: number) => new Promise((done) => setTimeout(done, milliseconds));

/** From now on answers come late, as from a disk, and the text earlier or later still. */
function slow(answer = 60, text = 120): void {
  const [{ edit }, shown] = [backend, steno.text];
  backend.edit = async (...asked) => {
    await wait(answer / 2);
    const done = await edit(...asked);
    await wait(answer / 2);
    return done;
  };
  if (!shown) throw new Error("there is no text");
  const apply = shown.apply.bind(shown);
  shown.apply = (update) => void setTimeout(() => apply(update), text);
}

/** As a keyboard writes: where the focus and the cursor are. */
async function press(letter: string): Promise<void> {
  const input = document.activeElement;
  if (!(input instanceof HTMLTextAreaElement)) return;
  input.setRangeText(letter, input.selectionStart, input.selectionEnd, "end");
  await fireEvent.input(input);
}

const key = async (name: string, more: KeyboardEventInit = {}) => fireEvent.keyDown(document.activeElement ?? document.body, { key: name, ...more });

async function openAt(number: number, cursor: number): Promise<HTMLTextAreaElement> {
  const input = await open(number);
  input.setSelectionRange(cursor, cursor);
  return input;
}

/** The text of the field that has the focus, in two where the cursor stands. */
function atCursor(): [string, string] {
  const input = document.activeElement as HTMLTextAreaElement;
  return [input.value?.slice(0, input.selectionStart), input.value?.slice(input.selectionEnd)];
}

/** The first texts of the first recording as the program has them, shown or not. */
const written = async () => (await backend.searchDocuments("", { speaker: null, language: null, since: null, until: null, folder: null, tag: null })).hits.filter(({ document }) => document === 1).slice(0, 5).map(({ text }) => text);

test.each([
  ["the answer", 40, 90],
  ["the text", 90, 10],
])("what is typed while a segment is split or joined goes where the cursor will be, where %s comes first", async (_first, answer, text) => {
  const [first = "", second = "", ...rest] = texts();
  slow(answer, text);
  await openAt(0, 9);
  await key("Enter");
  await press("s");
  await press("o ");
  await waitFor(() => expect(atCursor()).toEqual(["so ", first.slice(10)]));
  await waitFor(() => expect(texts()).toEqual([first.slice(0, 9), `so ${first.slice(10)}`, second, ...rest]));
  const now = texts();
  await openAt(1, now[1]?.length ?? 0);
  await key("Delete");
  await press("!");
  await waitFor(() => expect(atCursor()).toEqual([`${now[1]}!`, ` ${second}`]));
  await waitFor(() => expect(texts()).toEqual([now[0], `${now[1]}! ${second}`, ...rest]));
});

test("what is typed while a segment is joined with the one before goes between both", async () => {
  const [first = "", second = "", ...rest] = texts();
  slow();
  await openAt(1, 0);
  await key("Backspace");
  await press("x");
  await waitFor(() => expect(atCursor()).toEqual([`${first} x`, second]));
  await waitFor(() => expect(texts()).toEqual([`${first} x${second}`, ...rest]));
});

test("what is typed goes on where nothing could be split, and over what a new segment has to begin with", async () => {
  const [first = "", ...rest] = texts();
  slow();
  await openAt(0, first.length);
  await key("Enter");
  await press("!");
  await waitFor(() => expect(texts()).toEqual([`${first}!`, ...rest]));
  expect(atCursor()).toEqual([`${first}!`, ""]);
  void steno.editor?.insert();
  await press("?");
  await waitFor(() => expect(texts()).toEqual([`${first}!`, "?", ...rest]));
});

test("a key pressed twice joins once, and one that is held ends at the border", async () => {
  const before = texts();
  slow();
  await openAt(2, 0);
  for (let times = 0; times < 3; times++) await key("Backspace");
  await waitFor(() => expect(texts().length).toBe(before.length - 1));
  const joined = [before[0], `${before[1]} ${before[2]}`, ...before.slice(3)];
  await waitFor(() => expect(atCursor()).toEqual([`${before[1]} `, before[2]]));
  const input = await openAt(1, 0);
  expect(await key("Backspace", { repeat: true }), "nothing else comes of it").toBe(false);
  input.setSelectionRange(7, 7);
  expect(await key("Enter", { repeat: true })).toBe(false);
  input.setSelectionRange(input.value.length, input.value.length);
  expect(await key("Delete", { repeat: true })).toBe(false);
  expect(await key("j", { ctrlKey: true, repeat: true })).toBe(false);
  await wait(300);
  expect(texts()).toEqual(joined);
  input.setSelectionRange(7, 7);
  expect(await key("Backspace", { repeat: true }), "within a text it goes on").toBe(true);
});

test("the field keeps the focus and its panel when the next segment is joined to it", async () => {
  slow();
  const input = await open(0);
  await click("speaker");
  const lost = vi.fn();
  input.focus();
  input.addEventListener("blur", lost);
  input.setSelectionRange(input.value.length, input.value.length);
  await key("Delete");
  await waitFor(() => expect(input.value).toBe(texts()[0]));
  expect([document.activeElement === input, lost.mock.calls.length, steno.editor?.panel]).toEqual([true, 0, "speaker"]);
});

test("what is typed while a segment is split is not lost where one leaves it meanwhile", async () => {
  const [first = "", second = "", third = "", ...rest] = texts();
  const split = (typed: string) => [first.slice(0, 9), `${typed}${first.slice(10)}`, second, third, ...rest];
  slow();
  await openAt(0, 9);
  await key("Enter");
  await press("so ");
  await key("Escape");
  await waitFor(() => expect(texts()).toEqual(split("so ")));
  expect(steno.editor?.active).toBeNull();
  // Its neighbours' texts are not known yet, any other segment can be opened.
  await openAt(1, 0);
  await key("Backspace");
  await press("and ");
  const [here, before] = [steno.editor?.active, steno.text?.at(0)?.id ?? 0];
  steno.editor?.open(before);
  steno.editor?.move(-1);
  expect(steno.editor?.active).toBe(here);
  await open(3);
  await press("!");
  await waitFor(() => expect(texts()).toEqual([`${first.slice(0, 9)} and so ${first.slice(10)}`, second, `${third}!`, ...rest]));
  expect(atCursor()).toEqual([`${third}!`, ""]);
});

test("what is typed while a segment is split is not lost where another recording is chosen meanwhile", async () => {
  const [first = "", ...rest] = texts();
  backend.drop(FILES.slice(1, 2));
  await waitFor(() => expect(steno.jobs.map(({ state }) => state)).toEqual(["finished", "finished"]));
  slow();
  await openAt(0, 9);
  await key("Enter");
  await press("so ");
  steno.select(2);
  await waitFor(() => expect(steno.text?.editing && texts().length).toBeGreaterThan(0));
  expect(await written()).toEqual([first.slice(0, 9), `so ${first.slice(10)}`, ...rest].slice(0, 5));
});

test("whoever waits for what was typed waits for what is under way too", async () => {
  const first = texts()[0] ?? "";
  slow(200, 0);
  await openAt(0, 9);
  await press("1");
  void steno.editor?.flush();
  await steno.editor?.flush();
  expect((await written())[0]).toBe(`${first.slice(0, 9)}1${first.slice(9)}`);
  await key("Enter");
  await press("2");
  await steno.editor?.flush();
  expect((await written()).slice(0, 2)).toEqual([`${first.slice(0, 9)}1`, `2${first.slice(9).trim()}`]);
});

test("what is typed is written down before all is saved, another attempt, the window's end and its leaving the list", async () => {
  const had: Record<string, string | undefined> = {};
  const look = <Asked extends unknown[], Answer>(name: string, work: (...asked: Asked) => Promise<Answer>) =>
    async (...asked: Asked): Promise<Answer> => {
      had[name] = (await written())[0];
      return work.apply(backend, asked);
    };
  backend.save = look("save", backend.save);
  backend.again = look("again", backend.again);
  backend.close = look("close", backend.close);
  backend.remove = look("remove", backend.remove);
  slow(100, 0);
  const type = async (text: string) => fireEvent.input(await field(), { target: { value: text } });
  await open(0);
  await type("To save.");
  await steno.saveAll(backend.exporting);
  await type("To compare.");
  await steno.again(1, { start: 0, end: 5 });
  await type("To close.");
  backend.emit({ kind: "close_requested", unfinished: 0, unsaved: [] });
  await waitFor(() => expect(backend.closed).toBe(true));
  await type("To remove.");
  await steno.remove(1);
  expect(had).toEqual({ save: "To save.", again: "To compare.", close: "To close.", remove: "To remove." });
});

test("what could not be written down is kept, and tried again once it is opened", async () => {
  const before = texts();
  const { edit } = backend;
  const full = { code: "disk_full", file: null, message: "The disk is full.", remedy: "Make room." };
  backend.edit = () => Promise.reject(full);
  await fireEvent.input(await open(0), { target: { value: "Not lost." } });
  expect((await open(1)).value).toBe(before[1]);
  await waitFor(() => expect(screen.getByText(/The disk is full/)).toBeTruthy());
  await openAt(1, 7);
  await key("Enter");
  await wait(50);
  expect(atCursor(), "nothing is split in vain").toEqual([before[1]?.slice(0, 7), before[1]?.slice(7)]);
  backend.drop(FILES.slice(1, 2));
  await waitFor(() => expect(steno.jobs.map(({ state }) => state)).toEqual(["finished", "finished"]));
  steno.select(2);
  steno.select(1);
  await waitFor(() => expect(texts()).toEqual(before));
  expect((await open(0)).value).toBe("Not lost.");
  backend.edit = edit;
  expect((await open(1)).value).toBe(before[1]);
  await waitFor(() => expect(texts()).toEqual(["Not lost.", ...before.slice(1)]));
  expect((await open(0)).value).toBe("Not lost.");
});

test("a correction that can't be stored stays in its place, is told of once, and is stored when there is room again", async () => {
  const { edit } = backend;
  const full = { code: "disk_full", file: null, message: "The disk is full.", remedy: "Make room." };
  backend.edit = () => Promise.reject(full);
  const closings: boolean[] = [];
  backend.close = (really) => Promise.resolve(void closings.push(really));
  const exporting = steno.exporting ?? steno.setup!.exporting;
  const row = () => screen.getAllByTestId("segment")[0];
  for (const text of ["Not", "Not lost", "Not lost."]) {
    await fireEvent.input(await open(0), { target: { value: text } });
    await steno.editor?.flush();
    expect((await field()).value).toBe(text);
  }
  await key("Enter");
  await steno.editor?.flush();
  expect(steno.toasts.map(({ text }) => text), "it is said once").toEqual([t.editing.notWritten]);
  steno.editor?.close();
  await waitFor(() => expect(row()?.textContent).toContain("Not lost."));
  expect(row()?.textContent).toContain(t.editing.unwritten);
  // Neither the recording nor the window goes without it unasked.
  await steno.remove(1);
  backend.emit({ kind: "close_requested", unfinished: 0, unsaved: [] });
  await waitFor(() => expect(steno.closing).toEqual({ unfinished: 0, unsaved: [1] }));
  // The program, which would close soon where nothing else is lost, is told to stay.
  expect(closings).toEqual([false]);
  steno.closing = null;
  // A file would have the text before.
  let saved = 0;
  backend.save = () => Promise.resolve({ files: [`/x/${++saved}.srt`], failures: [] });
  await steno.save(1, { ...exporting }, "beside");
  await steno.saveAll({ ...exporting });
  expect(saved).toBe(0);
  expect(steno.toasts.map(({ text }) => text)).toContain(`${steno.jobs[0]?.name}: ${t.editing.notSavedBefore}`);
  while (steno.toasts.length > 1) steno.dismiss(steno.toasts.at(-1)!.id);
  expect(steno.jobs).toHaveLength(1);
  expect(steno.toasts, "the message is there already").toHaveLength(1);
  backend.edit = edit;
  await waitFor(() => expect(texts()[0]).toBe("Not lost."), { timeout: 8000 });
  await waitFor(() => expect(screen.queryByTestId("unwritten")).toBeNull());
  expect(steno.toasts).toEqual([]);
}, 15_000);

test("transcripts in which a replacement is not taken back are named", async () => {
  const replaced = { places: 6, transcripts: 5 };
  backend.countPlaces = backend.replaceAll = () => Promise.resolve(replaced);
  backend.undoReplacing = () => Promise.resolve({ undone: 1, left: ["One", "Two", "Three", "Four"] });
  await steno.editor?.replaceAll({ text: "the", case: false, whole_words: false, regular_expression: false }, "a", true);
  await steno.editor?.answerReplacing(true);
  steno.toasts.at(-1)?.action?.run();
  const said = t.editing.undoneExcept(1, list(["One", "Two", "Three", t.closing.more(1)]));
  await waitFor(() => expect(steno.toasts.map(({ text }) => text)).toContain(said));
});

test("who comes back to a segment before the program has its text finds what was typed", async () => {
  slow(100, 300);
  await fireEvent.input(await open(0), { target: { value: "First" } });
  await open(1);
  expect((await open(0)).value).toBe("First");
  await wait(200);
  await open(1);
  expect((await openAt(0, 5)).value, "answered, and not shown yet").toBe("First");
  await press("!");
  await waitFor(() => expect(texts()[0]).toBe("First!"));
});

test("of what was typed into a segment that is gone one is told", async () => {
  const input = await open(1);
  const id = steno.editor?.active ?? 0;
  slow(60, 10);
  // As when it is removed elsewhere at the same time.
  void backend.edit(1, { kind: "delete", segments: [id] });
  await fireEvent.input(input, { target: { value: "Too late." } });
  steno.editor?.close();
  await waitFor(() => expect(screen.getByText(t.editing.refused)).toBeTruthy());
});

test("whichever way another tab is chosen, the field is closed and its segment shown on the way back", async () => {
  const shown: (string | undefined)[] = [];
  HTMLElement.prototype.scrollIntoView = function () {
    shown.push(this.dataset["index"]);
  };
  const ways: [string, () => Promise<unknown>][] = [
    ["a click", () => click("tab-review")],
    ["an arrow key", async () => fireEvent.keyDown(await found("tab-text"), { key: "ArrowRight" })],
    ["a key", () => fireEvent.keyDown(window, { key: "u", ctrlKey: true })],
    ["to memory", () => click("tab-memory")],
  ];
  for (const [name, go] of ways) {
    await fireEvent.input(await open(5), { target: { value: `By ${name}.` } });
    await go();
    await waitFor(() => expect(steno.editor?.active, name).toBeNull());
    await waitFor(() => expect(texts()[5]).toBe(`By ${name}.`));
    shown.length = 0;
    await click("tab-text");
    await waitFor(() => expect(shown, name).toContain("5"));
  }
  HTMLElement.prototype.scrollIntoView = () => {};
});

test("speed, place and what was heard last are there again after a look elsewhere", async () => {
  const shown: (string | undefined)[] = [];
  HTMLElement.prototype.scrollIntoView = function () {
    shown.push(this.dataset["index"]);
  };
  const player = async () => [(await found("play-time")).textContent?.split(" ")[0], ((await found("play-speed")) as HTMLSelectElement).value];
  await fireEvent.change(await found("play-speed"), { target: { value: "1.5" } });
  for (let times = 0; times < 4; times++) await fireEvent.keyDown(window, { key: "F8" });
  expect(await player()).toEqual(["0:12", "1.5"]);
  const { place } = steno.editor ?? {};
  expect(place?.segment).toBe(steno.text?.at(4)?.id);
  for (const [away, back] of [["tab-memory", "tab-text"], ["view-settings", "view-recordings"]] as const) {
    await click(away);
    expect(screen.queryByTestId("play-time")).toBeNull();
    shown.length = 0;
    await click(back);
    expect(await player()).toEqual(["0:12", "1.5"]);
    expect(steno.editor?.place).toEqual(place);
    await waitFor(() => expect(shown).toContain("4"));
  }
  backend.drop(FILES.slice(1, 2));
  await waitFor(() => expect(steno.jobs.length).toBe(2));
  await waitFor(() => expect(steno.jobs.map(({ state }) => state)).toEqual(["finished", "finished"]));
  steno.select(2);
  await waitFor(async () => expect(await player(), "of the next recording only the speed is the same").toEqual(["0:00", "1.5"]));
  HTMLElement.prototype.scrollIntoView = () => {};
});

test("the cursor stays where something was taken back, done again or pasted", async () => {
  const before = texts()[0] ?? "";
  const [left, right] = [before.slice(0, 9), before.slice(9)];
  await openAt(0, 9);
  await press(" very much");
  await waitFor(() => expect(texts()[0]).toBe(`${left} very much${right}`));
  await key("z", { ctrlKey: true });
  await waitFor(() => expect(atCursor()).toEqual([left, right]));
  await key("y", { ctrlKey: true });
  await waitFor(() => expect(atCursor()).toEqual([`${left} very much`, right]));
  await press(",\n indeed");
  expect(atCursor()).toEqual([`${left} very much, indeed`, right]);
});

test("a line break that is pasted into a space leaves no line", async () => {
  const input = await openAt(0, 5);
  const { value } = input;
  await press("\n");
  expect([input.value, input.selectionStart]).toEqual([value, 6]);
});

test("while characters are put together nothing is written and the field is left alone", async () => {
  const before = texts();
  const input = await openAt(0, 9);
  const { edit } = backend;
  let edits = 0;
  backend.edit = (...asked) => {
    edits++;
    return edit(...asked);
  };
  await press("1");
  await fireEvent.compositionStart(input);
  const whole = `${before[0]?.slice(0, 9)}1${before[0]?.slice(9)}`;
  input.value = `${before[0]?.slice(0, 9)}1に${before[0]?.slice(9)}`;
  await fireEvent.input(input, { isComposing: true });
  await wait(1000);
  expect([edits, texts()[0]]).toEqual([0, before[0]]);
  // The characters are not there yet, and something else changes the text.
  input.value = before[0] ?? "";
  await fireEvent.input(input, { isComposing: true });
  await edit(1, { kind: "set_text", segment: steno.editor?.active ?? 0, text: "Another text." });
  await wait(50);
  expect(input.value).toBe(before[0]);
  input.value = `${whole}日本`;
  await fireEvent.compositionEnd(input);
  await waitFor(() => expect(texts()[0]).toBe(`${whole}日本`));
  expect(edits).toBe(1);
});

test("what is put together while a segment is split is waited for", async () => {
  const [first = "", ...rest] = texts();
  slow(40, 40);
  const input = await openAt(0, 9);
  await key("Enter");
  await fireEvent.compositionStart(input);
  await press("n");
  await wait(300);
  expect(document.activeElement).toBe(input);
  input.setRangeText("日", 9, 10, "end");
  await fireEvent.compositionEnd(input);
  await waitFor(() => expect(texts()).toEqual([first.slice(0, 9), `日${first.slice(10)}`, ...rest]));
  expect(atCursor()).toEqual(["日", first.slice(10)]);
});

test("each text has its own direction, and a name does not turn what is around it", async () => {
  await steno.ask((asked) => asked.edit(1, { kind: "set_speaker", segments: [steno.text?.at(0)?.id ?? 0], speaker: "עדה" }));
  const input = await open(0);
  const words = input.parentElement?.querySelector(".words");
  expect([input.dir, words?.getAttribute("dir")]).toEqual(["auto", "auto"]);
  expect(input.closest(".edited")?.querySelector("strong bdi")?.textContent).toBe("עדה");
});

test("what is typed is written down by itself, taken back and done again", async () => {
  const before = texts();
  await fireEvent.input(await open(1), { target: { value: "Another text." } });
  expect(texts()[1], "not at every key").toBe(before[1]);
  await waitFor(() => expect(texts()[1]).toBe("Another text."));
  await click("undo");
  await waitFor(async () => expect((await field()).value).toBe(before[1]));
  await fireEvent.keyDown(await field(), { key: "Z", ctrlKey: true, shiftKey: true });
  await waitFor(async () => expect((await field()).value).toBe("Another text."));
});

test("Enter splits where the cursor stands, Backspace joins again", async () => {
  const before = texts();
  const input = await open(0);
  input.setSelectionRange(9, 9);
  await fireEvent.keyDown(input, { key: "Enter" });
  await waitFor(() => expect(texts().length).toBe(before.length + 1));
  expect(texts().slice(0, 2)).toEqual(["Thank you", "for taking the time on such a busy morning."]);
  await waitFor(async () => expect((await field()).value).toBe(texts()[1]));
  const second = await field();
  expect(second.selectionStart).toBe(0);
  await fireEvent.keyDown(second, { key: "Backspace" });
  await waitFor(() => expect(texts()).toEqual(before));
  await waitFor(async () => expect((await field()).selectionStart).toBe(10));
});

test("what is not finished when another segment is opened is written down all the same", async () => {
  await fireEvent.input(await open(0), { target: { value: "First." } });
  await fireEvent.input(await open(1), { target: { value: "Second." } });
  steno.editor?.close();
  await waitFor(() => expect(texts().slice(0, 2)).toEqual(["First.", "Second."]));
});

test("speakers are listed with what they say, renamed in one place and joined by a name", async () => {
  const ids = Array.from({ length: 4 }, (_, number) => steno.text?.at(number)?.id ?? 0);
  const give = (segments: number[], speaker: string) => steno.ask((asked) => asked.edit(1, { kind: "set_speaker", segments, speaker }));
  await give(ids.slice(0, 2), "Speaker 1");
  await give(ids.slice(2, 4), "Speaker 2");
  const panel = await found("speakers");
  const spoken = [0, 1].map((number) => steno.text?.at(number)).reduce((sum, one) => sum + (one ? one.end - one.start : 0), 0);
  await waitFor(() => expect(steno.text?.voices.get("Speaker 1")?.seconds).toBeCloseTo(spoken));
  expect(panel.textContent).toMatch(/2 speakers:.*Speaker 1.*Speaker 2/s);
  const shares = [...panel.querySelectorAll(".time")].map((one) => Number(/(\d+) %/.exec(one.textContent ?? "")?.[1]));
  expect(shares[0]! + shares[1]!).toBeGreaterThanOrEqual(99);
  const names = () => Array.from({ length: 4 }, (_, number) => steno.text?.at(number)?.speaker);
  const rename = async (number: number, name: string) => {
    const field = panel.querySelectorAll<HTMLInputElement>("[data-testid=speaker-rename]")[number];
    if (!field) throw new Error("there is no field");
    await fireEvent.change(field, { target: { value: name } });
  };
  await rename(0, "Ada");
  await waitFor(() => expect(names()).toEqual(["Ada", "Ada", "Speaker 2", "Speaker 2"]));
  // Colours stay while the order of first words does.
  expect(document.querySelector("[data-index='0'] .voice")?.getAttribute("data-voice")).toBe("0");
  await rename(1, "  ");
  expect(names()[2]).toBe("Speaker 2");
  await rename(1, "Ada");
  await waitFor(() => expect(new Set(names())).toEqual(new Set(["Ada"])));
  expect(screen.queryByText(t.editing.joinHint)).toBeNull();
  await click("undo");
  await waitFor(() => expect(names()[2]).toBe("Speaker 2"));
  expect(screen.queryByText(t.editing.joinHint)).not.toBeNull();
  // The list of names would take the Enter that is meant for the name.
  const field = panel.querySelectorAll<HTMLInputElement>("[data-testid=speaker-rename]")[1];
  if (!field) throw new Error("there is no field");
  await fireEvent.input(field, { target: { value: "Ad" } });
  expect(field.getAttribute("list")).toBe("known-speakers");
  await fireEvent.input(field, { target: { value: "Ada" } });
  expect(field.getAttribute("list")).toBeNull();
  expect(names()[2]).toBe("Speaker 2");
  // What is taken from the list needs no Enter.
  const edit = vi.spyOn(steno.backend, "edit");
  await fireEvent(field, new InputEvent("input", { inputType: "insertReplacementText" }));
  await fireEvent.change(field);
  await waitFor(() => expect(new Set(names())).toEqual(new Set(["Ada"])));
  expect(edit).toHaveBeenCalledOnce();
});

test("speakers are given to a run, renamed and joined", async () => {
  const speakers = () => steno.text?.pages.flat().map((segment) => segment.speaker) ?? [];
  await open(2);
  await click("speaker");
  await fireEvent.input(await found("speaker-name"), { target: { value: "Ada" } });
  await click("assign");
  await waitFor(() => expect(speakers()[2]).toBe("Ada"));
  await open(3);
  await click("speaker");
  await fireEvent.input(await found("speaker-name"), { target: { value: "Grace" } });
  await click("assign-run");
  await waitFor(() => expect(new Set(speakers().slice(3))).toEqual(new Set(["Grace"])));
  expect(speakers()[2]).toBe("Ada");
  // To the name of another one: both are one.
  await fireEvent.input(await found("speaker-name"), { target: { value: "Ada" } });
  await click("rename-speaker");
  await waitFor(() => expect(new Set(speakers().slice(2))).toEqual(new Set(["Ada"])));
});

test("some words of a segment are given to another speaker: it is split around them", async () => {
  const all = () => steno.text?.pages.flat() ?? [];
  const before = texts();
  const [first, second, ...rest] = (before[1] ?? "").split(" ");
  const input = await openAt(1, 0);
  // With keys alone: the words are selected, then the speaker's key, a name, Enter.
  input.setSelectionRange(`${first} `.length, `${first} ${second}`.length);
  await key("p", { ctrlKey: true });
  await fireEvent.input(await found("speaker-name"), { target: { value: "Ada" } });
  const form = (await found("speaker-name")).closest("form");
  expect(form?.querySelector("button")?.dataset["testid"], "what Enter presses").toBe("assign-words");
  await click("assign-words");
  await waitFor(() => expect(texts()).toEqual([before[0], first, second, rest.join(" "), ...before.slice(2)]));
  expect(all().slice(1, 4).map(({ speaker }) => speaker === "Ada")).toEqual([false, true, false]);
  await waitFor(() => expect(steno.editor?.active, "one writes on in those words").toBe(all()[2]?.id));
  await click("undo");
  await waitFor(() => expect(texts()).toEqual(before));

  // Nothing is selected: there is no such button.
  await openAt(1, 0);
  await key("p", { ctrlKey: true });
  await found("assign");
  expect(screen.queryByTestId("assign-words")).toBeNull();
});

test("one speaker becomes two: segments are ticked and given away, as one edit", async () => {
  const ids = Array.from({ length: 6 }, (_, number) => steno.text?.at(number)?.id ?? 0);
  await steno.ask((asked) => asked.edit(1, { kind: "set_speaker", segments: ids.slice(0, 5), speaker: "Speaker 1" }));
  const names = () => ids.map((_, number) => steno.text?.at(number)?.speaker);
  await waitFor(() => expect(names()[4]).toBe("Speaker 1"));
  const others = names()[5];
  await click("split-speaker");
  const ticks = () => screen.getAllByTestId<HTMLInputElement>("tick");
  await waitFor(() => expect(ticks().length, "only of that speaker").toBe(5));
  await waitFor(() => expect(document.activeElement, "the first is at hand").toBe(ticks()[0]));
  const give = await found("give");
  expect((give as HTMLButtonElement).disabled).toBe(true);
  await fireEvent.click(ticks()[1] ?? give);
  await fireEvent.keyDown(ticks()[1] ?? give, { key: "Enter" });
  const field = (await found("chosen-name")) as HTMLInputElement;
  expect(document.activeElement, "Enter leads to the name").toBe(field);
  expect(field.value).toBe("Speaker 2");
  await fireEvent.submit(field.form ?? give);
  await waitFor(() => expect(names()).toEqual(["Speaker 1", "Speaker 2", "Speaker 1", "Speaker 1", "Speaker 1", others]));
  await waitFor(() => expect(screen.queryByTestId("choosing")).toBeNull());
  await click("undo");
  await waitFor(() => expect(names()[1]).toBe("Speaker 1"));

  // From one segment on.
  await click("split-speaker");
  await waitFor(() => expect(ticks().length).toBe(5));
  await fireEvent.click(ticks()[2] ?? give);
  await click("choose-rest");
  expect((await found("chosen-count")).textContent).toBe(t.editing.chosen(3));
  await fireEvent.input(await found("chosen-name"), { target: { value: "Ada" } });
  await click("give");
  await waitFor(() => expect(names()).toEqual(["Speaker 1", "Speaker 1", "Ada", "Ada", "Ada", others]));

  // A speaker is added by hand; Escape gives up.
  await click("add-speaker");
  await waitFor(() => expect(ticks().length, "of all").toBeGreaterThan(5));
  await fireEvent.keyDown(ticks()[0] ?? give, { key: "Escape" });
  await waitFor(() => expect(screen.queryByTestId("choosing")).toBeNull());
  await click("add-speaker");
  await waitFor(() => expect(ticks().length).toBeGreaterThan(5));
  await fireEvent.click(ticks()[5] ?? give);
  await click("give");
  await waitFor(() => expect(names()[5]).toBe("Speaker 2"));
});

test("all places are replaced, by case and whole words if so wished", async () => {
  await fireEvent.input(await found("search"), { target: { value: "Of" } });
  await click("replacing");
  await fireEvent.input(await found("replacement"), { target: { value: "FROM" } });
  await click("case");
  await click("whole-words");
  const places = texts().join(" ").match(/\bOf\b/g)?.length ?? 0;
  await click("replace-all");
  await waitFor(() => expect(screen.getByText(t.editing.replaced(places, 1))).toBeTruthy());
  expect(texts().join(" ")).not.toMatch(/\bOf\b/);
  expect(texts().join(" ")).toMatch(/\bof\b/);
});

test("what was replaced is no longer marked, however long the text is searched anew", async () => {
  await fireEvent.input(await found("search"), { target: { value: "of" } });
  await click("replacing");
  await waitFor(() => expect(document.querySelectorAll("mark").length).toBeGreaterThan(1));
  vi.spyOn(steno, "find").mockReturnValue(new Promise(() => undefined));
  await fireEvent.input(await found("replacement"), { target: { value: "§§" } });
  await click("replace-all");
  await waitFor(() => expect(texts().join(" ")).toContain("§§"));
  expect(document.querySelectorAll("mark")).toHaveLength(0);
});

test("the time of a segment plays it", async () => {
  const hear = vi.fn();
  await waitFor(() => expect(screen.getAllByTestId("hear-segment").length).toBeGreaterThan(3));
  if (steno.editor) steno.editor.hear = hear;
  await fireEvent.click(screen.getAllByTestId("hear-segment")[2] ?? document.body);
  const segment = steno.text?.at(2);
  expect(hear.mock.calls).toEqual([[segment?.start, segment?.end]]);
  expect(screen.queryByTestId("segment-text"), "playing does not write").toBeNull();
  // Without a player there is nothing to press.
  if (steno.editor) steno.editor.hear = null;
  await waitFor(() => expect(screen.queryAllByTestId("hear-segment")).toEqual([]));
});

test("places are replaced one by one, the next one is shown, and one is left as it is", async () => {
  const whole = () => texts().join(" ");
  const count = () => screen.getByTestId("matches").textContent;
  const places = whole().match(/the/gi)?.length ?? 0;
  expect(places).toBeGreaterThan(3);
  await fireEvent.input(await found("search"), { target: { value: "the" } });
  await click("replacing");
  await waitFor(() => expect(count()).toBe(t.transcript.matches(1, places)));
  await fireEvent.input(await found("replacement"), { target: { value: "§" } });
  await click("replace-one");
  await waitFor(() => expect(count()).toBe(t.transcript.matches(1, places - 1)));
  expect(whole().match(/§/g)?.length).toBe(1);
  // One is passed over.
  await fireEvent.keyDown(await found("search"), { key: "Enter" });
  await waitFor(() => expect(count()).toBe(t.transcript.matches(2, places - 1)));
  const before = whole();
  await click("replace-one");
  await waitFor(() => expect(count()).toBe(t.transcript.matches(2, places - 2)));
  expect(whole().match(/§|the/gi)?.slice(0, 3).map((one) => one.toLowerCase())).toEqual(["§", "the", "§"]);
  // Exactly one place is marked as the one that is next.
  expect(document.querySelectorAll("mark.current")).toHaveLength(1);
  await click("undo");
  await waitFor(() => expect(whole()).toBe(before));
});

test("a regular expression is replaced with its groups, and one that is none is told", async () => {
  const before = texts();
  await click("replacing");
  await click("regular-expression");
  await fireEvent.input(await found("search"), { target: { value: "(of" } });
  const said = [...(await found("replace-problem")).querySelectorAll("p")].filter((line) => !line.closest("details"));
  expect(said, "one message says it").toHaveLength(1);
  expect(screen.queryByTestId("matches")).toBeNull();
  expect((await found("replace-all") as HTMLButtonElement).disabled).toBe(true);
  expect((await found("replace-one") as HTMLButtonElement).disabled).toBe(true);
  await fireEvent.input(await found("search"), { target: { value: "\\b(o)(f)\\b" } });
  await waitFor(() => expect(screen.queryByTestId("replace-problem")).toBeNull());
  await fireEvent.input(await found("replacement"), { target: { value: "$2$1" } });
  await waitFor(async () => expect((await found("replace-all") as HTMLButtonElement).disabled).toBe(false));
  await click("replace-all");
  await waitFor(() => expect(texts().join(" ")).toMatch(/\bfo\b/));
  expect(texts()).toEqual(before.map((text) => text.replace(/\b(o)(f)\b/gi, "$2$1")));
});

test("doubt is gone through by key and taken away", async () => {
  await fireEvent.keyDown(window, { key: "F9" });
  const first = await field();
  const word = first.value.slice(first.selectionStart, first.selectionEnd);
  expect(word.length, word).toBeGreaterThan(7);
  const { id } = steno.editor?.segment ?? { id: 0 };
  await fireEvent.keyDown(first, { key: "Enter", ctrlKey: true });
  await waitFor(() => expect(steno.editor?.active).not.toBe(id));
  expect(steno.text?.at(steno.text.numberOf(id))?.words.every((one) => one.probability === 1)).toBe(true);
});

test("uncertain words are marked unless that is switched off, and gone through in both directions", async () => {
  const marked = () => document.querySelectorAll(".words .unsure").length;
  expect(marked()).toBeGreaterThan(3);
  await click("mark-unsure");
  await waitFor(() => expect(marked()).toBe(0));
  expect(backend.look.hide_unsure).toBe(true);
  const chosen = async () => {
    const { value, selectionStart, selectionEnd } = await field();
    return `${steno.editor?.active} ${value.slice(selectionStart, selectionEnd)}`;
  };
  const words: string[] = [];
  for (let step = 0; step < 4; step++) {
    await fireEvent.keyDown(window, { key: "F9" });
    words.push(await chosen());
  }
  expect(new Set(words).size).toBe(4);
  for (const word of words.toReversed().slice(1)) {
    await fireEvent.keyDown(window, { key: "F9", shiftKey: true });
    expect(await chosen()).toBe(word);
  }
});

test("the most doubtful comes first, is accepted by one key, and that is undone", async () => {
  await fireEvent.keyDown(window, { key: "u", ctrlKey: true });
  const passages = async () => (await screen.findAllByTestId("passage")).length;
  const all = await passages();
  const current = () => screen.getAllByTestId("passage").findIndex((row) => row.getAttribute("aria-current"));
  expect(screen.getAllByTestId("passage")[0]?.textContent).toContain(t.review.gap);
  expect(current()).toBe(0);
  await fireEvent.keyDown(window, { key: "F10" });
  await waitFor(async () => expect(await passages()).toBe(all - 1));
  expect(steno.text?.ending?.gaps).toEqual([]);
  // What was flagged for itself is next.
  expect(screen.getAllByTestId("passage")[0]?.textContent).toContain(t.transcript.doubtful(["over_silence", "low_confidence"]));
  await fireEvent.keyDown(window, { key: "F9" });
  expect(current()).toBe(1);
  await fireEvent.keyDown(window, { key: "F10" });
  await waitFor(async () => expect(await passages()).toBe(all - 2));
  expect(current(), "the one behind it takes its place").toBe(1);
  await click("undo");
  await click("undo");
  await waitFor(async () => expect(await passages()).toBe(all));
  expect(steno.text?.ending?.gaps.length).toBe(1);
});

test("a passage is corrected where it is listed, and the list waits for that", async () => {
  await click("tab-review");
  await fireEvent.keyDown(window, { key: "F9" });
  await click("edit-passage");
  const before = screen.getAllByTestId("passage").length;
  const input = await field();
  await fireEvent.input(input, { target: { value: "All of it is certain." } });
  await waitFor(() => expect(texts()).toContain("All of it is certain."));
  expect(screen.getAllByTestId("passage").length).toBe(before);
  await fireEvent.keyDown(window, { key: "F10" });
  await waitFor(() => expect(screen.getAllByTestId("passage").length).toBe(before - 1));
  expect(steno.editor?.active).toBeNull();
});

test("what is replaced in all transcripts is asked for with its number, and taken back in all", async () => {
  backend.drop(FILES.slice(1, 2));
  await waitFor(() => expect(steno.jobs.filter(({ state }) => state === "finished").length).toBe(2), { timeout: 5000 });
  const before = texts();
  await fireEvent.input(await found("search"), { target: { value: "the" } });
  await click("replacing");
  await fireEvent.input(await found("replacement"), { target: { value: "THE" } });
  await click("everywhere");
  await click("replace-all");
  await waitFor(() => expect(steno.editor?.replacing?.found.transcripts).toBe(2));
  expect(texts(), "nothing is replaced before the answer").toEqual(before);
  await steno.editor?.answerReplacing(false);
  expect(texts()).toEqual(before);
  await click("replace-all");
  await waitFor(() => expect(steno.editor?.replacing).not.toBeNull());
  await steno.editor?.answerReplacing(true);
  await waitFor(() => expect(texts()).not.toEqual(before));
  const offered = () => steno.toasts.find(({ action }) => action?.label === t.history.undo);
  await waitFor(() => expect(offered()).toBeDefined());
  offered()?.action?.run();
  await waitFor(() => expect(texts()).toEqual(before));
});

test("another attempt stands beside the text, and is taken or not", async () => {
  const before = texts();
  for (const take of [false, true]) {
    await open(3);
    await fireEvent.click(document.querySelector(".edited [data-testid=attempt]") ?? document.body);
    await fireEvent.change(await found("attempt-model"), { target: { value: "3" } });
    await fireEvent.change(await found("attempt-language"), { target: { value: "da" } });
    await click("attempt-go");
    await screen.findByText(t.transcript.againRuns);
    expect(texts()).toEqual(before);
    backend.foundAgain(1);
    expect((await found("old-text")).textContent).toContain(before[3]);
    expect((await found("new-text")).textContent).toMatch(/whisper-large-v3, Danish.*said otherwise/);
    await click(take ? "take-new" : "keep-old");
    await waitFor(() => expect(screen.queryByTestId("comparison")).toBeNull());
    await waitFor(() => expect(texts()[3]).toBe(take ? "It was said otherwise, or so this model heard it." : before[3]));
  }
  await click("undo");
  await waitFor(() => expect(texts()).toEqual(before));
});

test("words that are uncertain are told from the others, also where something is looked for", () => {
  const said = (text: string, probability = 1) => ({ text, start: 0, end: 1, probability });
  const segment = { text: "The old ferry.", words: [said(" The"), said(" old", 0.2), said(" ferry.")] } as Segment;
  const shown = (one: Segment, query: string) =>
    pieces(one, query, 0.5).map(({ text, found, unsure }) => `${text}${found ? "*" : ""}${unsure ? "?" : ""}`);
  expect(shown(segment, "")).toEqual(["The ", "old?", " ferry."]);
  expect(shown(segment, "ld fer")).toEqual(["The ", "o?", "ld*?", " fer*", "ry."]);
  expect(shown(segment, "the")).toEqual(["The*", " ", "old?", " ferry."]);
  expect(shown({ ...segment, words: [] }, "old"), "without words").toEqual(["The ", "old*", " ferry."]);
  expect(shown({ ...segment, text: "Somebody else's." }, ""), "of other words").toEqual(["Somebody else's."]);
});

test("the history opens, finds, deletes and brings back", async () => {
  await steno.remove(1);
  await waitFor(() => expect(steno.jobs).toEqual([]));
  await click("view-history");
  const name = FILES[0]?.split("/").at(-1) ?? "";
  const row = await found("document");
  expect(row.textContent).toContain(name);
  await fireEvent.input(await found("history-search"), { target: { value: "ferries" } });
  expect((await screen.findAllByTestId("hit"))[0]?.textContent).toContain("the ferries between");
  await fireEvent.input(await found("history-search"), { target: { value: "" } });
  await fireEvent.click(within(await found("document")).getByTestId("choose-document"));
  await click("export-chosen");
  expect(backend.exported).toEqual([[1]]);
  await click("delete-document");
  await found("no-history");
  await click("toast-action");
  await click("open-document");
  expect((await found("title")).textContent).toBe(name);
  await waitFor(() => expect(texts()[0]).toBe(SENTENCES[0]));
});
