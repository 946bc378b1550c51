import type { Chapter, Editing, Ending, Notice, Segment, TextUpdate } from "../generated/contract";
import { Draft, pageOf, startsOf } from "./pages";

/** Colours of speakers in app.css. */
export const COLOURS = 8;

/** What one speaker says. */
export interface Voice {
  /** In the order in which speakers are first heard, from 0. */
  number: number;
  /** All of it, in seconds. */
  seconds: number;
  /** The longest segments, the longest first. */
  samples: { start: number; end: number }[];
}

/** So many samples tell who it is. */
const SAMPLES = 3;

/** What each page has of the speakers: an edit changes few pages, whatever the length of the text. */
const known = new WeakMap<Segment[], Map<string, Omit<Voice, "number">>>();

function voicesOn(page: Segment[]): Map<string, Omit<Voice, "number">> {
  let voices = known.get(page);
  if (!voices) {
    voices = new Map();
    for (const { speaker, start, end } of page) {
      if (!speaker) continue;
      const voice = voices.get(speaker);
      if (voice) {
        voice.seconds += end - start;
        voice.samples.push({ start, end });
      } else {
        voices.set(speaker, { seconds: end - start, samples: [{ start, end }] });
      }
    }
    for (const voice of voices.values()) voice.samples = longest(voice.samples);
    known.set(page, voices);
  }
  return voices;
}

function longest(samples: Voice["samples"]): Voice["samples"] {
  return samples.sort((a, b) => b.end - b.start - (a.end - a.start)).slice(0, SAMPLES);
}

function voicesOf(pages: Segment[][]): Map<string, Voice> {
  const voices = new Map<string, Voice>();
  for (const page of pages) {
    for (const [speaker, { seconds, samples }] of voicesOn(page)) {
      const voice = voices.get(speaker) ?? { number: voices.size, seconds: 0, samples: [] };
      voices.set(speaker, { number: voice.number, seconds: voice.seconds + seconds, samples: longest([...voice.samples, ...samples]) });
    }
  }
  return voices;
}

/** The text of one recording as it comes, and as it is edited. */
export class Text {
  pages = $state.raw<Segment[][]>([]);
  notices = $state.raw<Notice[]>([]);
  chapters = $state.raw<Chapter[]>([]);
  /** Titles of chapters, by the segments that they begin with. */
  headings: ReadonlyMap<number, string> = $derived(new Map(this.chapters.map(({ segment, title }) => [segment, title])));
  /** What is being written behind the segments; it may still change. */
  live = $state.raw<string | null>(null);
  ending = $state.raw<Ending | null>(null);
  /** Null: it can't be edited. */
  editing = $state.raw<Editing | null>(null);
  /** The number of the first segment of each page, and that behind the last. */
  starts = $derived(startsOf(this.pages));
  length = $derived(this.starts.at(-1) ?? 0);
  /** The speakers in the order in which they are first heard, with what they say. */
  voices: ReadonlyMap<string, Voice> = $derived(voicesOf(this.pages));
  #waiting: { revision: number; tell: () => void }[] = [];

  constructor(readonly job: number) {}

  apply(update: TextUpdate): void {
    const { from, segments, changes } = update;
    if (segments.length > 0 || from < this.length || changes.length > 0) {
      const draft = new Draft(this.pages);
      if (segments.length > 0 || from < this.length) draft.end(from, segments);
      for (const change of changes) draft.do(change);
      for (const [page, before] of draft.reworded) {
        const voices = known.get(before);
        if (voices) known.set(page, voices);
      }
      this.pages = draft.pages;
    }
    this.notices = update.notices;
    this.chapters = update.chapters;
    this.live = update.live_text;
    this.ending = update.ending;
    this.editing = update.editing;
    const revision = update.editing?.revision ?? 0;
    for (const one of this.#waiting.filter((one) => one.revision <= revision)) one.tell();
    this.#waiting = this.#waiting.filter((one) => one.revision > revision);
  }

  /** Once the text is there that has an edit. */
  seen(revision: number): Promise<void> {
    if ((this.editing?.revision ?? 0) >= revision) return Promise.resolve();
    return new Promise((tell) => this.#waiting.push({ revision, tell }));
  }

  /** The page that a segment is on, by number; for one behind the last, the last page that is not full. */
  pageOf(number: number): number {
    return pageOf(this.pages, this.starts, number);
  }

  at(number: number): Segment | undefined {
    const page = this.pageOf(number);
    return number < 0 ? undefined : this.pages[page]?.[number - (this.starts[page] ?? 0)];
  }

  /** The number of the segment with that id; -1 where it is not there. */
  numberOf(id: number): number {
    for (const [page, segments] of this.pages.entries()) {
      const index = segments.findIndex((segment) => segment.id === id);
      if (index >= 0) return (this.starts[page] ?? 0) + index;
    }
    return -1;
  }

  /** The number of the last segment that begins no later than a time; 0 where none does. */
  before(time: number): number {
    let [low, high] = [0, this.length];
    while (low + 1 < high) {
      const middle = (low + high) >> 1;
      const segment = this.at(middle);
      if (segment && segment.start <= time) low = middle;
      else high = middle;
    }
    return low;
  }

  speakers(): string[] {
    return [...this.voices.keys()].sort();
  }

  /** The number of a speaker's colour. */
  colour(speaker: string): number {
    return (this.voices.get(speaker)?.number ?? 0) % COLOURS;
  }

  plain(): string {
    return this.pages.flat().map((segment) => `${segment.text}\n`).join("");
  }
}
