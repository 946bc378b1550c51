/** Milliseconds; what is hidden draws nothing. */
const HIDDEN = 1000;

/** Once all that is there now is on the screen. */
export function drawn(): Promise<void> {
  return new Promise((resolve) => {
    requestAnimationFrame(() => requestAnimationFrame(() => resolve()));
    setTimeout(resolve, HIDDEN);
  });
}
