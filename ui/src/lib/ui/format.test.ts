import { describe, expect, test } from "vitest";
import { clock, span } from "./format";

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
