import { describe, expect, test } from "vitest";
import { Dragging, neighbour } from "./dragging.svelte";

const ORDER = [7, 3, 9, 1];
const ROWS = ORDER.map((job, index) => ({ job, top: index * 50, height: 50 }));

describe("dragging", () => {
  // Where the pointer is let go -> before which job it goes; undefined: it stays.
  test.each([
    [9, 10, 7],
    [9, 60, 3],
    [9, 110, undefined],
    [9, 140, undefined],
    [9, 500, null],
    [7, 190, null],
    [1, 500, undefined],
    [7, -20, undefined],
  ])("job %d let go at %d", (job, y, before) => {
    const dragging = new Dragging();
    dragging.begin(job);
    dragging.over(y, ROWS);
    expect(dragging.drop(ORDER)).toEqual(before === undefined ? undefined : { job, before });
    expect(dragging.job).toBeNull();
  });
});

test.each([
  [7, 1, 9],
  [9, 1, null],
  [1, 1, undefined],
  [7, -1, undefined],
  [3, -1, 7],
  [8, 1, undefined],
] as const)("the arrow keys move job %d by %d", (job, step, before) => {
  expect(neighbour(ORDER, job, step)).toBe(before);
});
