import { asFailure, type Backend } from "./backend";
import type {
  CorrectedWord, Attempt, ChartFile, EngineInfo, Exporting, Failure, Finding, Format, Gap, IndexState, Job, Look, ModelFits, Part, Place, SaveLocation, Saved, Settings, Setup, Switches, WindowEvent,
} from "./generated/contract";
import type { Known } from "./jobs/estimate";
import { warningOf } from "./jobs/place";
import { CatalogState } from "./models/catalog.svelte";
import { Usage } from "./memory/usage.svelte";
import { Editor } from "./transcript/editor.svelte";
import { Unwritten } from "./transcript/unwritten.svelte";
import { Text } from "./transcript/text.svelte";
import { speak, t } from "./text";
import { noticeText } from "./text/notice";
import { useKeys } from "./keys/keys.svelte";
import { drawn } from "./ui/drawn";
import { look } from "./ui/look.svelte";

export type View = "recordings" | "history" | "voices" | "models" | "settings";

export interface Toast {
  id: number;
  text: string;
  failure: Failure | null;
  /** Something was given up, and the work goes on. */
  warning: boolean;
  /** What can be done about it right here. */
  action: { label: string; run: () => void } | null;
  /** It goes when this is false. */
  holds?: () => boolean;
}

/** Seconds that a good message stays; a bad one stays until it is closed. */
const TOAST_SECONDS = 6;

/** Seconds of a message that asks for something. */
const REQUEST_SECONDS = 30;

/** Beyond these the oldest go: they would cover the window, and all that they say stands elsewhere too. */
const MOST_TOASTS = 4;

/** Steps down that leave the result as it was asked for, and are told of all the same. */
const STEPS = new Set(["memory.batch_halved", "memory.engine_renewed"]);

const UNFINISHED = new Set<Job["state"]>(["held", "waiting", "running"]);

/** The state of the window. Components read it and call its methods. */
/** A file that was not written. */
export interface Unsaved {
  /** Null for a transcript of the history. */
  job: number | null;
  format: Format;
  failure: Failure;
}

/** What one action wrote, and what it did not. */
export interface SaveReport {
  files: string[];
  failed: Unsaved[];
  /** A recording of which files were written, to be shown; null where there is none. */
  written: number | null;
  exporting: Exporting;
  /** It was to be saved when it was finished: what is in the way is replaced where that is. */
  late: boolean;
}

/** What a model can be asked for. */
export interface Takes {
  language: boolean;
  /** It finds the language where none is chosen. */
  detection: boolean;
  translation: boolean;
  prompt: boolean;
  beams: boolean;
  /** Texts that it compares unless it is told; null where that is not known. */
  usualBeams: number | null;
}

