import { expect, test } from "vitest";
import type { Segment, TextChange, TextUpdate } from "../generated/contract";
import { PAGE } from "./pages";
import { Text } from "./text.svelte";

function segments(from: number, count: number, mark = ""): Segment[] {
  return Array.from({ length: count }, (_, index) => ({
    id: from + index + 1,
    start: from + index,
    end: from + index + 1,
    text: `${from + index}${mark}`,
    language: null,
    speaker: null,
    channel: null,
    translation: null,
    suspicions: [],
    words: [],
  }));
}

function update(from: number, segments: Segment[]): TextUpdate {
  return { job: 1, from, segments, changes: [], editing: null, notices: [], chapters: [], live_text: null, ending: null };
}

function texts(text: Text): string[] {
  return text.plain().split("\n").slice(0, -1);
}

test("segments arrive one by one, in batches, and across pages", () => {
  const text = new Text(1);
  text.apply(update(0, segments(0, 1)));
  text.apply(update(1, segments(1, PAGE)));
  text.apply(update(PAGE + 1, segments(PAGE + 1, 2 * PAGE)));
  const all = segments(0, 3 * PAGE + 1).map((segment) => segment.text);
  expect(texts(text)).toEqual(all);
  expect(text.pages.map((page) => page.length)).toEqual([PAGE, PAGE, PAGE, 1]);
});

test("what is being written is no part of the text", () => {
  const text = new Text(1);
  text.apply({ ...update(0, segments(0, 1)), live_text: "and then" });
  expect([text.live, text.length]).toEqual(["and then", 1]);
  text.apply(update(1, segments(1, 1)));
  expect([text.live, text.length]).toEqual([null, 2]);
});

test("what was repaired at the end replaces what was shown, and what is gone goes", () => {
  const text = new Text(1);
  text.apply(update(0, segments(0, 2 * PAGE)));
  text.apply(update(PAGE + 3, segments(PAGE + 3, 2, " repaired")));
  expect(texts(text).length).toBe(PAGE + 5);
  expect(texts(text).slice(-3)).toEqual([`${PAGE + 2}`, `${PAGE + 3} repaired`, `${PAGE + 4} repaired`]);
  text.apply(update(0, []));
  expect(text.length).toBe(0);
});

test.each([
  [0, 0],
  [-1, 0],
  [1.5, 1],
  [PAGE, PAGE],
  [PAGE + 7.2, PAGE + 7],
  [9999, 2 * PAGE],
])("at %d s the place is in segment %d", (time, index) => {
  const text = new Text(1);
  text.apply(update(0, segments(0, 2 * PAGE + 1)));
  expect(text.before(time)).toBe(index);
  expect(new Text(1).before(time)).toBe(0);
});

test("a new segment leaves the pages before it untouched", () => {
  const text = new Text(1);
  text.apply(update(0, segments(0, 2 * PAGE + 1)));
  const before = text.pages;
  text.apply(update(2 * PAGE + 1, segments(2 * PAGE + 1, 1)));
  expect(text.pages[0]).toBe(before[0]);
  expect(text.pages[1]).toBe(before[1]);
  expect(text.pages[2]).not.toBe(before[2]);
});

test("changes are made one after the other, by number, however many there are", () => {
  const text = new Text(1);
  text.apply(update(0, segments(0, 4 * PAGE)));
  const before = text.pages;
  const word = (text: string) => ({ text, start: 0, end: 1, probability: 1 });
  const change = (...changes: TextChange[]) => text.apply({ ...update(text.length, []), changes });
  const all = segments(0, 4 * PAGE).map((segment) => segment.text);

  change({ kind: "text", at: PAGE + 1, text: "other words", word: 0, removed: 0, inserted: [word(" other"), word(" words")] });
  all[PAGE + 1] = "other words";
  expect(texts(text)).toEqual(all);
  expect(text.pages.map((page, index) => page === before[index])).toEqual([true, false, true, true]);
  expect(before[1]?.[1]?.text, "what others hold stays as it was").toBe(String(PAGE + 1));

  change(
    { kind: "text", at: PAGE + 1, text: "other things", word: 1, removed: 1, inserted: [word(" things")] },
    { kind: "segments", at: 0, removed: 1, inserted: segments(900, 2) },
    { kind: "segments", at: 2 * PAGE - 3, removed: 5, inserted: [] },
    { kind: "speaker", ranges: [[0, 2], [PAGE, PAGE + 2]], speaker: "Ada" },
  );
  all[PAGE + 1] = "other things";
  all.splice(0, 1, "900", "901");
  all.splice(2 * PAGE - 3, 5);
  expect(texts(text)).toEqual(all);
  expect(text.at(PAGE + 2)?.words.map((word) => word.text)).toEqual([" other", " things"]);
  expect(Array.from({ length: text.length }, (_, number) => number).filter((number) => text.at(number)?.speaker)).toEqual([0, 1, PAGE, PAGE + 1]);
  expect(text.pages.every((page) => page.length > 0 && page.length < 2 * PAGE)).toBe(true);
});

test("voices follow what is given to another speaker, also where texts changed before or with it", () => {
  const text = new Text(1);
  const spoken = segments(0, 3 * PAGE).map((segment, index) => ({ ...segment, speaker: index < PAGE ? "Ann" : "Bo" }));
  text.apply(update(0, spoken));
  const seconds = () => [...text.voices].map(([name, voice]) => [name, voice.seconds]);
  expect(seconds()).toEqual([["Ann", PAGE], ["Bo", 2 * PAGE]]);
  const reword = (at: number): TextChange => ({ kind: "text", at, text: "other", word: 0, removed: 0, inserted: [] });
  const give = (from: number, to: number): TextChange => ({ kind: "speaker", speaker: "Cy", ranges: [[from, to]] });
  const change = (...changes: TextChange[]) => text.apply({ ...update(3 * PAGE, []), changes });
  change(reword(1), reword(PAGE + 1));
  expect(seconds()).toEqual([["Ann", PAGE], ["Bo", 2 * PAGE]]);
  change(reword(2), give(2, 3), reword(4));
  expect(seconds()).toEqual([["Ann", PAGE - 1], ["Cy", 1], ["Bo", 2 * PAGE]]);
  change(give(3, 4), reword(3));
  expect(seconds()).toEqual([["Ann", PAGE - 2], ["Cy", 2], ["Bo", 2 * PAGE]]);
});
