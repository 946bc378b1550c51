type Tell = (entry: IntersectionObserverEntry) => void;

/** What watches a scroller's content, and who is to be told of which part. */
interface Watch {
  observer: IntersectionObserver;
  tell: Map<Element, Tell>;
}

/** One for each scroller: hundreds of pages with one each take longer to open than to read. */
const watches = new WeakMap<Element, Watch>();

/** Tells when an element comes within that distance of its scroller's view, or leaves it; returns what ends that. */
export function whenNear(element: Element, margin: string, tell: Tell): () => void {
  const root = element.closest(".text-scroller");
  if (typeof IntersectionObserver === "undefined" || !root) return () => {};
  const watch = watches.get(root) ?? begin(root, margin);
  watch.tell.set(element, tell);
  watch.observer.observe(element);
  return () => {
    watch.observer.unobserve(element);
    watch.tell.delete(element);
  };
}

function begin(root: Element, rootMargin: string): Watch {
  const tell = new Map<Element, Tell>();
  const look = (entries: IntersectionObserverEntry[]) => {
    for (const entry of entries) tell.get(entry.target)?.(entry);
  };
  const watch = { observer: new IntersectionObserver(look, { root, rootMargin }), tell };
  watches.set(root, watch);
  return watch;
}