export class Steno {
  setup = $state.raw<Setup | null>(null);
  /** Words that the user corrects again and again. */
  corrected = $state.raw<CorrectedWord[]>([]);
  engine = $state.raw<EngineInfo | null>(null);
  engineFailure = $state.raw<Failure | null>(null);
  jobs = $state.raw<Job[]>([]);
  selected = $state<number | null>(null);
  text = $state.raw<Text | null>(null);
  /** Of the text that is shown. */
  editor = $state.raw<Editor | null>(null);
  /** Of the job whose memory is being looked at. */
  usage = $state.raw<Usage | null>(null);
  view = $state<View>("recordings");
  /** Seconds of recording per second, of the latest that was transcribed. */
  #speed = $state<number | null>(null);
  /** What the history was last searched for. */
  historyQuery = "";
  /** Not 0: the field of the search is to have the focus. */
  searchWanted = $state(0);
  /** Letters are searched as they are written, without their meaning. */
  historyExact = $state(false);
  /** How far the search by meaning is. */
  index = $state.raw<IndexState>({ model: null, done: 0, total: 0, revision: 0, speed: null, failure: null });
  /** How often a voice was remembered from a transcript: then their page looks anew. */
  voicesAdded = $state(0);
  /** How far the list of recordings is scrolled. */
  queueTop = 0;
  /** How the history is sorted. */
  historyOrder = $state<"changed" | "created" | "title" | "duration">("changed");
  fits = $state.raw<ModelFits | null>(null);
  fitsFailure = $state.raw<Failure | null>(null);
  /** Files that are held over the window right now. */
  draggedFiles = $state<number | null>(null);
  /** How many are unfinished, and the recordings whose texts would be lost. */
  closing = $state.raw<{ unfinished: number; unsaved: number[] } | null>(null);
  toasts = $state.raw<Toast[]>([]);
  /** At which one listens, to whatever recording. */
  speed = 1;
  /** Texts of segments that could not be written down. */
  readonly unwritten = new Unwritten((job, segment, text) => this.#writeAgain(job, segment, text));
  /** For screen readers: what changed its stage. */
  announcement = $state("");

  readonly job = $derived(this.jobs.find((job) => job.id === this.selected) ?? null);
  readonly model = $derived(this.setup?.models.find((model) => model.id === this.setup?.settings.model) ?? null);
  readonly unfinished = $derived(this.jobs.filter((job) => UNFINISHED.has(job.state)));
  readonly saveable = $derived(this.jobs.filter((job) => job.state === "finished" && job.saved === null));
  /** Their turn is still to come. */
  readonly waiting = $derived(this.jobs.filter((job) => job.state === "waiting" || job.state === "held"));
  /** Failed, without any text. */
  readonly removable = $derived(this.jobs.filter((job) => job.state === "failed" && job.reached === null));
  readonly held = $derived(this.jobs.filter((job) => job.state === "held"));

  readonly backend: Backend;
  readonly catalog: CatalogState;
  #backend: Backend;
  #toasts = 0;
  /** The message that recordings were added, how many, and which it leads to. */
  #added = { toast: -1, jobs: [] as number[], shown: -1 };
  /** The message that transcripts were not saved. */
  #notSaved = -1;
  /** The message that corrections can't be stored. */
  #notWritten = -1;
  /** Notices about memory that were told of, by job. */
  #told = new Map<number, number>();

  constructor(backend: Backend) {
    this.backend = backend;
    this.#backend = backend;
    this.catalog = new CatalogState(backend, (failure) => this.#fail(failure, null));
    void this.#try(async () => this.#take(await backend.attach((event) => this.#hear(event))));
    void this.#look();
  }

  /** What takes the machine longer than drawing the window, which goes first. */
  async #look(): Promise<void> {
    await drawn();
    void this.findEngine();
    void this.findFits();
    void this.catalog.look();
  }

  /** A language or a task is chosen that a model may not have. Where the language is detected, English alone is no fault. */
  get asksOfModel(): boolean {
    return this.setup !== null && (this.setup.settings.language !== null || this.setup.settings.translate);
  }

  /** What can be asked of a model; everything where that is not known. */
  takes(model: number | null): Takes {
    // Of the models of another machine nothing is known: it says itself what its model can’t be asked for.
    const here = (this.setup?.machine.place ?? null) === null;
    const facts = here ? this.fits?.models.find((fit) => fit.model === model)?.facts : undefined;
    return {
      language: facts?.takes_language ?? true,
      detection: facts?.finds_language ?? true,
      translation: facts?.takes_translation ?? true,
      prompt: facts?.takes_prompt ?? true,
      beams: facts?.takes_beams ?? true,
      usualBeams: facts?.usual_beams ?? null,
    };
  }

  /** What is free changes by itself: asked for anew whenever it is shown. */
  async findFits(): Promise<void> {
    try {
      this.fits = await this.#backend.modelFits();
      this.fitsFailure = null;
    } catch (error) {
      this.fitsFailure = asFailure(error);
    }
  }

  /** What estimates go by. */
  get known(): Known {
    return { speed: this.#speed, speakers: this.setup?.settings.speakers ?? false };
  }

  show(view: View): void {
    this.view = view;
    if (view !== "models") return;
    void this.findFits();
    void this.catalog.look();
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
  freeMemory = () => this.#try(() => this.#backend.freeMemory());
  startAnyway = () => this.#try(() => this.#backend.startAnyway());
  cancel = (job: number) => this.#try(() => this.#backend.cancel(job));
  /** One recording, and not the queue: what runs ends, and goes on from there when it is resumed. */
  pauseJob = (job: number) => this.#try(() => this.#backend.pauseJob(job));
  again = (job: number, part: Gap, attempt: Attempt | null = null) =>
    this.#try(async () => {
      // What is found is compared with what stands there: not with what stood there before the last words.
      if (job === this.selected) await this.editor?.flush();
      await this.#backend.again(job, part, attempt);
    });
  findSpeakers = (job: number) =>
    this.#try(async () => {
      // They are found of what stands there: not of what stood there before the last words.
      if (job === this.selected) await this.editor?.flush();
      await this.#backend.findSpeakers(job);
    });
  translate = (job: number) =>
    this.#try(async () => {
      if (job === this.selected) await this.editor?.flush();
      await this.#backend.translate(job);
    });
  retry = (job: number) => this.#try(() => this.#backend.retry(job));
  remove = (job: number) =>
    this.#try(async () => {
      if (job === this.selected) await this.editor?.flush();
      // With the recording the correction would go.
      if (this.unwritten.has(job)) {
        if (!this.#isNotWrittenTold) this.warn(t.editing.notWritten);
        return;
      }
      await this.#backend.remove(job);
    });
  /** As `remove`; where the text of a recording that is not finished would be lost, only when the user says so again. */
  removeOrAsk({ id, name, state, reached }: Job): void {
    if (reached === null || state === "finished") void this.remove(id);
    else this.offer(t.job.losesText(name), { label: t.job.removeText, run: () => void this.remove(id) });
  }
  pause = (paused: boolean) => this.#try(() => this.#backend.pause(paused));
  reorder = (job: number, before: number | null) => this.#try(() => this.#backend.reorder([job], before));
  changeLook = (look: Look) => this.#try(() => this.#backend.changeLook(look));

  changeSettings(change: Partial<Settings>): void {
    const setup = this.setup;
    if (setup) void this.#try(() => this.#backend.changeSettings({ ...setup.settings, ...change }));
  }

  select(job: number): void {
    if (this.selected === job) return;
    const [text, usage] = [new Text(job), new Usage(job)];
    this.editor?.close();
    const settled = this.editor?.settled();
    this.selected = job;
    this.#dropSettled();
    this.text = text;
    this.editor = new Editor(this, text);
    this.usage = usage;
    void this.#try(async () => {
      // From then on no more is told of the text before, and what was typed last may still look for its place there.
      if (settled) await settled;
      if (this.text === text) await this.#backend.watch(job, (update) => text.apply(update));
    });
    void this.#try(() =>
      this.#backend.watchMemory(job, (update) => {
        usage.apply(update);
        this.#tellOfMemory(usage);
      }),
    );
  }

  /** What is ticked for an export, whatever else is set: at first as it was last saved. What is saved when a recording is finished is a setting, and another one. */
  exporting = $state.raw<Exporting | null>(null);

  /** What a save of several files did not write; null: nothing to tell. */
  saveReport = $state.raw<SaveReport | null>(null);

  async save(job: number, exporting: Exporting, place: SaveLocation): Promise<void> {
    try {
      if (job === this.selected) await this.editor?.flush();
      if (!(await this.#isWritten(job))) return;
      const saved = await this.#backend.save(job, exporting, place);
      if (!saved) return;
      this.#tellSaved([{ job, saved }], exporting);
    } catch (error) {
      this.#fail(asFailure(error), null);
    }
  }

  /** What was saved of the history, and what was not. */
  tellSaved(saved: Saved, exporting: Exporting): void {
    this.#tellSaved([{ job: null, saved }], exporting);
  }

  /** Whether all of a text is stored, after another attempt: a file with an earlier text would look complete. */
  async #isWritten(job: number): Promise<boolean> {
    await this.unwritten.send(job);
    if (!this.unwritten.has(job)) return true;
    const { name } = this.jobs.find(({ id }) => id === job) ?? { name: "" };
    this.warn(`${name}: ${t.editing.notSavedBefore}`);
    return false;
  }

  /** One message per action: a failure alone as a toast, several in a dialog. */
  #tellSaved(all: { job: number | null; saved: Saved }[], exporting: Exporting, late = false): void {
    const files = all.flatMap(({ saved }) => saved.files);
    const failed = all.flatMap(({ job, saved }) => saved.failures.map((one) => ({ ...one, job })));
    const written = all.find(({ saved }) => saved.files.length > 0)?.job ?? null;
    const [first, ...more] = failed;
    if (first === undefined) {
      this.#tellFiles(files, written);
    } else if (more.length === 0) {
      const exists = first.failure.code === "output_exists" && first.job !== null;
      const report = { files, failed, written, exporting, late };
      this.#fail(first.failure, exists ? { label: t.save.replace, run: () => void this.saveReplacing(report) } : null);
      this.#tellFiles(files, written);
    } else {
      this.saveReport = { files, failed, written, exporting, late };
    }
  }

  /** Writes what was not written because a file was there, over that file. */
  async saveReplacing({ failed, exporting, late }: SaveReport): Promise<void> {
    this.saveReport = null;
    if (late) {
      for (const job of new Set(failed.map(({ job }) => job))) if (job !== null) await this.saveUnsaved(job, true);
      return;
    }
    const existing = failed.filter(({ failure }) => failure.code === "output_exists");
    await this.#saveEach(existing, exporting, (job, one) => this.#backend.save(job, one, "beside_replacing"));
  }

  /** Saves what was not saved when a transcript was finished, as that was chosen. */
  async saveUnsaved(id: number, replace = false): Promise<void> {
    const exporting = this.jobs.find((job) => job.id === id)?.unsaved;
    if (!exporting) return;
    try {
      if (id === this.selected) await this.editor?.flush();
      if (!(await this.#isWritten(id))) return;
      this.#tellSaved([{ job: id, saved: await this.#backend.saveUnsaved(id, replace) }], exporting, true);
    } catch (error) {
      this.#fail(asFailure(error), null);
    }
  }

  /** Writes what was not written to a folder that the user chooses. */
  async saveElsewhere({ failed, exporting }: SaveReport): Promise<void> {
    const jobs = [...new Set(failed.flatMap(({ job }) => (job === null ? [] : [job])))];
    try {
      const saved = await this.#backend.saveJobs(jobs, exporting);
      if (!saved) return;
      this.saveReport = null;
      this.#tellSaved(saved.map((one, index) => ({ job: jobs[index] ?? null, saved: one })), exporting);
    } catch (error) {
      this.#fail(asFailure(error), null);
    }
  }

  async #saveEach(failed: Unsaved[], exporting: Exporting, save: (job: number, exporting: Exporting) => Promise<Saved | null>): Promise<void> {
    const all = [];
    for (const { job, format } of failed) {
      if (job === null) continue;
      try {
        const saved = await save(job, { ...exporting, formats: [format] });
        if (saved) all.push({ job, saved });
      } catch (error) {
        all.push({ job, saved: { files: [], failures: [{ format, failure: asFailure(error) }] } });
      }
    }
    this.#tellSaved(all, exporting);
  }

  /** `job`: the recording whose text was saved, where it is one. */
  #tellFiles([file, ...more]: string[], job: number | null): void {
    if (file === undefined) return;
    const told = more.length === 0 ? t.save.done(file) : t.save.doneAll(more.length + 1);
    if (job === null) this.toast(told);
    else this.offer(told, { label: t.save.show, run: () => void this.showInFolder(job) }, TOAST_SECONDS);
  }

  showInFolder = (job: number) => this.#try(() => this.#backend.showInFolder(job));

  /** Saves every transcript that is done and not saved yet, beside its recording. */
  async saveAll(exporting: Exporting): Promise<void> {
    const all = [];
    await this.editor?.flush();
    for (const { id: job } of this.saveable) {
      if (!(await this.#isWritten(job))) continue;
      try {
        const saved = await this.#backend.save(job, exporting, "beside");
        if (saved) all.push({ job, saved });
      } catch (error) {
        const failure = asFailure(error);
        all.push({ job, saved: { files: [], failures: exporting.formats.map((format) => ({ format, failure })) } });
      }
    }
    this.#tellSaved(all, exporting);
  }

  saveChart = (job: number, kind: ChartFile, bytes: () => Promise<Uint8Array>) =>
    this.#try(async () => {
      const file = await this.#backend.saveChart(job, kind, await bytes());
      if (file !== null) this.toast(t.save.done(file));
    });

  /** Words to expect, from lists that the user chooses; none where none was chosen. */
  async readWordLists(): Promise<string[]> {
    return (await this.ask((backend) => backend.readWordLists())) ?? [];
  }

  saveWordList = (words: string[]) =>
    this.#try(async () => {
      const file = await this.#backend.saveWordList(words);
      if (file !== null) this.toast(t.save.done(file));
    });

  /** A part of a recording as a sound file. */
  saveSound = (job: number, part: Gap) =>
    this.#try(async () => {
      const file = await this.#backend.saveSound(job, part);
      if (file !== null) this.toast(t.save.done(file));
    });

  /** Right at the click: what comes later a browser does not let near the clipboard. */
  copyText = (text: string, said: string) =>
    this.#try(async () => {
      await navigator.clipboard.writeText(text);
      this.toast(said);
    });

  stopAll = () => this.#try(() => this.#backend.cancelAll());
  /** Those that failed, but for those with a text, which goes with its own button. */
  removeFailed(): void {
    for (const job of this.removable) void this.remove(job.id);
  }

  retryFailed = () => this.#try(() => this.#backend.retryFailed());
  putShortestFirst = (on: boolean) => this.#try(() => this.#backend.putShortestFirst(on));
  changeOwn = (jobs: number[], settings: Settings | null) => this.#try(() => this.#backend.changeOwn(jobs, settings));
  changePart = (job: number, part: Part) => this.#try(() => this.#backend.changePart(job, part));
  renamePreset = (name: string, to: string) => this.#try(() => this.#backend.renamePreset(name, to));
  deletePreset = (name: string) => this.#try(() => this.#backend.deletePreset(name));
  watchFolder = (present: boolean) => this.#try(() => this.#backend.watchFolder(present));
  changeWatched = (number: number, exporting: Exporting) => this.#try(() => this.#backend.changeWatched(number, exporting));
  placeWatched = (number: number, beside: boolean) => this.#try(() => this.#backend.placeWatched(number, beside));
  unwatchFolder = (number: number) => this.#try(() => this.#backend.unwatchFolder(number));
  changeSwitches = (switches: Switches) => this.#try(() => this.#backend.changeSwitches(switches));
  savePreset = (name: string, settings: Settings) =>
    this.#try(async () => {
      await this.#backend.savePreset(name, settings);
      this.toast(t.presets.saved(name));
    });

  removeFinished(): void {
    for (const job of this.jobs) if (job.state === "finished" && job.saved !== null) void this.remove(job.id);
  }

  /** A speaker of the text that is shown is recognized from now on. */
  async rememberSpeaker(job: number, speaker: string): Promise<void> {
    await this.editor?.flush();
    const done = await this.ask((backend) => backend.rememberSpeaker(job, speaker));
    if (!done) return;
    this.voicesAdded += 1;
    this.toast(t.voices.added(speaker));
  }

  async locate(job: number): Promise<void> {
    const found = await this.ask((backend) => backend.locateRecording(job));
    if (found !== null) this.toast(found ? t.history.found : t.history.notFound);
  }

  copy = () => this.copyText(this.text?.plain() ?? "", t.transcript.copied);

  answerClosing(really: boolean): void {
    this.closing = null;
    void this.#try(() => this.#backend.close(really));
  }

  toast(text: string): void {
    const id = this.#push({ text, failure: null, warning: false, action: null });
    setTimeout(() => this.dismiss(id), TOAST_SECONDS * 1000);
  }

  /** What was asked for of one recording was not done: it is named, and the message goes once another one is shown. */
  failOf(job: number, failure: Failure): void {
    const name = this.jobs.find(({ id }) => id === job)?.name;
    const at = this.selected;
    const text = name === undefined ? t.errors[failure.code] : `${name}: ${t.errors[failure.code]}`;
    this.#push({ text, failure, warning: true, action: null, holds: () => this.selected === at });
  }

  /** What was asked for was not done, and nothing is lost. */
  fail(failure: Failure): void {
    this.#fail(failure, null);
  }

  warn(text: string): void {
    const id = this.#push({ text, failure: null, warning: true, action: null });
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
        this.#update(event.changed, event.removed, event.order);
        break;
      case "setup":
        this.#take(event.setup);
        // The engine for the card may have come.
        if (this.fits?.engine) {
          void this.findEngine();
          void this.findFits();
        }
        break;
      case "index":
        this.index = event.state;
        break;
      case "queue_ended":
        void this.#try(() => this.#backend.notify(t.work.ended(event.finished), t.work.failed(event.failed)));
        break;
      case "close_requested":
        void this.#beforeClosing(event.unfinished, event.unsaved);
        break;
      case "transfers":
        this.catalog.apply(event.transfers);
        break;
    }
  }

  /** What was typed is written down first. */
  async #beforeClosing(unfinished: number, unsaved: number[]): Promise<void> {
    // The program, which does not know of these, would close soon.
    if (this.unwritten.jobs.length > 0) await this.#backend.close(false);
    await this.editor?.flush();
    const lost = [...new Set([...unsaved, ...this.unwritten.jobs])];
    if (unfinished + lost.length > 0) this.closing = { unfinished, unsaved: lost };
    else this.answerClosing(true);
  }

  #take(setup: Setup): void {
    const before = this.setup;
    this.setup = setup;
    this.exporting ??= setup.exporting;
    look.choose(setup.look.theme);
    speak(setup.look.language);
    if (!before && setup.forgotten) this.#push({ text: t.settings.forgotten, failure: setup.forgotten, warning: true, action: null });
    useKeys(setup.look.keys);
    const asks = ({ settings, models }: Setup) => JSON.stringify([settings.language, settings.translate, models.map((model) => model.folder)]);
    if (!before || asks(before) === asks(setup)) return;
    void this.findFits();
    void this.catalog.look();
  }

  /** What a job had to give up, said once and wherever the user is. */
  #tellOfMemory(usage: Usage): void {
    const told = this.#told.get(usage.job);
    this.#told.set(usage.job, usage.notices.length);
    // What was there before the first look is not news.
    if (told === undefined && this.job?.state !== "running") return;
    for (const notice of usage.notices.slice(told ?? 0)) {
      if (notice.severity !== "info" || STEPS.has(notice.code)) this.#push({ text: noticeText(notice), failure: null, warning: true, action: null });
    }
  }

  #update(changed: Job[], removed: number[], order: number[] | null): void {
    const before = new Map(this.jobs.map((job) => [job.id, job]));
    const now = new Map(changed.map((job) => [job.id, job]));
    const gone = new Set(removed);
    const added = changed.filter((job) => !before.has(job.id));
    const kept = this.jobs.filter((job) => !gone.has(job.id)).map((job) => now.get(job.id) ?? job);
    // New ones have greater numbers than all before.
    const jobs = [...kept, ...added.filter((job) => !gone.has(job.id))];
    const place = order && new Map(order.map((id, index) => [id, index]));
    if (place) jobs.sort((a, b) => (place.get(a.id) ?? jobs.length) - (place.get(b.id) ?? jobs.length));
    this.jobs = jobs;
    const { speed } = changed.find(({ progress }) => progress?.stage === "transcribe")?.progress ?? {};
    if (speed) this.#speed = speed;
    for (const job of changed) this.#announce(before.get(job.id), job);
    this.#keepSelection(added);
    this.#tellAdded(added);
    this.#tellNotSaved(changed.filter((job) => job.not_saved && before.has(job.id) && !before.get(job.id)?.not_saved));
    for (const job of removed) this.unwritten.forget(job);
    this.#dropSettled();
  }

  /** Messages whose reason is gone. */
  #dropSettled(): void {
    const left = this.toasts.filter(({ holds }) => holds?.() ?? true);
    if (left.length < this.toasts.length) this.toasts = left;
  }

  /** A transcript was to be saved when it was finished, and was not: said wherever the user is, once for all. */
  #tellNotSaved(news: Job[]): void {
    const job = news.at(-1);
    if (!job?.not_saved) return;
    this.dismiss(this.#notSaved);
    const all = this.jobs.filter((one) => one.not_saved);
    this.#notSaved = this.#push({
      text: all.length === 1 ? `${job.name}: ${t.save.notSaved(t.errors[job.not_saved.code])}` : t.save.notSavedAll(all.length),
      failure: job.not_saved,
      warning: true,
      action: { label: t.queue.show, run: () => this.#open(job.id) },
      holds: () => this.jobs.some((one) => one.not_saved),
    });
  }

  /** An edit could not be stored. A text that was typed is kept and sent again: that is said once, until it is stored. */
  tellNotWritten(failure: Failure, isKept: boolean): void {
    if (this.#isNotWrittenTold || (isKept && this.unwritten.jobs.length > 0)) return;
    const holds = () => this.unwritten.jobs.length > 0;
    if (isKept) this.#notWritten = this.#push({ text: t.editing.notWritten, failure, warning: true, action: null, holds });
    else this.#fail(failure, null);
  }

  get #isNotWrittenTold(): boolean {
    return this.toasts.some(({ id }) => id === this.#notWritten);
  }

  /** Where that fails nothing more is said. */
  async #writeAgain(job: number, segment: number, text: string): Promise<void> {
    if (this.editor?.text.job === job) await this.editor.writeAgain(segment, text);
    else {
      try {
        await this.#backend.edit(job, { kind: "set_text", segment, text });
        this.dropUnwritten(job, segment);
      } catch {
        // It stays, and is tried again.
      }
    }
  }

  /** A text is stored, or is no longer wanted: with the last one the message goes. */
  dropUnwritten(job: number, segment: number): void {
    this.unwritten.drop(job, segment);
    this.#dropSettled();
  }

  #open(job: number): void {
    this.view = "recordings";
    this.select(job);
  }

  /** What is being read stays open: that there is more, and that it waits for a model, is said beside it. */
  #tellAdded(added: Job[]): void {
    const unseen = added.filter((job) => UNFINISHED.has(job.state) && !job.watched && job.id !== this.selected);
    const [first] = unseen;
    if (!first || (this.selected !== null && added.some((job) => job.id === this.selected))) return;
    // One message for all that is added while it is shown.
    const before = this.toasts.some((toast) => toast.id === this.#added.toast) ? this.#added : null;
    if (before) this.dismiss(before.toast);
    const held = unseen.find((job) => job.state === "held");
    const shown = before?.shown ?? (held ?? first).id;
    const jobs = [...(before?.jobs ?? []), ...unseen.map(({ id }) => id)];
    const toast = this.#push({
      text: (held ? t.queue.addedHeld : t.queue.added)(jobs.length),
      failure: null,
      warning: false,
      action: { label: t.queue.show, run: () => this.#open(shown) },
      holds: () => this.jobs.some(({ id, state }) => jobs.includes(id) && (!held || state === "held")),
    });
    setTimeout(() => this.dismiss(toast), (held ? REQUEST_SECONDS : TOAST_SECONDS) * 1000);
    this.#added = { toast, jobs, shown };
  }

  /** Opens what is new, so that its words are seen as they come; never away from what is being read. */
  #keepSelection(added: Job[]): void {
    if (this.selected !== null && !this.job) {
      this.selected = null;
      this.text = null;
      this.editor = null;
      this.usage = null;
    }
    const current = this.job;
    const idle = !current || current.state === "failed" || current.state === "cancelled";
    const next = added.find((job) => job.state !== "failed") ?? (current ? undefined : (added[0] ?? this.jobs[0]));
    if (idle && next) this.select(next.id);
  }

  #announce(before: Job | undefined, job: Job): void {
    const stage = (of: Job | undefined) => of && `${of.state} ${of.progress?.stage ?? ""} ${of.not_saved?.code ?? ""} ${of.not_stored?.code ?? ""}`;
    const said = warningOf(job) ?? t.state(job);
    if (stage(before) !== stage(job)) this.announcement = `${job.name}: ${said}`;
  }

  /** What was corrected since the last look is offered, too. */
  async lookForCorrectedWords(): Promise<void> {
    this.corrected = (await this.ask((backend) => backend.correctedWords())) ?? this.corrected;
  }

  /** Offers a word no longer, or again; whether that was done. */
  async ignoreWord(word: string, ignored: boolean): Promise<boolean> {
    const done = await this.ask((backend) => backend.ignoreWord(word, ignored).then(() => true));
    await this.lookForCorrectedWords();
    return done ?? false;
  }

  /** Null where it failed, which is told. */
  async ask<T>(work: (backend: Backend) => Promise<T>): Promise<T | null> {
    try {
      return await work(this.#backend);
    } catch (error) {
      this.#fail(asFailure(error), null);
      return null;
    }
  }

  /** Where the words occur in a transcript; the caller says what is wrong with them. */
  find(job: number, finding: Finding): Promise<Place[]> {
    return this.#backend.places(job, finding);
  }

  /** A good message with something to do about it; it stays until it is closed, or for so many seconds. */
  offer(text: string, action: NonNullable<Toast["action"]>, seconds: number | null = null): number {
    const id = this.#push({ text, failure: null, warning: false, action });
    if (seconds !== null) setTimeout(() => this.dismiss(id), seconds * 1000);
    return id;
  }

  /** Opens a transcript of the history, where words in it were found there, and plays a part of it. */
  async openDocument(document: number, at: number | null, words = "", part: Pick<Gap, "start" | "end"> | null = null): Promise<void> {
    const job = await this.ask((backend) => backend.openDocument(document));
    if (job === null) return;
    this.show("recordings");
    this.select(job);
    if (!this.editor) return;
    this.editor.wanted = at;
    this.editor.sought = words;
    this.editor.toHear = part;
  }

  async #try(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.#fail(asFailure(error), null);
    }
  }

  #fail(failure: Failure, action: Toast["action"]): void {
    this.#push({ text: t.errors[failure.code], failure, warning: false, action });
  }

  #push(toast: Omit<Toast, "id">): number {
    const id = ++this.#toasts;
    this.toasts = [...this.toasts, { ...toast, id }].slice(-MOST_TOASTS);
    return id;
  }
}
