import { fireEvent, render, screen, waitFor, within } from "@testing-library/svelte";
import { beforeAll, expect, test, vi } from "vitest";
import { FakeBackend } from "../backend/fake";
import type { Adapter, AdapterFigures, CorrectedSegment } from "../generated/contract";
import { Steno } from "../steno.svelte";
import { fillIn } from "../testing";
import { t } from "../text";
import { curves } from "./curves";
import Learning from "./Learning.svelte";

// jsdom has no canvas.
vi.mock("uplot", () => ({ default: class { setData() {} destroy() {} } }));

beforeAll(() => {
  fillIn();
  globalThis.ResizeObserver = class {
    observe() {}
    unobserve() {}
    disconnect() {}
  };
});

const FIGURES: AdapterFigures = {
  corrections: { words: 20, before: 9, after: 3, better: [["Zolmivane", 4], ["Ærø", 1]], worse: [] },
  learnt: null,
  others: { words: 300, before: 12, after: 12, better: [], worse: [["boat", 1]] },
};

const ADAPTER: Adapter = {
  name: "small-2026-11-29", bytes: 2_000_000, on: true, failure: null,
  card: {
    model: "small", base: "b", rank: 8, alpha: 16, created: "2026-11-29T10:00:00Z", seed: 0, epochs: 7, strength: 0.7, remembered: 0, held_back_loss: [1, 0.5], figures: FIGURES,
    learnt: { recordings: 2, segments: 40, corrected: 11, seconds: 120, languages: ["en"] },
  },
};

const said = (...texts: string[]): CorrectedSegment[] => texts.map((text, number) => ({ number, start: 3 * number, end: 3 * number + 3, text }));

async function page(change: (backend: FakeBackend) => void): Promise<[FakeBackend, Steno]> {
  const backend = new FakeBackend(1);
  backend.settings = { ...backend.settings, model: 1 };
  change(backend);
  const steno = new Steno(backend);
  render(Learning, { steno });
  await waitFor(() => expect(steno.setup).toBeTruthy());
  return [backend, steno];
}

test("a model learns from the transcripts that are ticked, says how far it is, and is stopped", async () => {
  const segments = said("He takes Zolmivane.", "So does she.");
  const [backend] = await page((backend) => {
    backend.lessonsOf = { ...backend.lessonsOf, recordings: [{ document: 4, title: "a.wav", segments, seconds: 240 }, { document: 5, title: "b.wav", segments: said("No."), seconds: 60 }] };
  });
  await waitFor(() => expect(screen.getAllByTestId("lesson").length).toBe(2));
  expect(screen.getByTestId("lessons").textContent).toContain("He takes Zolmivane.");
  const plan = () => screen.getByTestId("learning-plan").textContent ?? "";
  expect(plan()).toContain(t.learning.plan(3, "whisper-small"));
  expect(plan()).toContain(t.learning.takes("5 min"));
  await fireEvent.click(screen.getAllByTestId("lesson")[0] as HTMLElement);
  await waitFor(() => expect(plan()).toContain(t.learning.tooFew));
  expect((screen.getByTestId("start-learning") as HTMLButtonElement).disabled).toBe(true);
  await fireEvent.click(screen.getAllByTestId("lesson")[0] as HTMLElement);
  await fireEvent.click(screen.getAllByTestId("lesson")[1] as HTMLElement);
  await waitFor(() => expect(plan()).toContain(t.learning.plan(2, "whisper-small")));
  expect(plan()).toContain(t.learning.takes("4 min"));
  await fireEvent.click(screen.getByTestId("start-learning"));
  await waitFor(() => expect(screen.getByTestId("learning-run").dataset["stage"]).toBe("training"));
  expect(backend.learntFrom).toEqual([4]);
  expect(screen.getByTestId("learning-run").textContent).toContain(t.learning.epoch(1, 4));
  expect(screen.getByTestId("loss-chart").textContent).toContain(t.learning.losses("0.80", "1.10", "1.10"));
  await fireEvent.click(screen.getByTestId("stop-learning"));
  await waitFor(() => expect(screen.getByTestId("learning-run").dataset["stage"]).toBe("stopped"));
  expect(screen.getByTestId("start-learning")).toBeTruthy();
});

test("when it is done, the words that got better are shown, and what was learned is in the list", async () => {
  const [backend] = await page((backend) => {
    backend.lessonsOf = { ...backend.lessonsOf, recordings: [{ document: 4, title: "a.wav", segments: said("a", "b"), seconds: null }] };
  });
  await screen.findByTestId("learning-plan");
  expect(screen.getByTestId("learning-plan").textContent).toContain(t.learning.takesUnknown);
  await fireEvent.click(screen.getByTestId("start-learning"));
  await screen.findByTestId("stop-learning");
  expect(screen.queryByTestId("adapter")).toBeNull();
  backend.knownAdapters = [ADAPTER];
  if (backend.run) backend.run = { ...backend.run, stage: "kept", strength: 0.7, figures: FIGURES };
  await screen.findByTestId("adapter", {}, { timeout: 5000 });
  const run = screen.getByTestId("learning-run");
  expect(run.textContent).toContain(t.learning.weaker("70%"));
  const figures = screen.getAllByTestId("adapter-figures")[0] as HTMLElement;
  expect(figures.textContent).toContain(t.learning.wrong(20, 9, 3));
  expect(figures.textContent).toContain(t.learning.better("Zolmivane (4), Ærø"));
  expect(figures.textContent).toContain(t.learning.worse("boat"));
});

