import type { Fit, ModelFacts, ModelFits, Preference, PreferenceName } from "../generated/contract";

const MB = 2 ** 20;

function facts(fit: Fit, peak: number, weights: number, count: number, more: Partial<ModelFacts> = {}): ModelFacts {
  const bytes = peak * MB;
  const rest = Math.round((bytes - weights * MB) / 4);
  return {
    fit,
    precision: "f16",
    peak: bytes,
    parts: { context: rest, weights: weights * MB, caches: rest, activations: rest, workspace: rest },
    missing: 0,
    parameters: count,
    disk: 2 * count,
    multilingual: true,
    translates: true,
    takes_language: true,
    finds_language: true,
    takes_translation: true,
    takes_prompt: true,
    takes_beams: true,
    usual_beams: 1,
    suits: true,
    speed: null,
    ...more,
  };
}

export const FITS: ModelFits = {
  device: { kind: "host", name: "the CPU", free: 3.4 * 2 ** 30, total: 16 * 2 ** 30 },
  models: [
    { model: 0, failure: null, facts: facts("comfortable", 96, 44, 11_800_000, { precision: "f32" }) },
    { model: 1, failure: null, facts: facts("comfortable", 1180, 967, 244_000_000) },
    { model: 2, failure: null, facts: facts("tight", 2980, 2640, 769_000_000, { multilingual: false, suits: false }) },
    { model: 3, failure: null, facts: facts("does_not_fit", 6900, 6100, 1_543_000_000, { missing: 3680 * MB }) },
    {
      model: 4,
      failure: { code: "model_invalid", file: "/home/me/models/copied-halfway/model.safetensors", message: "The model can’t be used: its header is cut off.", remedy: "Install it again." },
      facts: null,
    },
  ],
  recommended: 1,
  is_best_of_all: true,
  gpu_problem: null,
  engine: null,
};

const NAMES: PreferenceName[] = [
  "memory_profile", "batch_size", "speaker_batch_size", "skip_speakers", "fast_path", "memory_fraction", "trim_every",
  "renew_after", "memory_limit", "ram_limit", "embedding_profile", "keep", "precision", "threads", "priority", "device", "idle_release", "speaker_model", "model_by_language", "hf_endpoint", "proxy", "offline",
];

export const PREFERENCES: Preference[] = NAMES.map((name) => ({
  name,
  value: name === "memory_limit" ? "6GiB" : name === "keep" ? "model" : null,
  overruled: name === "batch_size" ? "4" : null,
  options: name === "speaker_model" ? ["community-1"] : [],
  labels: [],
}));
