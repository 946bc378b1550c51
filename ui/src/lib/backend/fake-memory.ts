import type {
  Checkpoint, DeviceKind, Forecast, MemoryLevels, MemoryNotice, MemorySample, NoticeMessage, Stage, MemoryUpdate, StageUse,
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
    this.#look("pipeline_start", 430);
    this.#enter("speech_model", "before_speech_model_load", 430);
    const loaded = this.#look("after_speech_model_load", 3510).levels?.ours ?? null;
    this.stages = this.stages.map((one) => ({ ...one, loaded, peak: loaded ?? one.peak }));
    this.#enter("preprocess", "before_preprocess", 3510);
    this.#look("after_preprocess", 3620);
    this.#enter("transcribe", "before_transcribe", 3620);
  }

  /** One batch; `others` is what another program takes of the card meanwhile, MB. */
  batch(others = 0): void {
    this.#others = (1400 + others) * MB;
    this.#batch += 1;
    const held = 5000 + (this.#batch % 5) * 130;
    this.#look("batch", held, held + 160);
  }

  /** As where another program takes what the job was about to. */
  squeeze(): void {
    this.batch(4100);
    this.#say("info", { code: "memory.critical", data: { kind: "gpu", share: 0.88, relief: { by: "others", bytes: 5500 * MB } } });
    this.#look("before_recovery", 5300);
    this.#look("after_recovery", 3900);
    const at = { stage: "transcribe", trouble: "out_of_memory" } as const;
    this.#say("info", { code: "memory.batch_halved", data: { ...at, speakers: false, from: 8, to: 4 } });
    this.#say("degraded", { code: "memory.precision_lowered", data: { ...at, model: "large-v3", from: "f16", to: "q8_0" } });
  }

  end(): void {
    this.#look("after_transcribe", 5010);
    this.#leave("transcribe", "after_decoding_release", 3630);
    this.#leave("preprocess", "after_audio_release", 3545);
    this.#look("final_cleanup", 3545);
  }

  #look(checkpoint: Checkpoint, ours: number, peak = ours): MemorySample {
    this.#at += checkpoint === "batch" ? 0.9 : 0.35;
    const sample = this.#sample("gpu", checkpoint, ours, peak, TOTAL, this.#others);
    this.samples.push(sample, this.#sample("host", checkpoint, 340 + ours / 60, 340 + peak / 60, 16 * 1024 * MB, 5200 * MB));
    return sample;
  }

  #sample(kind: DeviceKind, checkpoint: Checkpoint, ours: number, peak: number, total: number, others: number): MemorySample {
    const levels: MemoryLevels = { ours: ours * MB, peak: peak * MB, others, free: total - ours * MB - others, total };
    return { at: this.#at, kind, checkpoint, batch: checkpoint === "batch" ? this.#batch : null, levels };
  }

  #enter(stage: Stage, checkpoint: Checkpoint, ours: number): void {
    const { at, levels } = this.#look(checkpoint, ours);
    const before = levels?.ours ?? 0;
    this.stages.push({ stage, kind: "gpu", start: at, end: null, before, loaded: null, peak: before, after: null, recovered: null, verified: null });
  }

  #leave(stage: Stage, checkpoint: Checkpoint, ours: number): void {
    const { at, levels } = this.#look(checkpoint, ours);
    const after = levels?.ours ?? 0;
    this.stages = this.stages.map((one) => {
      if (one.stage !== stage) return one;
      const peaks = this.samples.filter((sample) => sample.kind === "gpu" && sample.at >= one.start).map((sample) => sample.levels?.peak ?? 0);
      const peak = Math.max(one.before, ...peaks);
      const recovered = 1 - (after - one.before) / Math.max(1, peak - one.before);
      return { ...one, end: at, after, peak, recovered, verified: recovered >= 0.95 };
    });
  }

  #say(severity: MemoryNotice["severity"], told: NoticeMessage): void {
    this.notices = [...this.notices, { at: this.#at, code: told.code, severity, told, text: "" }];
  }
}
