import { asFailure, type Backend } from "./backend";
import type { EngineInfo, Failure, Format, Job, Place, Settings, Setup, WindowEvent } from "./generated/contract";
import { Text } from "./transcript/text.svelte";
import { t } from "./text";

export interface Toast {
  id: number;
  text: string;
  failure: Failure | null;
  /** What can be done about it right here. */
  action: { label: string; run: () => void } | null;
}

/** Seconds that a good message stays; a bad one stays until it is closed. */
const TOAST_SECONDS = 6;

const UNFINISHED = new Set<Job["state"]>(["held", "waiting", "running"]);

/** The state of the window. Components read it and call its methods. */
export class Steno {
  setup = $state.raw<Setup | null>(null);
  engine = $state.raw<EngineInfo | null>(null);
  engineFailure = $state.raw<Failure | null>(null);
  jobs = $state.raw<Job[]>([]);
  selected = $state<number | null>(null);
  text = $state.raw<Text | null>(null);
  /** Files that are held over the window right now. */
  draggedFiles = $state<number | null>(null);
  closing = $state.raw<{ unfinished: number; unsaved: number } | null>(null);
  toasts = $state.raw<Toast[]>([]);
  /** For screen readers: what changed its stage. */
  announcement = $state("");

  readonly job = $derived(this.jobs.find((job) => job.id === this.selected) ?? null);
  readonly model = $derived(this.setup?.models.find((model) => model.id === this.setup?.settings.model) ?? null);
  readonly unfinished = $derived(this.jobs.filter((job) => UNFINISHED.has(job.state)));
  readonly saveable = $derived(this.jobs.filter((job) => job.state === "finished" && job.saved === null));
  readonly held = $derived(this.jobs.filter((job) => job.state === "held"));

  #backend: Backend;
  #toasts = 0;

  constructor(backend: Backend) {
    this.#backend = backend;
    void this.#try(async () => {
      this.setup = await backend.attach((event) => this.#hear(event));
    });
    void this.findEngine();
  }

  async findEngine(): Promise<void> {
    try {
      this.engineFailure = null;
      this.engine = await this.#backend.describe();
    } catch (error) {
      this.engineFailure = asFailure(error);
    }
  }

  chooseFiles = () => this.#try(() => this.#backend.chooseFiles());
  addSample = () => this.#try(() => this.#backend.addSample());
  chooseModel = () => this.#try(() => this.#backend.chooseModel());
  startAnyway = () => this.#try(() => this.#backend.startAnyway());
  cancel = (job: number) => this.#try(() => this.#backend.cancel(job));
  retry = (job: number) => this.#try(() => this.#backend.retry(job));
  remove = (job: number) => this.#try(() => this.#backend.remove(job));

  changeSettings(change: Partial<Settings>): void {
    const setup = this.setup;
    if (setup) void this.#try(() => this.#backend.changeSettings({ ...setup.settings, ...change }));
  }

  select(job: number): void {
    if (this.selected === job) return;
    const text = new Text(job);
    this.selected = job;
    this.text = text;
    void this.#try(() => this.#backend.watch(job, (update) => text.apply(update)));
  }

  async save(job: number, format: Format, place: Place): Promise<void> {
    try {
      const file = await this.#backend.save(job, format, place);
      if (file !== null) this.toast(t.save.done(file));
    } catch (error) {
      const failure = asFailure(error);
      const replace =
        failure.code === "output_exists"
          ? { label: t.save.replace, run: () => void this.save(job, format, "beside_replacing") }
          : null;
      this.#fail(failure, replace);
    }
  }

  /** Saves every transcript that is done and not saved yet, beside its recording. */
  async saveAll(format: Format): Promise<void> {
    let saved = 0;
    for (const job of this.saveable) {
      try {
        await this.#backend.save(job.id, format, "beside");
        saved++;
      } catch (error) {
        this.#fail(asFailure(error), null);
      }
    }
    if (saved > 0) this.toast(t.save.doneAll(saved));
  }

  stopAll(): void {
    // From the end, so that none of them starts when the one before it stops.
    for (const job of this.unfinished.toReversed()) void this.cancel(job.id);
  }

  removeFinished(): void {
    for (const job of this.jobs) if (job.state === "finished" && job.saved !== null) void this.remove(job.id);
  }

  async copy(): Promise<void> {
    await this.#try(async () => {
      await navigator.clipboard.writeText(this.text?.plain() ?? "");
      this.toast(t.transcript.copied);
    });
  }

  answerClosing(really: boolean): void {
    this.closing = null;
    void this.#try(() => this.#backend.close(really));
  }

  toast(text: string): void {
    const id = this.#push({ text, failure: null, action: null });
    setTimeout(() => this.dismiss(id), TOAST_SECONDS * 1000);
  }

  dismiss(id: number): void {
    this.toasts = this.toasts.filter((toast) => toast.id !== id);
  }

  #hear(event: WindowEvent): void {
    switch (event.kind) {
      case "drag_over":
        this.draggedFiles = event.files;
        break;
      case "drag_left":
        this.draggedFiles = null;
        break;
      case "jobs":
        this.#update(event.changed, event.removed);
        break;
      case "setup":
        this.setup = event.setup;
        break;
      case "close_requested":
        this.closing = { unfinished: event.unfinished, unsaved: event.unsaved };
        break;
    }
  }

  #update(changed: Job[], removed: number[]): void {
    const before = new Map(this.jobs.map((job) => [job.id, job]));
    const now = new Map(changed.map((job) => [job.id, job]));
    const gone = new Set(removed);
    const added = changed.filter((job) => !before.has(job.id));
    const kept = this.jobs.filter((job) => !gone.has(job.id)).map((job) => now.get(job.id) ?? job);
    // New ones have greater numbers than all before.
    this.jobs = [...kept, ...added.filter((job) => !gone.has(job.id))];
    for (const job of changed) this.#announce(before.get(job.id), job);
    this.#keepSelection(added);
  }

  /** Opens what is new, so that its words are seen as they come; never away from what is being read. */
  #keepSelection(added: Job[]): void {
    if (this.selected !== null && !this.job) {
      this.selected = null;
      this.text = null;
    }
    const current = this.job;
    const idle = !current || current.state === "failed" || current.state === "cancelled";
    const next = added.find((job) => job.state !== "failed") ?? (current ? undefined : (added[0] ?? this.jobs[0]));
    if (idle && next) this.select(next.id);
  }

  #announce(before: Job | undefined, job: Job): void {
    const stage = (of: Job | undefined) => of && `${of.state} ${of.progress?.stage ?? ""}`;
    if (stage(before) !== stage(job)) this.announcement = `${job.name}: ${t.state(job)}`;
  }

  async #try(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.#fail(asFailure(error), null);
    }
  }

  #fail(failure: Failure, action: Toast["action"]): void {
    this.#push({ text: t.errors[failure.code], failure, action });
  }

  #push(toast: Omit<Toast, "id">): number {
    const id = ++this.#toasts;
    this.toasts = [...this.toasts, { ...toast, id }];
    return id;
  }
}
