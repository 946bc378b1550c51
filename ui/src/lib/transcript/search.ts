import type { Place, Segment } from "../generated/contract";
import type { Text } from "./text.svelte";

/** Letters that people leave the accents of out when they type. A mark elsewhere makes another letter: が is not か. */
const ACCENTED = /([\p{Script=Latin}\p{Script=Greek}\p{Script=Cyrillic}])\p{M}+/gu;

/** Neither case nor accents matter. */
function fold(text: string): string {
  const small = text.toLowerCase();
  if (/^[\x00-\x7f]*$/.test(small)) return small;
  return small.normalize("NFD").replace(ACCENTED, "$1").normalize("NFC").replaceAll("ς", "σ");
}

/** A segment in which the words occur, by its number, and how often. */
export interface Match {
  number: number;
  count: number;
}

/** The segments in which the words occur, whatever their accents. */
export function find(text: Text, query: string): Match[] {
  const wanted = fold(query.trim());
  if (!wanted) return [];
  const found: Match[] = [];
  let number = 0;
  for (const page of text.pages) {
    const { whole, each } = folded(page);
    if (whole.includes(wanted)) {
      each.forEach((text, index) => {
        const count = occurrences(text, wanted);
        if (count > 0) found.push({ number: number + index, count });
      });
    }
    number += page.length;
  }
  return found;
}

/** How often the words occur in a text, without allocating: all of a long text is counted at every key. */
function occurrences(text: string, wanted: string): number {
  let count = 0;
  for (let at = text.indexOf(wanted); at >= 0; at = text.indexOf(wanted, at + wanted.length)) count++;
  return count;
}

/** The texts of a page as they are searched, and all of them, since most pages have nothing. */
interface Searched {
  whole: string;
  each: string[];
}

/** Long texts are searched at every key; a page that changes is another one. */
const known = new WeakMap<Segment[], Searched>();

function folded(page: Segment[]): Searched {
  let searched = known.get(page);
  if (!searched) {
    const each = page.map((segment) => fold(segment.text));
    searched = { each, whole: each.join("\n") };
    known.set(page, searched);
  }
  return searched;
}

/** The same of places that the program found. */
export function bySegment(places: Place[]): Match[] {
  const counts = new Map<number, number>();
  for (const { segment } of places) counts.set(segment, (counts.get(segment) ?? 0) + 1);
  return [...counts].map(([number, count]) => ({ number, count }));
}

/** A text in pieces, each with whether it lies in one of the places; these are in order and don't overlap. */
export function markPlaces(text: string, places: Place[]): [string, boolean][] {
  const pieces: [string, boolean][] = [];
  let done = 0;
  for (const { start, end } of places) {
    if (start > done) pieces.push([text.slice(done, start), false]);
    pieces.push([text.slice(start, end), true]);
    done = end;
  }
  if (done < text.length || pieces.length === 0) pieces.push([text.slice(done), false]);
  return pieces;
}

/** A text in pieces, each with whether it is what was looked for. */
export function mark(text: string, query: string): [string, boolean][] {
  const wanted = fold(query.trim());
  if (!wanted || !fold(text).includes(wanted)) return [[text, false]];
  // A folded text may be shorter or longer: every character of it knows where it came from.
  let folded = "";
  const origin: number[] = [];
  let at = 0;
  // A letter together with its marks.
  for (const [character] of text.matchAll(/\P{M}\p{M}*|\p{M}+/gu)) {
    const units = fold(character);
    folded += units;
    for (let index = 0; index < units.length; index++) origin.push(at);
    at += character.length;
  }
  origin.push(text.length);
  const pieces: [string, boolean][] = [];
  let done = 0;
  for (let hit = folded.indexOf(wanted); hit >= 0; hit = folded.indexOf(wanted, hit + wanted.length)) {
    const start = origin[hit] ?? text.length;
    const end = origin[hit + wanted.length] ?? text.length;
    if (start > done) pieces.push([text.slice(done, start), false]);
    pieces.push([text.slice(start, end), true]);
    done = end;
  }
  if (done < text.length) pieces.push([text.slice(done), false]);
  return pieces;
}
