import type {
  EngineInfo, Failure, Format, Job, Place, Progress, Segment, Settings, Setup, TextUpdate, WindowEvent,
} from "../generated/contract";
import type { Backend } from ".";
import { ENGINE, FILES, MODELS, recording, SENTENCES } from "./fake-data";

/** What a pretended job is worked on with: recording seconds per tick, milliseconds per tick. */
const SECONDS_PER_TICK = 3;

/** Adjusted by the page's address, e.g. `?scene=running&real&speed=10`. */
export function fakeBackend(options: URLSearchParams): FakeBackend {
  const fake = new FakeBackend(Number(options.get("tick") ?? 100));
  if (options.has("real")) fake.settings = { ...fake.settings, model: 1 };
  fake.show(options.get("scene") ?? "empty");
  return fake;
}

interface Work {
  job: Job;
  segments: Segment[];
  update: TextUpdate;
}

/** Pretends to transcribe, by a timer. For browsers, component tests and pictures. */
export class FakeBackend implements Backend {
  settings: Settings = { model: 0, language: null, translate: false };
  engine: EngineInfo | Failure = ENGINE;
  /** Rejects the next save. */
  saveFailure: Failure | null = null;
  saved: [number, Format, Place][] = [];
  closed = false;

  #works = new Map<number, Work>();
  #last = 0;
  #events: ((event: WindowEvent) => void) | null = null;
  #pending: WindowEvent[] = [];
  #watched: { job: number; tell: (update: TextUpdate) => void } | null = null;
  #tick: number;
  #timer: ReturnType<typeof setInterval> | undefined;

  constructor(tick: number) {
    this.#tick = tick;
  }

  /** Brings the window into a state, for pictures and tests. */
  show(scene: string): void {
    const scenes: Record<string, () => void> = {
      empty: () => {},
      held: () => this.drop(FILES.slice(0, 2)),
      running: () => this.#advance(FILES.slice(0, 4), 14),
      finished: () => this.#advance(FILES.slice(0, 1), 60),
      failed: () => {
        this.#advance(FILES.slice(0, 1), 60);
        this.drop([FILES[4] ?? ""]);
      },
      stopped: () => {
        this.#advance(FILES.slice(0, 1), 12);
        void this.cancel(1);
      },
      drag: () => this.emit({ kind: "drag_over", files: 3 }),
      closing: () => {
        this.#advance(FILES.slice(0, 2), 12);
        this.emit({ kind: "close_requested", unfinished: 2, unsaved: 1 });
      },
      no_engine: () => {
        this.engine = {
          code: "engine_not_found",
          file: null,
          message: "There is no engine: looked beside the program and in /usr/lib/steno.",
          remedy: "Install Steno again, or set STENO_ENGINE to the engine’s path.",
        };
      },
      many: () => {
        this.drop(Array.from({ length: 1000 }, (_, index) => `/home/me/Archive/tape ${index + 1}.mp3`));
        void this.startAnyway();
      },
    };
    scenes[scene]?.();
  }

  /** As if files had been dropped on the window. */
  drop(paths: string[]): void {
    this.emit({ kind: "drag_left" });
    for (const path of paths) this.#add(path, false);
    this.#run();
  }