test("what is remembered without training is said so, in the run and in the list", async () => {
  const [backend] = await page((backend) => {
    backend.lessonsOf = { ...backend.lessonsOf, recordings: [{ document: 4, title: "a.wav", segments: said("a", "b"), seconds: 60 }] };
  });
  await screen.findByTestId("learning-plan");
  await fireEvent.click(screen.getByTestId("start-learning"));
  await screen.findByTestId("stop-learning");
  if (backend.run) backend.run = { ...backend.run, heard: 3, to_hear: 12, epoch: 0, step: 0, steps: 0, left: null, losses: [], held_back: [] };
  await waitFor(() => expect(screen.getByTestId("learning-run").textContent).toContain(t.learning.hears(3, 12)), { timeout: 5000 });
  if (!ADAPTER.card) throw new Error("the adapter has a card");
  backend.knownAdapters = [{ ...ADAPTER, card: { ...ADAPTER.card, rank: 0, strength: null, remembered: 5 } }];
  if (backend.run) backend.run = { ...backend.run, stage: "kept", strength: 1, remembered: true, figures: FIGURES };
  const adapter = await screen.findByTestId("adapter", {}, { timeout: 5000 });
  expect(adapter.textContent).toContain(t.learning.remembers(5));
  expect(screen.getByTestId("learning-run").textContent).toContain(t.learning.remembered);
  expect(screen.queryByTestId("loss-chart")).toBeNull();
});

test("what was learned is switched off and on, exported, and deleted after a question", async () => {
  const [backend, steno] = await page((backend) => (backend.knownAdapters = [ADAPTER]));
  const on = (await screen.findByTestId("adapter-on")) as HTMLInputElement;
  expect(on.checked).toBe(true);
  await fireEvent.click(on);
  await waitFor(() => expect(backend.knownAdapters[0]?.on).toBe(false));
  await fireEvent.click(screen.getByTestId("adapter-on"));
  await waitFor(() => expect(backend.knownAdapters[0]?.on).toBe(true));
  await fireEvent.click(screen.getByTestId("export-adapter"));
  await waitFor(() => expect(steno.toasts.map(({ text }) => text)).toContain(t.learning.exported(`/home/me/${ADAPTER.name}.safetensors`)));
  await fireEvent.click(screen.getByTestId("remove-adapter"));
  const dialog = within(screen.getByTestId("remove-learnt"));
  await fireEvent.click(await dialog.findByTestId("remove-learnt-no"));
  expect(backend.knownAdapters.length).toBe(1);
  await fireEvent.click(screen.getByTestId("remove-adapter"));
  await fireEvent.click(await dialog.findByTestId("remove-learnt-yes"));
  await waitFor(() => expect(screen.queryByTestId("adapter")).toBeNull());
});

test("a switch that fails shows again what is", async () => {
  const [backend, steno] = await page((backend) => (backend.knownAdapters = [ADAPTER]));
  backend.switchAdapter = () => Promise.reject({ code: "output_unwritable", file: null, message: "It can’t be written.", remedy: null });
  const on = (await screen.findByTestId("adapter-on")) as HTMLInputElement;
  await fireEvent.click(on);
  await waitFor(() => expect(steno.toasts[0]?.failure?.message).toBe("It can’t be written."));
  await waitFor(() => expect(on.checked).toBe(true));
});

test("a model that can’t learn says so, and a damaged file says what is wrong", async () => {
  const failure = { code: "model_unsupported", file: null, message: "Only Whisper models can be adapted.", remedy: null } as const;
  await page((backend) => {
    backend.lessonsOf = { recordings: [], memory: null, failure };
    backend.knownAdapters = [{ ...ADAPTER, card: null, failure: { ...failure, code: "model_invalid", message: "The adapter is not valid." } }];
  });
  expect((await screen.findByTestId("cant-learn")).textContent).toBe(t.learning.cant);
  expect(screen.queryByTestId("start-learning")).toBeNull();
  const adapter = await screen.findByTestId("adapter");
  expect(adapter.textContent).toContain("The adapter is not valid.");
  expect((screen.getByTestId("adapter-on") as HTMLInputElement).disabled).toBe(true);
});

test("what was held back is drawn at the end of each round", () => {
  const [steps, losses, heldBack] = curves({ losses: [[1, 3], [2, 2], [3, 1]], held_back: [[0, 4], [2, 2.5]] });
  expect(steps).toEqual([0, 1, 2, 3]);
  expect(losses).toEqual([null, 3, 2, 1]);
  expect(heldBack).toEqual([4, null, 2.5, null]);
  // It went on from the second step.
  expect(curves({ losses: [[3, 1]], held_back: [[2, 2.5]] })).toEqual([[0, 1, 2, 3], [null, null, null, 1], [null, null, 2.5, null]]);
});

test("a correction that is learned from is played in its transcript", async () => {
  const [, steno] = await page((backend) => {
    backend.lessonsOf = { ...backend.lessonsOf, recordings: [{ document: 1, title: "a.wav", segments: said("one", "two"), seconds: null }] };
  });
  const play = await screen.findAllByTestId("play-lesson");
  expect(play[1]?.getAttribute("aria-label")).toBe(t.history.play("0:03", "a.wav"));
  await fireEvent.click(play[1] as HTMLElement);
  await waitFor(() => expect(steno.view).toBe("recordings"));
  expect(steno.editor?.wanted).toBe(1);
  expect(steno.editor?.toHear).toEqual({ start: 3, end: 6 });
});
