import type { Segment } from "../generated/contract";
import { mark } from "./search";

/** A stretch of a segment's text that looks the same. */
export interface Piece {
  text: string;
  /** It is what was looked for. */
  found: boolean;
  /** The model was not sure of the word. */
  unsure: boolean;
}

/** A segment's text in as few pieces as show what was found, and the words that are less probable than `sure`. */
export function pieces(segment: Segment, query: string, sure: number): Piece[] {
  const doubts = doubted(segment, sure);
  let at = 0;
  return mark(segment.text, query).flatMap(([text, found]) => {
    const parts = cut(text, at, doubts);
    at += text.length;
    return parts.map(([text, unsure]) => ({ text, found, unsure }));
  });
}

/** Where the words lie that are less probable; none where the words don't spell the text. */
function doubted({ text, words }: Segment, sure: number): [number, number][] {
  if (!words.some((word) => word.probability < sure)) return [];
  if (words.map((word) => word.text).join("").trim() !== text) return [];
  const places: [number, number][] = [];
  let at = 0;
  for (const [index, { text: said, probability }] of words.entries()) {
    const whole = index === 0 ? said.trimStart() : said;
    const space = whole.length - whole.trimStart().length;
    if (probability < sure) places.push([at + space, at + whole.trimEnd().length]);
    at += whole.length;
  }
  return places;
}

/** A stretch of the text that begins at a place, cut where doubt begins and ends. */
function cut(text: string, at: number, doubts: [number, number][]): [string, boolean][] {
  const parts: [string, boolean][] = [];
  let done = 0;
  for (const [start, end] of doubts) {
    const from = Math.max(done, start - at);
    const to = Math.min(text.length, end - at);
    if (from >= to) continue;
    if (from > done) parts.push([text.slice(done, from), false]);
    parts.push([text.slice(from, to), true]);
    done = to;
  }
  if (done < text.length) parts.push([text.slice(done), false]);
  return parts;
}
