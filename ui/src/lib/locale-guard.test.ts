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

test("numbers and names can be written whatever the system calls its language", async () => {
  const { locale, setLocale } = await import("./locale.svelte");
  for (const tag of ["C", "", "de-DE", "en"]) {
    setLocale(tag);
    expect(() => new Intl.NumberFormat(locale())).not.toThrow();
  }
  setLocale("en");
});
