import type { Editor } from "./editor.svelte";

/** Writes where a text was clicked twice. */
export function openAtPoint(editor: Editor, event: MouseEvent): void {
  const words = event.target instanceof Element ? event.target.closest(".words") : null;
  const row = words?.closest("[data-segment]");
  if (!row || !words) return;
  const at = placeIn(words, event);
  editor.open(Number(row.getAttribute("data-segment")), at === null ? null : { from: at, to: at });
}

/** How many characters of a text lie before a place of the page. */
function placeIn(words: Element, { clientX, clientY }: MouseEvent): number | null {
  const place = document.caretRangeFromPoint?.(clientX, clientY);
  if (!place || !words.contains(place.startContainer)) return null;
  const before = document.createRange();
  before.setStart(words, 0);
  before.setEnd(place.startContainer, place.startOffset);
  return before.toString().length;
}
