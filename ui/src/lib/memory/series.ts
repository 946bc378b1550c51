import { t } from "../text";
import type { DeviceKind, MemoryLevels, MemorySample, Stage, StageUse } from "../generated/contract";

/** From these shares of the limit on a device counts as full, and as nearly out. */
export const ELEVATED = 0.7;
export const CRITICAL = 0.85;

/** A sample of which something is known. */
export type Known = MemorySample & { levels: MemoryLevels };

/** What the chart draws of one device, in bytes; stacked, so that others begin where ours ends. */
export interface Series {
  samples: Known[];
  times: number[];
  ours: number[];
  /** Ours and others together; null where it is not known what others hold. */
  used: (number | null)[];
  /** The most of ours since the sample before. */
  peaks: number[];
  total: number;
}

/** Above the highest value there is room for the stages. */
const HEADROOM = 1.25;

/**
 * Where the axis ends: a little above what was used, or above Steno's part where other programs hold many times
 * as much, and never far beyond the limit.
 */
export function axisTop({ ours, used, peaks, total }: Series): number {
  const highest = Math.max(...ours, ...peaks, 1);
  const all = Math.max(highest, ...used.map((value) => value ?? 0));
  const shown = all > 4 * highest ? highest : all;
  return Math.min(shown * HEADROOM, Math.max(1, total) * 1.12);
}

/** Which devices there is something to show of, the one that computes first. */
export function kinds(samples: MemorySample[]): DeviceKind[] {
  return (["gpu", "host"] as const).filter((kind) => samples.some((sample) => sample.kind === kind && sample.levels));
}

export function series(all: MemorySample[], kind: DeviceKind): Series {
  const samples = all.filter((sample): sample is Known => sample.kind === kind && sample.levels !== null);
  const levels = samples.map((sample) => sample.levels);
  return {
    samples,
    times: samples.map((sample) => sample.at),
    ours: levels.map(({ ours }) => ours),
    used: levels.map(({ ours, others }) => (others === null ? null : ours + others)),
    peaks: levels.map(({ peak }) => peak),
    total: Math.max(0, ...levels.map(({ total }) => total)),
  };
}

/** A stage's stretch of time, on the lowest row that is free then. */
export interface Band {
  stage: Stage;
  start: number;
  end: number;
  row: number;
}

/** Stages last until the latest sample where they have not ended. */
export function bands(stages: StageUse[], kind: DeviceKind, latest: number): Band[] {
  const rows: number[] = [];
  return stages
    .filter((stage) => stage.kind === kind)
    .map(({ stage, start, end }) => {
      const until = end ?? latest;
      const free = rows.findIndex((busy) => busy <= start);
      const row = free < 0 ? rows.length : free;
      rows[row] = until;
      return { stage, start, end: until, row };
    });
}

/** What was held at its highest, divided as far as looks from outside can tell. */
export interface Used {
  /** Before anything of this job was loaded: the process, and what it had kept. */
  before: number;
  /** Models that this job loaded. */
  weights: number;
  /** Caches, activations and workspace. */
  work: number;
  peak: number;
}

export function used(all: MemorySample[], stages: StageUse[], kind: DeviceKind): Used | null {
  const { samples, peaks } = series(all, kind);
  const first = samples[0];
  if (!first) return null;
  const peak = Math.max(...peaks);
  const before = Math.min(first.levels.ours, peak);
  const loaded = stages.filter((one) => one.kind === kind && (one.stage === "speech_model" || one.stage === "speaker_model"));
  // A model's own peak is what it came to; of several only the largest lay there at once.
  const weights = Math.min(peak - before, Math.max(0, ...loaded.map((one) => (one.loaded ?? one.before) - one.before)));
  return { before, weights, work: peak - before - weights, peak };
}

/** Where in the job a sample was taken, in the user’s words. */
export function checkpointName({ checkpoint, batch }: MemorySample): string {
  return batch === null ? t.told.checkpoints[checkpoint] : t.told.batch(batch);
}

/** Every sample of every device as a table for spreadsheets; amounts in bytes. */
export function csv(samples: MemorySample[]): string {
  const head = ["seconds", "device", "checkpoint", "ours", "peak", "others", "free", "limit"];
  const rows = samples.map(({ at, kind, checkpoint, batch, levels }) => [
    at.toFixed(3), kind, batch === null ? checkpoint : `${checkpoint} ${batch}`, levels?.ours, levels?.peak, levels?.others, levels?.free, levels?.total,
  ]);
  return [head, ...rows].map((row) => `${row.map(cell).join(",")}\n`).join("");
}

function cell(value: string | number | null | undefined): string {
  const text = String(value ?? "");
  return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
