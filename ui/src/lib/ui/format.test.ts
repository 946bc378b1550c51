import { afterEach, describe, expect, test } from "vitest";
import { setLocale } from "../locale.svelte";
import { clock, colon, factor, list, memorySize, span } from "./format";

describe("clock", () => {
  test.each([
    [0, "0:00"],
    [7.99, "0:07"],
    [754, "12:34"],
    [3723, "1:02:03"],
    [36_000, "10:00:00"],
    [-1, "0:00"],
  ])("%d s is %s", (seconds, expected) => expect(clock(seconds)).toBe(expected));
});

describe("span", () => {
  test.each([
    [0.2, "5 s"],
    [17, "20 s"],
    [58, "1 min"],
    [200, "3 min"],
    [3590, "1 h"],
    [4700, "1 h 20 min"],
    [7170, "2 h"],
    [7198, "2 h"],
  ])("%d s are %s", (seconds, expected) => expect(span(seconds, "en")).toBe(expected));
});

test.each([
  ["de", "1 Std. 20 min"],
  ["es", "1 h 20 min"],
  ["fr", "1 h 20 min"],
  ["zh", "1 小时 20 分钟"],
  ["ja", "1時間20分"],
] as const)("an hour and twenty minutes in %s", (language, expected) => expect(span(4700, language)).toBe(expected));

describe("numbers follow the language", () => {
  afterEach(() => setLocale("en"));

  test.each([
    ["en", "3.2", "1.5 GB", "640 MB", "a, b", "a: b"],
    ["de", "3,2", "1,5 GB", "640 MB", "a, b", "a: b"],
    ["fr", "3,2", "1,5 Go", "640 Mo", "a, b", "a\u202f: b"],
    ["ja", "3.2", "1.5 GB", "640 MB", "a、b", "a：b"],
    ["zh-Hans", "3.2", "1.5 GB", "640 MB", "a、b", "a：b"],
  ])("%s", (language, speed, gigabytes, megabytes, words, pair) => {
    setLocale(language);
    // Which spaces stand before units, and whether, is left to `Intl`.
    const plain = (text: string) => text.replace(/\s/g, "");
    expect(factor(3.21)).toBe(speed);
    expect([memorySize(1.5 * 2 ** 30), memorySize(640 * 2 ** 20)].map(plain)).toEqual([gigabytes, megabytes].map(plain));
    expect(list(["a", "b"])).toBe(words);
    expect(`${list(["a"])}${colon()}b`).toBe(pair);
  });
});
