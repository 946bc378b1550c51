import type { Place, Segment } from "../generated/contract";
import { mark, markPlaces } from "./search";

/** A stretch of a segment's text that looks the same. */
export interface Piece {
  text: string;
  /** It is what was looked for. */
  found: boolean;
  /** It is the place that was gone to. */
  current: boolean;
  /** The model was not sure of the word. */
  unsure: boolean;
}

/** What was found in a segment, where the program looks for it. */
export interface Found {
  places: Place[];
  current: Place | null;
}

/** A segment's text in as few pieces as show what was found, and the words that are less probable than `sure`. */
export function pieces(segment: Segment, query: string, sure: number, found: Found | null = null): Piece[] {
  const doubts = doubted(segment, sure);
  let at = 0;
  const marked = found ? markPlaces(segment.text, found.places) : mark(segment.text, query);
  return marked.flatMap(([text, isFound]) => {
    const parts = cut(text, at, doubts);
    const current = isFound && found?.current?.start === at;
    at += text.length;
    return parts.map(([text, unsure]) => ({ text, found: isFound, current, unsure }));
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
