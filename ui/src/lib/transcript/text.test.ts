import { expect, test } from "vitest";
import type { Segment, TextUpdate } from "../generated/contract";
import { PAGE, Text } from "./text.svelte";

function segments(from: number, count: number, mark = ""): Segment[] {
  return Array.from({ length: count }, (_, index) => ({
    start: from + index,
    end: from + index + 1,
    text: `${from + index}${mark}`,
    language: null,
    speaker: null,
    channel: null,
    suspicions: [],
  }));
}

function update(from: number, segments: Segment[]): TextUpdate {
  return { job: 1, from, segments, notices: [], ending: null };
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
