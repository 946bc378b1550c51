import type { Segment } from "../generated/contract";
import type { Text } from "../transcript/text.svelte";

/** A word of a transcript: the numbers of its segment and, in there, its own; null: the segment has no words of its own. */
export interface Spoken {
  segment: number;
  word: number | null;
}

/** Seconds after its end that a word still counts as being said, so that the mark does not flicker between two. */
const LINGER = 0.4;

/** What is said at a time: found by halving, however long the text. */
export function spokenAt(text: Text, time: number): Spoken | null {
  const index = text.before(time);
  const segment = text.at(index);
  if (!segment || time < segment.start || time > segment.end + LINGER) return null;
  const { words } = segment;
  if (words.length === 0) return { segment: index, word: null };
  let [low, high] = [0, words.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((words[middle]?.start ?? 0) <= time) low = middle + 1;
    else high = middle;
  }
  const word = words[low - 1];
  if (!word || time > word.end + LINGER) return null;
  return { segment: index, word: low - 1 };
}

/** When a word begins. */
export function startOf(text: Text, { segment, word }: Spoken): number | null {
  const found = text.at(segment);
  return (word === null ? found?.start : found?.words[word]?.start) ?? null;
}

/** Where each word stands in its segment's text, as [start, end]. */
export function places({ text, words }: Pick<Segment, "text" | "words">): [number, number][] {
  let at = 0;
  return words.map((word) => {
    const trimmed = word.text.trim();
    const found = text.indexOf(trimmed, at);
    const start = found < 0 ? at : found;
    at = Math.min(text.length, start + trimmed.length);
    return [start, at];
  });
}

/** The element that shows a segment's text. */
function shown(root: HTMLElement, segment: number): HTMLElement | null {
  return root.querySelector(`[data-index="${segment}"] .words`);
}

/** The part of the page that shows a word; null where it is not there. */
export function rangeOf(root: HTMLElement, text: Text, { segment, word }: Spoken): Range | null {
  const element = shown(root, segment);
  const found = text.at(segment);
  if (!element || !found) return null;
  const [start, end] = (word === null ? null : places(found)[word]) ?? [0, element.textContent?.length ?? 0];
  const range = document.createRange();
  range.selectNodeContents(element);
  // Whatever elements the text is divided into.
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  let before = 0;
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const length = node.textContent?.length ?? 0;
    if (start >= before && start <= before + length) range.setStart(node, start - before);
    if (end > before && end <= before + length) {
      range.setEnd(node, end - before);
      return range;
    }
    before += length;
  }
  return range;
}

/** The word at a place of the page; null where what is clicked there shows no segment, or is at work on one. */
export function spokenAtPoint(text: Text, target: Element, x: number, y: number): Spoken | null {
  const item = target.closest<HTMLElement>("[data-index]");
  const segment = Number(item?.dataset["index"]);
  const found = item && text.at(segment);
  if (!found || target.closest(".edited")) return null;
  const words = item.querySelector(".words");
  // Where nothing can be selected, a browser takes the nearest text that can, however far that is.
  const caret = document.caretRangeFromPoint?.(x, y);
  if (!caret || !words?.contains(caret.startContainer) || found.words.length === 0) return { segment, word: null };
  const until = document.createRange();
  until.selectNodeContents(words);
  until.setEnd(caret.startContainer, caret.startOffset);
  const at = until.toString().length;
  const word = places(found).findIndex(([, end]) => at <= end);
  return { segment, word: word < 0 ? found.words.length - 1 : word };
}

/** Scrolls to what is said, where what was said before is in view: a user who looks elsewhere is left there. */
export function follow(root: HTMLElement, before: number | null, segment: number): void {
  const view = root.querySelector(".text-scroller")?.getBoundingClientRect();
  const last = before === null ? undefined : shown(root, before)?.getBoundingClientRect();
  if (!view || !last || last.bottom < view.top || last.top > view.bottom) return;
  shown(root, segment)?.scrollIntoView({ block: "nearest" });
}

const NAME = "spoken";

/** Marks a part of the page without changing it; null: nothing. */
export function highlight(range: Range | null): void {
  // Component tests run where there is no such thing.
  if (typeof CSS === "undefined" || !("highlights" in CSS)) return;
  if (range) CSS.highlights.set(NAME, new Highlight(range));
  else CSS.highlights.delete(NAME);
}
