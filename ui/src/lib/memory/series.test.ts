import { describe, expect, test } from "vitest";
import type { Checkpoint, MemorySample, Stage, StageUse } from "../generated/contract";
import { axisTop, bands, csv, kinds, series, used } from "./series";

function sample(at: number, place: Checkpoint | number, ours: number | null, others: number | null = 10, peak = ours ?? 0): MemorySample {
  const levels = ours === null ? null : { ours, peak, others, free: 100 - ours - (others ?? 0), total: 100 };
  const [checkpoint, batch] = typeof place === "number" ? (["batch", place] as const) : [place, null];
  return { at, kind: "gpu", checkpoint, batch, levels };
}

function stage(stage: Stage, start: number, end: number | null, before: number, loaded: number | null = null): StageUse {
  return { stage, kind: "gpu", start, end, before, loaded, peak: before, after: null, recovered: null, verified: null };
}

const SAMPLES = [
  sample(0, "pipeline_start", 5),
  sample(1, "before_speech_model_load", 5),
  sample(2, "after_speech_model_load", 35),
  sample(3, 1, 50, null, 62),
  sample(4, 2, null),
  sample(5, "final_cleanup", 36),
];

test("others are stacked upon ours, and nobody’s word for nothing is a gap", () => {
  const lines = series(SAMPLES, "gpu");
  expect(lines.times).toEqual([0, 1, 2, 3, 5]);
  expect(lines.ours).toEqual([5, 5, 35, 50, 36]);
  expect(lines.used).toEqual([15, 15, 45, null, 46]);
  expect(lines.peaks).toEqual([5, 5, 35, 62, 36]);
  expect(lines.total).toBe(100);
  expect(kinds(SAMPLES)).toEqual(["gpu"]);
  expect(kinds([sample(0, "pipeline_start", null)])).toEqual([]);
});

describe("bands", () => {
  test.each([
    ["one after the other share a row", [[0, 2], [2, 4]], [0, 0]],
    ["what overlaps lies on rows of its own", [[0, 9], [1, 5], [2, 3], [5, 6]], [0, 1, 2, 1]],
    ["what has not ended lasts until now", [[0, null], [4, null]], [0, 1]],
  ] as const)("%s", (_, spans, rows) => {
    const stages = spans.map(([start, end]) => stage("transcribe", start, end, 0));
    expect(bands(stages, "gpu", 7).map((band) => band.row)).toEqual(rows);
    expect(bands(stages, "gpu", 7).at(-1)?.end).toBe(spans.at(-1)?.[1] ?? 7);
    expect(bands(stages, "host", 7)).toEqual([]);
  });
});

test("the measured peak is divided as far as can be told, and adds up", () => {
  const stages = [stage("speech_model", 1, null, 5, 35), stage("transcribe", 2.5, 4, 35)];
  expect(used(SAMPLES, stages, "gpu")).toEqual({ before: 5, weights: 30, work: 27, peak: 62 });
  // A model that was loaded for an earlier file counts as held before.
  expect(used([sample(0, "pipeline_start", 35), sample(1, 1, 50)], [], "gpu")).toEqual({ before: 35, weights: 0, work: 15, peak: 50 });
  expect(used([], [], "gpu")).toBeNull();
});

test("the table has every sample, and nothing in it breaks a spreadsheet", () => {
  const lines = csv([...SAMPLES, { ...sample(6, "before_trim", 1), kind: "host" }]).trimEnd().split("\n");
  expect(lines.length).toBe(SAMPLES.length + 2);
  expect(lines[0]).toBe("seconds,device,checkpoint,ours,peak,others,free,limit");
  expect(lines[4]).toBe("3.000,gpu,batch 1,50,62,,50,100");
  expect(lines[5]).toBe("4.000,gpu,batch 2,,,,,");
  expect(lines[7]).toBe("6.000,host,before_trim,1,1,10,89,100");
});

test.each([
  // ours, others, total: the end of the axis
  [50, 20, 100, 87.5],
  // A line on the floor would say nothing.
  [89, 300, 24_000, 111.25],
  [89, 3_000, 24_000, 111.25],
  [10, 80, 100, 12.5],
  [95, 4, 100, 112],
  [0, 0, 100, 1.25],
])("of %d used by Steno and %d by others of %d, the axis ends at %d", (ours, others, total, end) => {
  const one = sample(0, 1, ours, others);
  const lines = series([{ ...one, levels: one.levels && { ...one.levels, total } }], "gpu");
  expect(axisTop(lines)).toBeCloseTo(end);
});
