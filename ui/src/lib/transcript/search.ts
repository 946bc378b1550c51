import type { Text } from "./text.svelte";

/** Case and the accents that people leave out when they type do not matter. */
function fold(text: string): string {
  return text.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase();
}

/** The numbers of the segments in which the words occur. */
export function find(text: Text, query: string): number[] {
  const wanted = fold(query.trim());
  if (!wanted) return [];
  return text.pages.flat().flatMap((segment, index) => (fold(segment.text).includes(wanted) ? [index] : []));
}

/** A text in pieces, each with whether it is what was looked for. */
export function mark(text: string, query: string): [string, boolean][] {
  const wanted = fold(query.trim());
  if (!wanted) return [[text, false]];
  // A folded text may be shorter or longer: every character of it knows where it came from.
  let folded = "";
  const origin: number[] = [];
  let at = 0;
  for (const character of text) {
    for (const unit of fold(character)) {
      folded += unit;
      for (let index = 0; index < unit.length; index++) origin.push(at);
    }
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
