import { fireEvent, render, screen } from "@testing-library/svelte";
import { expect, test } from "vitest";
import { t } from "../text";
import SearchBar from "./SearchBar.svelte";
import { Text } from "./text.svelte";

const segment = { id: 0, words: [], start: 0, end: 1, language: null, speaker: null, channel: null, translation: null, suspicions: [] };

function show(...said: string[]) {
  const text = new Text(1);
  const segments = said.map((text) => ({ ...segment, text }));
  text.apply({ job: 1, from: 0, segments, changes: [], editing: null, notices: [], chapters: [], live_text: null, ending: null });
  const shown: number[] = [];
  render(SearchBar, { text, query: "", show: (number: number) => shown.push(number) });
  const field = screen.getByTestId("search");
  return {
    shown,
    count: () => screen.getByTestId("matches").textContent,
    type: (value: string) => fireEvent.input(field, { target: { value } }),
    enter: (shiftKey = false) => fireEvent.keyDown(field, { key: "Enter", shiftKey }),
    correct(at: number, by: string) {
      const changes = [{ kind: "text" as const, at, text: by, word: 0, removed: 0, inserted: [] }];
      text.apply({ job: 1, from: text.length, segments: [], changes, editing: null, notices: [], chapters: [], live_text: null, ending: null });
    },
  };
}

test("a place that is corrected is not looked for any more, and the next one is the one behind it", async () => {
  const { shown, count, type, enter, correct } = show("A ferry.", "Quiet.", "Ferry two.", "Ferry three.", "Ferry four.");
  await type("ferry");
  for (const [at, corrected] of [[0, "A fairy."], [2, "Fairy two."], [3, "Fairy three."]] as const) {
    expect(shown.at(-1)).toBe(at);
    correct(at, corrected);
    await enter();
  }
  expect(shown).toEqual([0, 2, 3, 4]);
  expect(count()).toBe(t.transcript.matches(1, 1));
});

test("the count never says more than there are", async () => {
  const { shown, count, type, enter, correct } = show("Ferry.", "Ferry.", "Ferry.");
  await type("ferry");
  await enter(true);
  expect([shown.at(-1), count()]).toEqual([2, t.transcript.matches(3, 3)]);
  correct(2, "Fairy.");
  await expect.poll(count).toBe(t.transcript.matches(2, 2));
  await enter();
  expect([shown.at(-1), count()]).toEqual([0, t.transcript.matches(1, 2)]);
  await enter(true);
  expect([shown.at(-1), count()]).toEqual([1, t.transcript.matches(2, 2)]);
});

test("another letter begins at the first place again", async () => {
  const { shown, count, type, enter } = show("Far.", "Ferry.", "Ferry.");
  await type("f");
  await enter();
  await enter();
  expect(shown.at(-1)).toBe(2);
  await type("fe");
  expect([shown.at(-1), count()]).toEqual([1, t.transcript.matches(1, 2)]);
  await type("fex");
  expect(count()).toBe(t.transcript.matches(1, 0));
  await enter();
  expect(shown.at(-1)).toBe(1);
});

test("every place counts, also several in one segment", async () => {
  const { shown, count, type, enter } = show("Ferry to ferry.", "Quiet.", "Ferry.");
  await type("ferry");
  expect([shown.at(-1), count()]).toEqual([0, t.transcript.matches(1, 3)]);
  await enter();
  expect([shown.at(-1), count()]).toEqual([0, t.transcript.matches(2, 3)]);
  await enter();
  expect([shown.at(-1), count()]).toEqual([2, t.transcript.matches(3, 3)]);
  await enter();
  expect([shown.at(-1), count()]).toEqual([0, t.transcript.matches(1, 3)]);
  await enter(true);
  await enter(true);
  expect([shown.at(-1), count()]).toEqual([0, t.transcript.matches(2, 3)]);
});
