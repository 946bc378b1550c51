import type { Ending, Notice, Segment, TextUpdate } from "../generated/contract";

/** Segments are kept in pages: a new one touches the last page only, however long the recording. */
export const PAGE = 100;

/** The text of one recording as it comes. */
export class Text {
  pages = $state.raw<Segment[][]>([]);
  notices = $state.raw<Notice[]>([]);
  ending = $state.raw<Ending | null>(null);
  length = $derived(this.pages.reduce((total, page) => total + page.length, 0));

  constructor(readonly job: number) {}

  apply(update: TextUpdate): void {
    const whole = Math.floor(update.from / PAGE);
    const pages = this.pages.slice(0, whole);
    const rest = [...(this.pages[whole] ?? []).slice(0, update.from % PAGE), ...update.segments];
    for (let start = 0; start < rest.length; start += PAGE) pages.push(rest.slice(start, start + PAGE));
    this.pages = pages;
    this.notices = update.notices;
    this.ending = update.ending;
  }

  /** The number of the last segment that begins no later than a time; 0 where none does. */
  before(time: number): number {
    let [low, high] = [0, this.length];
    while (low + 1 < high) {
      const middle = (low + high) >> 1;
      const segment = this.pages[Math.floor(middle / PAGE)]?.[middle % PAGE];
      if (segment && segment.start <= time) low = middle;
      else high = middle;
    }
    return low;
  }

  plain(): string {
    return this.pages.flat().map((segment) => `${segment.text}\n`).join("");
  }
}
