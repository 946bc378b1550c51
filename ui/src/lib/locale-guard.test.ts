import { expect, test } from "vitest";
import { usableLanguage } from "./locale-guard";

test.each([
  ["C", "en"],
  ["", "en"],
  ["POSIX-", "en"],
  ["de-DE", "de-DE"],
  ["pt_BR", "en"],
])("%s becomes %s", (tag, expected) => {
  const language = usableLanguage(tag);
  expect(language).toBe(expected);
  expect(() => new Intl.NumberFormat(language)).not.toThrow();
});
