import type { Job, Setup } from "../generated/contract";
import { t } from "../text";

const BEFORE = new Set<Job["state"]>(["held", "waiting"]);

/** Where a recording is transcribed, in words; null where that is never anywhere but here. */
export function placeOf(job: Job, setup: Setup | null): string | null {
  if (job.elsewhere) return job.elsewhere.place;
  const place = setup?.machine.place ?? null;
  if (place === null) return null;
  // What was begun here goes on here, and the program's own recording is for trying it.
  return BEFORE.has(job.state) && !job.sample && job.reached === null ? place : t.machine.here;
}

/** What a recording is doing. */
export function stateOf(job: Job): string {
  if (job.state !== "running" || !job.elsewhere) return t.state(job);
  const { place, sent, waiting } = job.elsewhere;
  if (waiting) return t.machine.waiting(place);
  return sent === null ? t.state(job) : t.machine.sending(Math.floor(sent * 100));
}

/** What is amiss with a transcript that is finished; null: nothing. */
export function warningOf({ not_saved, not_stored }: Job): string | null {
  if (not_stored) return t.save.notStored(t.errors[not_stored.code]);
  return not_saved && t.save.notSaved(t.errors[not_saved.code]);
}

/** What a recording that failed or was stopped does when it is asked to go on: in a few words, and with its name. */
export function againOf({ name, reached, starts_over }: Job): [string, string] {
  if (reached === null) return [t.job.retry, t.job.retryFile(name)];
  return starts_over ? [t.job.startAgain, t.job.startAgainFile(name)] : [t.job.resume, t.job.resumeFile(name)];
}
