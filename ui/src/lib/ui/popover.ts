/**
 * Places a popover of `rem` width below its button, aligned with one of the button's edges and within the window, and
 * keeps it there while it is open. To be called when it opens or closes: the button may have moved since.
 */
export function placeBelow(event: ToggleEvent, opener: HTMLElement, rem: number, edge: "left" | "right"): void {
  if (event.newState !== "open") return;
  const menu = event.currentTarget as HTMLElement;
  const place = () => {
    const button = opener.getBoundingClientRect();
    const width = rem * parseFloat(getComputedStyle(document.documentElement).fontSize);
    const left = edge === "left" ? button.left : button.right - width;
    menu.style.top = `${button.bottom + 8}px`;
    menu.style.left = `${Math.max(8, Math.min(left, innerWidth - width - 8))}px`;
    menu.style.maxHeight = `${innerHeight - button.bottom - 24}px`;
  };
  place();
  addEventListener("resize", place);
  menu.addEventListener("toggle", function closed({ newState }) {
    if (newState === "open") return;
    removeEventListener("resize", place);
    menu.removeEventListener("toggle", closed);
  });
}
