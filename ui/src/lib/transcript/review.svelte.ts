import type { Passage } from "../generated/contract";
import type { Editor } from "./editor.svelte";

/** Names a passage as long as it is there. */
export const nameOf = ({ segment, start }: Passage): string => (segment === null ? `gap ${start}` : `${segment}`);

/** The passages of one text that should be listened to, the most doubtful first, and the one that is looked at. */
export class Review {
  count = $state(0);
  passages = $state.raw<Passage[]>([]);
  /** Each is heard as it comes. */
  aloud = $state(true);
  #chosen = $state<string | null>(null);
  #looking: Promise<void> | null = null;

  constructor(readonly editor: Editor) {}

  /** Of the passage that is looked at, in the list. */
  get at(): number {
    return this.passages.findIndex((passage) => nameOf(passage) === this.#chosen);
  }

  get current(): Passage | null {
    return this.passages[this.at] ?? null;
  }

  /** The list as it is now; where a passage is no longer in it, the one that took its place is looked at. */
  async look(): Promise<void> {
    // What was asked for before an edit may come without it.
    await this.#looking;
    this.#looking = this.#ask();
    await this.#looking;
  }

  choose(passage: Passage | undefined): void {
    if (!passage) return;
    this.editor.close();
    this.#chosen = nameOf(passage);
    if (this.aloud) this.editor.hear?.(passage.start, passage.end);
  }

  go(step: 1 | -1): void {
    this.choose(this.passages[Math.max(0, Math.min(this.at + step, this.passages.length - 1))]);
  }

  /** What was listened to is right; the next one comes. */
  async accept(): Promise<void> {
    const { current } = this;
    if (!current) return;
    const done = this.editor.acceptPassage(current);
    this.editor.close();
    if (!(await done)) return;
    await this.look();
    this.choose(this.current ?? undefined);
  }

  async #ask(): Promise<void> {
    const { at } = this;
    const review = await this.editor.steno.ask((backend) => backend.review(this.editor.text.job));
    if (!review) return;
    this.count = review.count;
    this.passages = review.passages;
    if (this.at >= 0) return;
    const next = review.passages[Math.max(0, Math.min(at, review.passages.length - 1))];
    this.#chosen = next ? nameOf(next) : null;
  }
}
