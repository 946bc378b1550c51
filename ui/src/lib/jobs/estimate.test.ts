import { expect, test } from "vitest";
import type { Job, Stage } from "../generated/contract";
import { jobLeft, queueLeft } from "./estimate";

function job(state: Job["state"], duration: number | null, stage: Stage | null = null, left: number | null = null, speakers = false): Job {
  const progress = stage && { stage, position: 0, duration, speed: 2, left };
  return { state, duration, progress, own: null, speakers } as Job;
}

const KNOWN = { speed: 10, speakers: false };
const SPEAKERS = { speed: 10, speakers: true };

test.each([
  // The seconds that reading takes say nothing of the job.
  ["read first", job("running", 600, "preprocess", 10), { speed: null, speakers: false }, null],
  ["read later", job("running", 600, "preprocess", 10), KNOWN, 60],
  ["model loaded", job("running", 600, "speech_model"), KNOWN, 60],
  ["transcribed", job("running", 600, "transcribe", 40), KNOWN, 40],
  ["transcribed, speakers follow", job("running", 600, "transcribe", 40, true), KNOWN, 58],
  ["begun before the switch was turned", job("running", 600, "transcribe", 40), SPEAKERS, 40],
  ["speakers", job("running", 600, "diarize", 5), SPEAKERS, 5],
  ["begun", job("running", null), KNOWN, null],
] as const)("%s: what is left of the whole job", (_, one, known, left) => {
  expect(jobLeft(one, known)).toBe(left);
});

test("what was done before a recording was stopped is not done again, unless it starts over", () => {
  const resumed = { ...job("running", 600, "speech_model"), reached: 450, starts_over: false };
  expect(jobLeft(resumed, KNOWN)).toBe(15);
  expect(jobLeft({ ...resumed, starts_over: true }, KNOWN)).toBe(60);
});

test("the queue takes as long as all that is in it, where that is known", () => {
  const running = job("running", 600, "transcribe", 40);
  expect(queueLeft([running, job("waiting", 300), job("finished", 999), job("held", 999)], KNOWN)).toBe(70);
  expect(queueLeft([running], KNOWN), "the job's own says it").toBeNull();
  expect(queueLeft([running, job("waiting", null)], KNOWN)).toBeNull();
  expect(queueLeft([job("waiting", 300)], KNOWN), "nothing runs").toBeNull();
  expect(queueLeft([running, job("waiting", 300)], { ...KNOWN, speed: null })).toBeNull();
});
