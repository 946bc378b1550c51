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
