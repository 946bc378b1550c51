import type { Segment, TextChange } from "../generated/contract";

/** Segments are kept in pages: what is new or changed touches one page only, however long the recording. */
export const PAGE = 40;

/** A page that edits made longer than this is divided. */
const MOST = 60;

/** The number of the first segment of each page, and that behind the last. */
export function startsOf(pages: Segment[][]): number[] {
  let next = 0;
  return [0, ...pages.map((page) => (next += page.length))];
}

/** The first index for which it is so, as it is for all that follow; `count` where there is none. */
export function firstThat(count: number, isSo: (index: number) => boolean): number {
  let [low, high] = [0, count];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (isSo(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** The page that a segment is on, by number; for one behind the last, the last page that is not full. */
export function pageOf(pages: Segment[][], starts: number[], number: number): number {
  const low = firstThat(pages.length, (page) => (starts[page + 1] ?? 0) > number);
  const last = pages.length - 1;
  return low > last && last >= 0 && (pages[last]?.length ?? 0) < PAGE ? last : low;
}

/** A text while it is changed. Pages that stay as they are stay the same arrays, the others are new ones. */
export class Draft {
  pages: Segment[][];
  #starts: number[];
  /** Pages in which nothing but texts changed, with what they were before. */
  readonly reworded = new Map<Segment[], Segment[]>();
  /** Pages that no other snapshot shares. */
  #own = new Set<Segment[]>();
  #last = 0;

  constructor(pages: Segment[][]) {
    this.pages = [...pages];
    this.#starts = startsOf(pages);
  }

  /** All from a number on are others. */
  end(from: number, segments: Segment[]): void {
    this.#splice(from, this.#length - from, segments, PAGE);
  }

  do(change: TextChange): void {
    switch (change.kind) {
      case "segments":
        return this.#splice(change.at, change.removed, change.inserted, MOST);
      case "text": {
        const { text, word, removed, inserted } = change;
        return this.#set(change.at, true, (segment) => {
          const words = segment.words.slice();
          words.splice(word, removed, ...inserted);
          return { ...segment, text, words };
        });
      }
      case "speaker":
        for (const [from, to] of change.ranges)
          for (let number = from; number < to; number++) this.#set(number, false, (segment) => ({ ...segment, speaker: change.speaker }));
    }
  }

  get #length(): number {
    return this.#starts.at(-1) ?? 0;
  }

  #splice(from: number, removed: number, segments: Segment[], most: number): void {
    // An empty last page has neither a beginning nor an end to be kept.
    const [first, last] = [from, from + removed].map((number) => pageOf(this.pages, this.#starts, number)) as [number, number];
    const head = (this.pages[first] ?? []).slice(0, from - (this.#starts[first] ?? 0));
    const tail = (this.pages[last] ?? []).slice(from + removed - (this.#starts[last] ?? 0));
    const rest = [...head, ...segments, ...tail];
    const size = rest.length > most ? PAGE : most;
    const pages: Segment[][] = [];
    for (let start = 0; start < rest.length; start += size) pages.push(rest.slice(start, start + size));
    for (const page of pages) this.#own.add(page);
    this.pages = [...this.pages.slice(0, first), ...pages, ...this.pages.slice(last + 1)];
    this.#starts = startsOf(this.pages);
  }

  /** The page of a number. Changes of many segments come in order: mostly it is the page of the last one. */
  #pageOf(number: number): number {
    const last = this.#last;
    const isThere = number >= (this.#starts[last] ?? Infinity) && number < (this.#starts[last + 1] ?? 0);
    if (!isThere) this.#last = pageOf(this.pages, this.#starts, number);
    return this.#last;
  }

  #set(number: number, isText: boolean, change: (segment: Segment) => Segment): void {
    const index = this.#pageOf(number);
    let page = this.pages[index];
    const place = number - (this.#starts[index] ?? 0);
    const segment = page?.[place];
    if (!page || !segment) return;
    if (!this.#own.has(page)) {
      const before = page;
      page = [...page];
      this.#own.add(page);
      this.reworded.set(page, before);
      this.pages[index] = page;
    }
    if (!isText) this.reworded.delete(page);
    page[place] = change(segment);
  }
}
