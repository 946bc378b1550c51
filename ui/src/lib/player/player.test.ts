import { expect, test } from "vitest";
import type { Segment, Word } from "../generated/contract";
import { Text } from "../transcript/text.svelte";
import { actionOf } from "../keys/keys.svelte";
import { places, rangeOf, spokenAt, startOf } from "./spoken";

function segment(start: number, words: string[]): Segment {
  const spoken: Word[] = words.map((text, index) => ({ text, start: start + index, end: start + index + 0.5, probability: 1 }));
  const end = start + words.length;
  return { id: 0, start, end, text: words.join("").trim(), words: spoken, language: null, speaker: null, channel: null, translation: null, suspicions: [] };
}

function transcript(segments: Segment[]): Text {
  const text = new Text(1);
  text.apply({ job: 1, from: 0, segments, changes: [], editing: null, notices: [], chapters: [], live_text: null, ending: null });
  return text;
}

const text = transcript([segment(0, [" The", " quay", " was", " the", " quay."]), segment(10, [" Ships."]), { ...segment(20, [" x"]), words: [] }]);

test.each([
  [0, { segment: 0, word: 0 }],
  [1.2, { segment: 0, word: 1 }],
  [4.9, { segment: 0, word: 4 }],
  // Between words one that was just said is still marked, later none.
  [1.8, { segment: 0, word: 1 }],
  [1.95, null],
  [7, null],
  [10, { segment: 1, word: 0 }],
  [20.5, { segment: 2, word: null }],
  [99, null],
])("at %d s what is said is found", (time, expected) => {
  expect(spokenAt(text, time)).toEqual(expected);
});

test("the same word twice stands at two places, and a word that was changed at none too far", () => {
  expect(places(segment(0, [" The", " quay", " was", " the", " quay."]))).toEqual([[0, 3], [4, 8], [9, 12], [13, 16], [17, 22]]);
  expect(places({ text: "A ferry", words: segment(0, [" The", " ferry"]).words })).toEqual([[0, 3], [3, 7]]);
  expect(startOf(text, { segment: 0, word: 3 })).toBe(3);
  expect(startOf(text, { segment: 2, word: null })).toBe(20);
});

test("a word is found on the page, whatever elements it is divided into", () => {
  const root = document.createElement("div");
  root.innerHTML = `<li data-index="0"><span class="words">The q<mark>ua</mark>y was <i>the quay.</i></span></li>`;
  expect(rangeOf(root, text, { segment: 0, word: 1 })?.toString()).toBe("quay");
  expect(rangeOf(root, text, { segment: 0, word: 4 })?.toString()).toBe("quay.");
  expect(rangeOf(root, text, { segment: 1, word: 0 })).toBeNull();
});

test("keys mean the player unless somebody types or a button has them", () => {
  const [field, button] = [document.createElement("textarea"), document.createElement("button")];
  const press = (target: HTMLElement, init: KeyboardEventInit) => {
    const event = new KeyboardEvent("keydown", init);
    Object.defineProperty(event, "target", { value: target });
    return actionOf(event);
  };
  const space = { key: " ", code: "Space" };
  expect(press(document.body, space)).toBe("toggle");
  expect(press(field, space)).toBeNull();
  expect(press(button, space)).toBeNull();
  expect(press(field, { ...space, ctrlKey: true })).toBe("toggle");
  expect(press(field, { key: "F7" })).toBe("back");
  expect(press(document.body, { key: "ArrowLeft", ctrlKey: true })).toBe("back");
  expect(press(field, { key: "ArrowLeft", ctrlKey: true })).toBeNull();
  expect(press(document.body, { key: "F8" })).toBe("forward");
  expect(press(document.body, { key: "x" })).toBeNull();
});