  emit(event: WindowEvent): void {
    this.#pending.push(event);
    queueMicrotask(() => this.#flush());
  }

  attach(onEvent: (event: WindowEvent) => void): Promise<Setup> {
    this.#events = onEvent;
    setTimeout(() => this.#flush());
    return Promise.resolve(this.#setup());
  }

  async describe(): Promise<EngineInfo> {
    if ("message" in this.engine) throw this.engine;
    return this.engine;
  }

  async chooseFiles(): Promise<void> {
    this.drop(FILES);
  }

  async addSample(): Promise<void> {
    this.#add("/usr/share/steno/sample.flac", true);
    this.#run();
  }

  chooseModel(): Promise<void> {
    return this.changeSettings({ ...this.settings, model: 1 });
  }

  async changeSettings(settings: Settings): Promise<void> {
    this.settings = settings;
    this.emit({ kind: "setup", setup: this.#setup() });
    for (const { job } of this.#works.values()) {
      const hold = this.#isDemonstration() && !job.sample;
      if (job.state === "held" && !hold) this.#change(job.id, { state: "waiting" });
      if (job.state === "waiting" && hold) this.#change(job.id, { state: "held" });
    }
    this.#run();
  }

  async startAnyway(): Promise<void> {
    for (const { job } of this.#works.values()) if (job.state === "held") this.#change(job.id, { state: "waiting" });
    this.#run();
  }

  async watch(job: number, onUpdate: (update: TextUpdate) => void): Promise<void> {
    this.#watched = { job, tell: onUpdate };
    const work = this.#works.get(job);
    if (work) onUpdate({ ...work.update, from: 0, segments: work.segments });
  }

  async cancel(job: number): Promise<void> {
    const state = this.#works.get(job)?.job.state;
    if (state === "running") this.#end(job, "cancelled");
    if (state === "waiting" || state === "held") this.#change(job, { state: "cancelled" });
  }

  async retry(job: number): Promise<void> {
    const work = this.#works.get(job);
    if (!work || work.job.failure) return;
    work.segments = [];
    this.#tell(work, { from: 0, segments: [], ending: null });
    this.#change(job, { state: "waiting" });
    this.#run();
  }

  async remove(job: number): Promise<void> {
    this.#works.delete(job);
    this.emit({ kind: "jobs", changed: [], removed: [job] });
  }

  async save(job: number, format: Format, place: Place): Promise<string | null> {
    if (this.saveFailure) {
      const failure = this.saveFailure;
      this.saveFailure = null;
      throw failure;
    }
    this.saved.push([job, format, place]);
    const { name, folder } = this.#works.get(job)?.job ?? { name: "", folder: "" };
    const file = `${folder}/${name.replace(/\.\w+$/, "")}.${format}`;
    this.#change(job, { saved: file });
    return file;
  }

  async close(really: boolean): Promise<void> {
    this.closed = really;
  }

  #setup(): Setup {
    return { version: "0.1.0", models: MODELS, settings: this.settings, has_sample: true };
  }

  #isDemonstration(): boolean {
    return MODELS.find((model) => model.id === this.settings.model)?.demonstration ?? false;
  }

  #add(path: string, sample: boolean): void {
    const id = ++this.#last;
    const job: Job = { ...recording(id, path, sample), state: this.#isDemonstration() && !sample ? "held" : "waiting" };
    if (path.endsWith(".pdf")) {
      job.state = "failed";
      job.failure = {
        code: "unknown_format", file: path, message: "This is not a recording.", remedy: "Choose an audio or video file.",
      };
    }
    const update: TextUpdate = { job: id, from: 0, segments: [], notices: [], ending: null };
    this.#works.set(id, { job, segments: [], update });
    this.emit({ kind: "jobs", changed: [job], removed: [] });
  }

  /** Adds recordings and works on the first for some steps, at once. */
  #advance(paths: string[], steps: number): void {
    this.drop(paths);
    void this.startAnyway();
    for (let step = 0; step < steps; step++) this.#step();
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #run(): void {
    this.#timer ??= setInterval(() => this.#step(), this.#tick);
  }

  #step(): void {
    const works = [...this.#works.values()];
    const work = works.find(({ job }) => job.state === "running") ?? works.find(({ job }) => job.state === "waiting");
    if (!work) {
      clearInterval(this.#timer);
      this.#timer = undefined;
      return;
    }
    const { job } = work;
    const model = MODELS.find((model) => model.id === this.settings.model);
    if (job.state === "waiting") {
      this.#change(job.id, { state: "running", model: model?.name ?? null, demonstration: model?.demonstration ?? false });
      return;
    }
    const progress = next(job.progress, job.duration ?? 60);
    if (!progress) return this.#end(job.id, "finished");
    this.#change(job.id, { progress });
    if (progress.stage === "transcribe" && progress.position > 0) {
      const index = work.segments.length;
      const segment: Segment = {
        start: progress.position - SECONDS_PER_TICK,
        end: progress.position,
        text: SENTENCES[index % SENTENCES.length] ?? "",
        language: null,
        speaker: null,
        channel: null,
        suspicions: index === 6 ? ["over_silence", "low_confidence"] : [],
      };
      work.segments.push(segment);
      this.#tell(work, { from: index, segments: [segment] });
    }
  }

  #end(job: number, state: "finished" | "cancelled"): void {
    const work = this.#works.get(job);
    if (!work) return;
    this.#change(job, { state, progress: null });
    const complete = state === "finished";
    const gaps = complete ? [{ start: 21.5, end: 24.25 }] : [];
    this.#tell(work, {
      from: work.segments.length,
      segments: [],
      ending: { language: "en", complete, speech: 58, covered: 55.25, gaps },
    });
  }

  #change(id: number, change: Partial<Job>): void {
    const work = this.#works.get(id);
    if (!work) return;
    work.job = { ...work.job, ...change };
    this.emit({ kind: "jobs", changed: [work.job], removed: [] });
  }

  #tell(work: Work, change: Partial<TextUpdate>): void {
    work.update = { ...work.update, ...change };
    if (this.#watched?.job === work.job.id) this.#watched.tell(work.update);
  }

  #flush(): void {
    if (!this.#events) return;
    const events = this.#pending;
    this.#pending = [];
    for (const event of events) this.#events(event);
  }
}

function next(before: Progress | null, duration: number): Progress | null {
  const at = (stage: Progress["stage"], position: number): Progress => ({
    stage, position, duration, speed: stage === "load_model" ? null : 3.2, left: stage === "load_model" ? null : (duration - position) / 3.2,
  });
  if (!before) return at("load_model", 0);
  if (before.stage === "load_model") return at("preprocess", duration / 2);
  if (before.stage === "preprocess") return at("transcribe", 0);
  return before.position >= duration ? null : at("transcribe", Math.min(duration, before.position + SECONDS_PER_TICK));
}
