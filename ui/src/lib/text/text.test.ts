import { expect, test } from "vitest";
import { de } from "./de";
import { en } from "./en";

/** Texts that are the same in both languages on purpose. */
const SAME = new Set(["app", "models.parameters"]);

function leaves(texts: object, path = ""): [string, unknown][] {
  return Object.entries(texts).flatMap(([key, value]): [string, unknown][] =>
    typeof value === "object" && value !== null ? leaves(value, `${path}${key}.`) : [[`${path}${key}`, value]],
  );
}

test("German says everything that English says, and in German", () => {
  const german = new Map(leaves(de));
  const english = leaves(en);
  expect([...german.keys()].sort()).toEqual(english.map(([key]) => key).sort());
  for (const [key, text] of english) {
    if (typeof text === "string" && !SAME.has(key)) expect(german.get(key), key).not.toBe(text);
    if (typeof text === "string") expect(german.get(key), key).not.toBe("");
    // What is said with a number or a name is said by a function.
    if (typeof text === "function" && !SAME.has(key)) expect(String(german.get(key)), key).not.toBe(String(text));
  }
});

test("counted things have a form of their own for one", () => {
  for (const text of [en, de]) {
    for (const say of [text.drag, text.demonstration.waiting, text.transcript.gaps, text.closing.unfinished]) {
      expect(say(1)).toContain("1 ");
      expect(say(5)).toContain("5 ");
      expect(say(1).replace("1", "5")).not.toBe(say(5));
    }
  }
});
