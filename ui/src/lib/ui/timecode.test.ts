import { expect, test } from "vitest";
import { fromTimecode, timecode } from "./timecode";

test.each([
  [0, "0:00:00.000"],
  [12.345, "0:00:12.345"],
  [59.9996, "0:01:00.000"],
  [3723.5, "1:02:03.500"],
  [36_000.001, "10:00:00.001"],
  [-1, "0:00:00.000"],
])("%d s are written %s", (seconds, expected) => expect(timecode(seconds)).toBe(expected));

test.each([
  ["0:00:12.345", 12.345],
  ["1:02:03,5", 3723.5],
  ["10:00:00.001", 36_000.001],
  ["2:07", 127],
  ["90:00", 5400],
  ["4523.25", 4523.25],
  ["12,3456", 12.346],
  [" 7 ", 7],
  ["１：０２：０３．５", 3723.5],
  ["", null],
  ["-1", null],
  ["0:-1", null],
  ["1:60", null],
  ["1:60:00", null],
  ["1:2:3:4", null],
  ["12.", null],
  ["1.5:00", null],
  ["1e3", null],
  ["soon", null],
])("%j is %j s", (text, expected) => expect(fromTimecode(text)).toBe(expected));

test("what is written is read as the same time, to the millisecond", () => {
  for (let millis = 0; millis < 40_000_000; millis += 7919) expect(fromTimecode(timecode(millis / 1000))).toBe(millis / 1000);
});
