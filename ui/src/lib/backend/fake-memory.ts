import type {
  DeviceKind, Forecast, MemoryLevels, MemoryNotice, MemorySample, Stage, MemoryUpdate, StageUse,
} from "../generated/contract";

const MB = 2 ** 20;
const TOTAL = 12 * 1024 * MB;

const FORECAST: Forecast = {
  kind: "gpu",
  parts: { context: 420 * MB, weights: 3080 * MB, caches: 1290 * MB, activations: 610 * MB, workspace: 180 * MB },
};

/** A job on a pretended card, told of as it goes on. */
export class FakeMemory {
  samples: MemorySample[] = [];
  notices: MemoryNotice[] = [];
  stages: StageUse[] = [];
  #at = 0;
  #batch = 0;
  #others = 1400 * MB;

  update(job: number, from: number): MemoryUpdate {
    return { job, from, samples: this.samples.slice(from), notices: this.notices, stages: this.stages, forecast: FORECAST };
  }

  begin(): void {
    this.#look("Pipeline Start", 430);
    this.#enter("speech_model", "Before Speech Model Load", 430);
    const loaded = this.#look("After Speech Model Load", 3510).levels?.ours ?? null;
    this.stages = this.stages.map((one) => ({ ...one, loaded, peak: loaded ?? one.peak }));
    this.#enter("preprocess", "Before Preprocessing", 3510);
    this.#look("After Preprocessing", 3620);
    this.#enter("transcribe", "Before Transcription", 3620);
  }

  /** One batch; `others` is what another program takes of the card meanwhile, MB. */
  batch(others = 0): void {
    this.#others = (1400 + others) * MB;
    this.#batch += 1;
    const held = 5000 + (this.#batch % 5) * 130;
    this.#look(`Batch ${this.#batch}`, held, held + 160);
  }

  /** As where another program takes what the job was about to. */
  squeeze(): void {
    this.batch(4100);
    this.#say("memory.critical", "info", "The card is at 88 % of its limit; another program holds 5.4 GB of it.");
    this.#look("Before Out-Of-Memory Recovery", 5300);
    this.#look("After Out-Of-Memory Recovery", 3900);
    this.#say("memory.batch_halved", "info", "Memory ran out in the transcription: 4 windows at once instead of 8. The result is the same.");
    this.#say("memory.precision_lowered", "degraded", "Memory ran out again: the model’s weights are held in 8 bits from here on (q8_0).");
  }

  end(): void {
    this.#look("After Transcription", 5010);
    this.#leave("transcribe", "After Decoding Buffer Cleanup", 3630);
    this.#leave("preprocess", "After Audio Buffer Cleanup", 3545);
    this.#look("Final Cleanup", 3545);
  }

  #look(label: string, ours: number, peak = ours): MemorySample {
    this.#at += label.startsWith("Batch") ? 0.9 : 0.35;
    const sample = this.#sample("gpu", label, ours, peak, TOTAL, this.#others);
    this.samples.push(sample, this.#sample("host", label, 340 + ours / 60, 340 + peak / 60, 16 * 1024 * MB, 5200 * MB));
    return sample;
  }

  #sample(kind: DeviceKind, label: string, ours: number, peak: number, total: number, others: number): MemorySample {
    const levels: MemoryLevels = { ours: ours * MB, peak: peak * MB, others, free: total - ours * MB - others, total };
    return { at: this.#at, kind, label, levels };
  }

  #enter(stage: Stage, label: string, ours: number): void {
    const { at, levels } = this.#look(label, ours);
    const before = levels?.ours ?? 0;
    this.stages.push({ stage, kind: "gpu", start: at, end: null, before, loaded: null, peak: before, after: null, recovered: null, verified: null });
  }

  #leave(stage: Stage, label: string, ours: number): void {
    const { at, levels } = this.#look(label, ours);
    const after = levels?.ours ?? 0;
    this.stages = this.stages.map((one) => {
      if (one.stage !== stage) return one;
      const peaks = this.samples.filter((sample) => sample.kind === "gpu" && sample.at >= one.start).map((sample) => sample.levels?.peak ?? 0);
      const peak = Math.max(one.before, ...peaks);
      const recovered = 1 - (after - one.before) / Math.max(1, peak - one.before);
      return { ...one, end: at, after, peak, recovered, verified: recovered >= 0.95 };
    });
  }

  #say(code: string, severity: MemoryNotice["severity"], text: string): void {
    this.notices = [...this.notices, { at: this.#at, code, severity, text }];
  }
}
