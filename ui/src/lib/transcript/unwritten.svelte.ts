import { SvelteMap } from "svelte/reactivity";

/** Between attempts to write a text down, in milliseconds: the user frees space, or connects a disk. */
const AGAIN = 5000;

/** Texts of segments that could not be written down, by job and segment. They are sent again until they are. */
export class Unwritten {
  #jobs = new SvelteMap<number, SvelteMap<number, string>>();
  #timer: ReturnType<typeof setTimeout> | undefined;
  readonly #send: (job: number, segment: number, text: string) => Promise<void>;

  /** `send` tries again, without a message, and drops the text where that succeeds. */
  constructor(send: (job: number, segment: number, text: string) => Promise<void>) {
    this.#send = send;
  }

  of(job: number, segment: number): string | undefined {
    return this.#jobs.get(job)?.get(segment);
  }

  /** With such texts. */
  get jobs(): number[] {
    return [...this.#jobs.keys()];
  }

  has(job: number): boolean {
    return this.#jobs.has(job);
  }

  keep(job: number, segment: number, text: string): void {
    const texts = this.#jobs.get(job) ?? new SvelteMap();
    texts.set(segment, text);
    this.#jobs.set(job, texts);
    this.#timer ??= setTimeout(() => void this.#again(), AGAIN);
  }

  drop(job: number, segment: number): void {
    const texts = this.#jobs.get(job);
    if (texts?.delete(segment) && texts.size === 0) this.#jobs.delete(job);
  }

  /** The recording is no longer there. */
  forget(job: number): void {
    this.#jobs.delete(job);
  }

  /** Tries again for one recording, at once. */
  async send(job: number): Promise<void> {
    for (const [segment, text] of [...(this.#jobs.get(job) ?? [])]) await this.#send(job, segment, text);
  }

  async #again(): Promise<void> {
    for (const job of this.jobs) await this.send(job);
    this.#timer = this.#jobs.size > 0 ? setTimeout(() => void this.#again(), AGAIN) : undefined;
  }
}
