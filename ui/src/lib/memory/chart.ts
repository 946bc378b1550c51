import uPlot from "uplot";
import type { Stage } from "../generated/contract";
import { t } from "../text";
import { colon, memorySize, seconds } from "../ui/format";
import { axisTop, CRITICAL, ELEVATED, type Band, type Series } from "./series";

/** Pixels of a row of stages, and between two of them. */
const ROW = 4;
const GAP = 2;

const STAGES: Stage[] = ["preprocess", "speech_model", "transcribe", "speaker_model", "diarize", "align"];

/** A colour of the page's style sheet. */
export function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

export function stageColour(stage: Stage): string {
  return colour(`stage-${STAGES.indexOf(stage) + 1}`);
}

export interface Shown {
  series: Series;
  bands: Band[];
}

/** The chart in the page's colours of now; `shown` says what is to be drawn. */
export function options(width: number, height: number, shown: () => Shown, onCursor: (index: number | null) => void): uPlot.Options {
  const muted = colour("muted");
  const line = { stroke: colour("line"), width: 1 };
  const axis: uPlot.Axis = { stroke: muted, grid: line, ticks: line, font: "12px system-ui, sans-serif" };
  return {
    width,
    height,
    scales: { x: { time: false }, y: { range: () => [0, axisTop(shown().series)] } },
    legend: { show: false },
    cursor: { drag: { x: false, y: false }, points: { size: 8 } },
    padding: [8, 16, 0, 0],
    axes: [
      { ...axis, values: (_, splits) => splits.map((at) => (Number.isInteger(at) ? seconds(at) : "")), size: 32, grid: { show: false } },
      { ...axis, values: (_, splits) => splits.map((bytes) => (bytes === 0 ? "0" : memorySize(bytes))), size: 72, splits: (plot) => splits(plot.scales["y"]?.max ?? 0) },
    ],
    series: [
      {},
      { fill: colour("chart-others"), stroke: colour("line-strong"), width: 1, points: { show: false } },
      { fill: colour("chart-ours"), stroke: colour("accent"), width: 2, points: { show: false } },
      { stroke: colour("accent"), width: 1, dash: [2, 3], points: { show: false } },
    ],
    hooks: {
      drawClear: [(plot) => drawBands(plot, shown().bands)],
      draw: [(plot) => drawLimits(plot, shown().series.total), (plot) => drawMarks(plot, shown().series)],
      setCursor: [(plot) => onCursor(plot.cursor.idx ?? null)],
    },
  };
}

/** In the order of the series: time, both together, ours, ours at its highest. */
export function data({ times, used, ours, peaks }: Series): uPlot.AlignedData {
  return [times, used, ours, peaks];
}

/** Round amounts in binary units. */
function splits(most: number): number[] {
  const rough = Math.max(1, most / 5);
  const power = 2 ** Math.floor(Math.log2(rough));
  const step = power * (rough / power > 1.5 ? 2 : 1);
  return Array.from({ length: Math.floor(most / step) + 1 }, (_, index) => index * step);
}

function drawBands(plot: uPlot, bands: Band[]): void {
  const { ctx, bbox } = plot;
  const ratio = uPlot.pxRatio;
  ctx.save();
  for (const band of bands) {
    const left = plot.valToPos(band.start, "x", true);
    const right = Math.max(left + ratio, plot.valToPos(band.end, "x", true));
    ctx.fillStyle = stageColour(band.stage);
    ctx.globalAlpha = 0.1;
    ctx.fillRect(left, bbox.top, right - left, bbox.height);
    ctx.globalAlpha = 1;
    ctx.fillRect(left, bbox.top + band.row * (ROW + GAP) * ratio, right - left, ROW * ratio);
  }
  ctx.restore();
}

/** Lines at the limit and at shares of it; a limit beyond the axis is named at its end. */
function drawLimits(plot: uPlot, total: number): void {
  const most = plot.scales["y"]?.max ?? 0;
  if (total > most) {
    const { ctx, bbox } = plot;
    ctx.save();
    ctx.fillStyle = colour("muted");
    ctx.font = `${12 * uPlot.pxRatio}px system-ui, sans-serif`;
    ctx.textAlign = "right";
    ctx.fillText(`${t.memory.limit}${colon()} ${memorySize(total)} ↑`, bbox.left + bbox.width - 4 * uPlot.pxRatio, bbox.top + (STAGES.length * (ROW + GAP) + 14) * uPlot.pxRatio);
    ctx.restore();
  }
  for (const [share, name] of [[ELEVATED, "warn"], [CRITICAL, "bad"], [1, "text"]] as const) {
    if (total * share > most) continue;
    // On a row of pixels, not between two.
    const y = Math.round(plot.valToPos(total * share, "y", true)) + 0.5;
    const { left, width } = plot.bbox;
    stroke(plot, colour(name), share < 1 ? [6, 4] : [], [[left, y], [left + width, y]]);
  }
}

/** A tick at the foot for every checkpoint. */
function drawMarks(plot: uPlot, { times }: Series): void {
  const bottom = plot.bbox.top + plot.bbox.height;
  const size = 6 * uPlot.pxRatio;
  let last = -Infinity;
  for (const time of times) {
    const x = plot.valToPos(time, "x", true);
    // Of ten thousand batches a screen shows no more than its pixels.
    if (x - last < 2) continue;
    last = x;
    stroke(plot, colour("muted"), [], [[x, bottom - size], [x, bottom]]);
  }
}

function stroke(plot: uPlot, style: string, dash: number[], points: [number, number][]): void {
  const { ctx } = plot;
  ctx.save();
  ctx.strokeStyle = style;
  ctx.lineWidth = uPlot.pxRatio;
  ctx.setLineDash(dash.map((length) => length * uPlot.pxRatio));
  ctx.beginPath();
  points.forEach(([x, y], index) => (index === 0 ? ctx.moveTo(x, y) : ctx.lineTo(x, y)));
  ctx.stroke();
  ctx.restore();
}

/** The chart as a picture on the page's ground, with a line of text above it. */
export async function picture(plot: uPlot, title: string): Promise<Uint8Array> {
  const source = plot.ctx.canvas;
  const head = 32 * uPlot.pxRatio;
  const canvas = document.createElement("canvas");
  canvas.width = source.width;
  canvas.height = source.height + head;
  const ctx = canvas.getContext("2d");
  if (!ctx) throw new Error("there is no canvas");
  ctx.fillStyle = colour("surface");
  ctx.fillRect(0, 0, canvas.width, canvas.height);
  ctx.fillStyle = colour("text");
  ctx.font = `${14 * uPlot.pxRatio}px system-ui, sans-serif`;
  ctx.fillText(title, 16 * uPlot.pxRatio, 22 * uPlot.pxRatio);
  ctx.drawImage(source, 0, head);
  const blob = await new Promise<Blob | null>((done) => canvas.toBlob(done, "image/png"));
  if (!blob) throw new Error("the picture could not be made");
  return new Uint8Array(await blob.arrayBuffer());
}
