import { expect, test } from "vitest";
import { find as matches, mark } from "./search";
import { Text } from "./text.svelte";

test.each([
  ["", "The ferry.", ["The ferry."]],
  ["ferry", "The ferry.", ["The ", "*ferry", "."]],
  ["FERRY", "Ferry, ferry!", ["*Ferry", ", ", "*ferry", "!"]],
  ["uber", "Über die Fähre", ["*Über", " die Fähre"]],
  ["fähre", "Uber die Fahre", ["Uber die ", "*Fahre"]],
  ["a b", "a  b a b", ["a  b ", "*a b"]],
  ["(", "f(x)", ["f", "*(", "x)"]],
  ["船", "大きな船。", ["大きな", "*船", "。"]],
  ["é", "cafe\u0301 bar", ["caf", "*e\u0301", " bar"]],
  ["istanbul", "İstanbul", ["*İstanbul"]],
  ["ΟΔΟΣ", "Η οδός.", ["Η ", "*οδός", "."]],
  ["елка", "Ёлка", ["*Ёлка"]],
  // A voiced sound is another one, composed or not.
  ["か", "がか", ["が", "*か"]],
  ["か", "か\u3099か", ["か\u3099", "*か"]],
  ["が", "か\u3099す", ["*か\u3099", "す"]],
  ["パン", "バンとパン", ["バンと", "*パン"]],
  ["한", "한국", ["*한", "국"]],
  ["하", "한국", ["한국"]],
  ["x", "no such thing", ["no such thing"]],
])("%s in %s", (query, text, expected) => {
  const pieces = mark(text, query);
  expect(pieces.map(([piece]) => piece).join("")).toBe(text);
  expect(pieces.map(([piece, found]) => (found ? `*${piece}` : piece))).toEqual(expected);
});

const find = (...wanted: Parameters<typeof matches>) => matches(...wanted).map(({ number }) => number);

test("segments are found by number", () => {
  const text = new Text(1);
  const segment = { id: 0, words: [], start: 0, end: 1, language: null, speaker: null, channel: null, translation: null, suspicions: [] };
  const segments = ["The quay.", "Ships.", "At the QUAY again."].map((text) => ({ ...segment, text }));
  text.apply({ job: 1, from: 0, segments, changes: [], editing: null, notices: [], chapters: [], live_text: null, ending: null });
  expect(find(text, " quay ")).toEqual([0, 2]);
  expect(find(text, "  ")).toEqual([]);
  const changes = [{ kind: "text" as const, at: 1, text: "Shíps at the quay.", word: 0, removed: 0, inserted: [] }];
  text.apply({ job: 1, from: 3, segments: [], changes, editing: null, notices: [], chapters: [], live_text: null, ending: null });
  expect(find(text, "quay"), "what was changed is found").toEqual([0, 1, 2]);
  expect(find(text, "ships")).toEqual([1]);
});
