import type { Job, Progress } from "../generated/contract";

/** Time that telling speakers apart takes, over the length of a recording: on two cores (docs/measurements.md). */
const SPEAKERS = 0.03;

/** What an estimate goes by. */
export interface Known {
  /** Seconds of recording that the model last transcribed per second; null: none yet. */
  speed: number | null;
  /** Whether speakers are told apart, where a recording has no settings of its own. */
  speakers: boolean;
}

const stillToListen = (job: Job, wanted: boolean): number => (wanted ? SPEAKERS * (job.duration ?? 0) : 0);

/** Seconds that a whole recording takes; null where its length or the model's speed is not known. */
function whole(job: Job, known: Known): number | null {
  if (job.duration === null || !known.speed) return null;
  // One that runs has the settings that it began with.
  const wanted = job.state === "running" ? job.speakers : (job.own?.speakers ?? known.speakers);
  // What was done before it was stopped is not done again.
  const done = job.starts_over ? 0 : (job.reached ?? 0);
  return Math.max(0, job.duration - done) / known.speed + stillToListen(job, wanted);
}

/** Seconds until a running recording is done, all stages together; null where nothing says how long they take. */
export function jobLeft(job: Job, known: Known): number | null {
  const { progress, elsewhere } = job;
  if (elsewhere?.waiting || (elsewhere?.sent ?? null) !== null) return null;
  switch (progress?.stage) {
    case "transcribe":
      return progress.left === null ? null : progress.left + stillToListen(job, job.speakers);
    case "speaker_model":
    case "diarize":
    case "align":
    case "embedding_model":
    case "embed":
    case "adapt":
      return progress.left;
    default:
      // It is being read: how fast the model is, the recording before says.
      return whole(job, known);
  }
}

/** Seconds until all that runs and waits is done; null where one of them can't be estimated, or nothing waits. */
export function queueLeft(jobs: Job[], known: Known): number | null {
  const running = jobs.find(({ state }) => state === "running");
  const waiting = jobs.filter(({ state }) => state === "waiting");
  if (!running || waiting.length === 0) return null;
  const each = [jobLeft(running, known), ...waiting.map((job) => whole(job, known))];
  return each.reduce((sum, one) => (sum === null || one === null ? null : sum + one), 0);
}

/** How much of a stage is done, 0 to 1; undefined where that is not known. */
export const shareOf = ({ position, duration }: Progress): number | undefined => (duration ? Math.min(1, position / duration) : undefined);
