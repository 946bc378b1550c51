import type {
  Adapter, CorrectedWord, Attempt, ChartFile, Connection, DocumentInfo, Edit, Edited, EngineInfo, Exporting, Failure, Finding, FoundPassage, Place, Format, Gap, Hit, IndexState, Job, LearningRun, Lessons, Look, Machine,
  MemoryUpdate, Microphone, ModelChoice, ModelFits, NamePreview, Part, PassageResults, SaveLocation, PlaySource, Preference, PreferenceName, Preset, Progress, Replaced, Review, Saved, Segment, SearchChoices, SearchFilter, SearchResults, Settings, Setup, ModelCatalog, Switches, TextChange, TextUpdate, Transfer,
  WatchedFolder, Undone, Voice, VoiceList, WindowEvent, WorkerQueue, WorkersView,
} from "../generated/contract";
import type { Backend } from ".";
import { FITS, PREFERENCES } from "./fake-choices";
import { FakeText, words } from "./fake-editor";
import { MACHINES } from "./fake-machines";
import { FakeMemory } from "./fake-memory";
import { BEGUN, BROKEN_OFF, CONNECTIONS, RECOMMENDED, CATALOG, CATALOG_WITH_RECOMMENDED, transfer } from "./fake-catalog";
import { ENGINE, FILES, MODELS, recording, SENTENCES, silence, WORKERS } from "./fake-data";

/** What a pretended job is worked on with: recording seconds per tick, milliseconds per tick. */
const SECONDS_PER_TICK = 3;

/** When the pretended history was made: milliseconds since 1970. */
const CREATED = Date.UTC(2026, 10, 3, 9, 30);

/** Adjusted by the page's address, e.g. `?scene=running&real&speed=10`. */
export function fakeBackend(options: URLSearchParams): FakeBackend {
  const fake = new FakeBackend(Number(options.get("tick") ?? 100));
  if (options.has("real")) fake.settings = { ...fake.settings, model: 1 };
  const theme = options.get("theme");
  if (theme === "light" || theme === "dark") fake.look = { ...fake.look, theme };
  fake.still = options.has("still");
  fake.show(options.get("scene") ?? "empty");
  return fake;
}

interface Work {
  job: Job;
  segments: Segment[];
  /** Once it is finished. */
  text?: FakeText;
  update: TextUpdate;
  memory: FakeMemory;
}

/** Pretends to transcribe, by a timer. For browsers, component tests and pictures. */
export class FakeBackend implements Backend {
  settings: Settings = { model: 0, language: null, translate: false, bilingual: false, beams: null, several_languages: false, words: [], words_strength: null, prompt: "", channels: "mix", voice_activity: 0.5, speakers: false, speaker_count: null, output_folder: null, name_template: "", when_finished: null };
  engine: EngineInfo | Failure = ENGINE;
  /** Rejects the next save. */
  saveFailure: Failure | null = null;
  /** Rejects saving these recordings beside themselves. */
  readonly saveFailures = new Map<number, Failure>();
  saved: [number, Format, SaveLocation][] = [];
  closed = false;
  look: Look = { theme: "system", language: null, hide_unsure: false, hide_pictures: false, keys: {} };
  /** What of the choices of earlier windows could not be read. */
  forgotten: Failure | null = null;
  exporting: Exporting = { formats: ["srt"], shaped: false, word_times: false, raw_text: false, translation: true, document: { times: true, speakers: true, paragraphs: true } };
  fits: ModelFits = FITS;
  settingsOfFile: Preference[] = PREFERENCES;
  charts: [number, ChartFile, Uint8Array][] = [];
  /** Samples of memory are made up; where this is set a job runs short of it. */
  squeezed = false;
  /** Nothing goes on by itself, for pictures. */
  still = false;
  paused = false;
  models: ModelChoice[] = MODELS;
  catalogNow: ModelCatalog = CATALOG;
  transfers: Transfer[] = [];
  removed: string[] = [];
  imported: boolean[] = [];
  used: Connection[] = CONNECTIONS;
  shortestFirst = false;
  presets: Preset[] = [];
  outputFolders: string[] = [];
  watched: WatchedFolder[] = [];
  switches: Switches = { stay_awake: true, notify: true };
  machine: Machine = { on: false, address: "", model: null };
  /** Never told to the page. */
  machineToken: string | null = null;
  /** What the other machine has; or why it can’t be used. */
  machineModels: string[] | Failure = ["whisper-large-v3", "whisper-small"];
  /** Why a machine can’t be switched on. */
  machineRefused: Failure | null = null;
  workers: WorkerQueue = { address: "", queue: "steno" };
  /** How often the queue of workers was looked at. */
  looks = 0;
  /** What it is like; or why it can’t be looked at. */
  workersNow: WorkersView | Failure = WORKERS;
  notified: [string, string][] = [];
  /** Words that the user corrects again and again. */
  corrected: CorrectedWord[] = [];
  ignoredWords = new Set<string>();
  /** Transcripts by job, which is the document too; those that were deleted with it. */
  deleted = new Set<number>();
  exported: number[][] = [];

  /** How far the search by meaning is; without a model at first. */
  index: IndexState = { model: null, done: 0, total: 0, revision: 0, speed: null, failure: null };
  /** Of every search. */
  filters: SearchFilter[] = [];

  /** A model that compares meanings is installed, or works. */
  compares(state: Partial<IndexState> = {}): void {
    this.index = { ...this.index, model: "multilingual-e5-small", done: 214, total: 214, ...state };
    this.emit({ kind: "index", state: this.index });
  }

  /** How often its memory was asked for. */
  freed = 0;
  #works = new Map<number, Work>();
  #attempts = new Map<number, Attempt | null>();
  /** In the history and not in the list. */
  #closed = new Map<number, Work>();
  #last = 0;
  #events: ((event: WindowEvent) => void) | null = null;
  #pending: WindowEvent[] = [];
  #order: number[] = [];
  #watchedMemory: { job: number; tell: (update: MemoryUpdate) => void; from: number } | null = null;
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
      squeezed: () => {
        this.squeezed = true;
        this.#advance(FILES.slice(0, 1), 60);
      },
      failed: () => {
        this.#advance(FILES.slice(0, 1), 60);
        this.drop([FILES[4] ?? ""]);
      },
      stopped: () => {
        this.#advance(FILES.slice(0, 1), 12);
        void this.cancel(1);
      },
      paused: () => {
        this.#advance(FILES.slice(0, 3), 14);
        void this.pauseJob(1);
        clearInterval(this.#timer);
        this.#timer = undefined;
        this.#step();
      },
      tracks: () => {
        this.drop(FILES.slice(0, 2));
        this.paused = true;
        const track = { codec: "aac", channels: 2 };
        const tracks = [
          { ...track, number: 0, language: "en", title: "Stage", default: true },
          { ...track, number: 1, language: "de", title: "Interpreter", default: false },
        ];
        this.#change(1, { tracks, duration: 754 });
      },
      output: () => {
        this.outputFolders = ["/home/me/Transcripts"];
        const when_finished = { ...this.exporting, formats: ["srt", "docx"] as Format[] };
        this.corrected = [
          { word: "metoprolol", heard: ["met a pro law"], times: 4 },
          { word: "Aarhus", heard: ["R who’s", "our house"], times: 2 },
          { word: "Ljungberg", heard: ["a buyer"], times: 2 },
        ];
        this.settings = { ...this.settings, beams: 5, output_folder: 0, name_template: "{name}_{date}_{language}", when_finished };
        this.#advance(FILES.slice(0, 1), 60);
      },
      drag: () => this.emit({ kind: "drag_over", files: 3 }),
      closing: () => {
        this.#advance(FILES.slice(0, 2), 12);
        this.emit({ kind: "close_requested", unfinished: 2, unsaved: [1] });
      },
      no_engine: () => {
        this.engine = {
          code: "engine_not_found",
          file: null,
          message: "There is no engine: looked beside the program and in /usr/lib/steno.",
          remedy: "Install Steno again, or set STENO_ENGINE to the engine’s path.",
        };
      },
      // One transcript of 20,000 segments, and one of two hundred to compare it with.
      long: () => {
        this.#advance(FILES.slice(0, 2), 4);
        const text = (index: number) => SENTENCES[index % SENTENCES.length] ?? "";
        for (const [job, segments] of [[1, 20_000], [2, 200]] as const) {
          const work = this.#works.get(job);
          const before = work?.segments.length ?? 0;
          work?.segments.push(...Array.from({ length: segments - before }, (_, index) => segment(index * 4, text(index), before + index + 1)));
          this.#end(job, "finished");
        }
      },
      history: () => {
        this.#advance(FILES.slice(0, 3), 190);
        void this.remove(2);
      },
      meaning: () => {
        this.#advance(FILES.slice(0, 3), 190);
        this.compares();
      },
      indexing: () => {
        this.#advance(FILES.slice(0, 3), 190);
        this.compares({ done: 1240, total: 5210, speed: 31 });
      },
      missing: () => {
        this.#advance(FILES.slice(0, 1), 60);
        this.#change(1, { missing: true });
      },
      only_demonstration: () => {
        this.#onlyDemonstration();
        this.drop(FILES.slice(0, 2));
      },
      downloading: () => {
        this.#onlyDemonstration();
        this.drop(FILES.slice(0, 2));
        this.#transfer(transfer(RECOMMENDED));
      },
      catalog: () => {
        this.catalogNow = { ...CATALOG, entries: [...BEGUN, ...CATALOG.entries] };
        this.#transfer(transfer("whisper-large-v2", { total: 6170e6, left: 960 }), BROKEN_OFF, transfer("whisper-medium", { is_import: true, stage: "copy", speed: 210e6, left: 3 }));
      },
      nothing: () => this.#onlyDemonstration(),
      offline: () => {
        this.catalogNow = { ...CATALOG, offline: true };
      },
      offline_held: () => {
        this.#onlyDemonstration();
        this.catalogNow = { ...this.catalogNow, offline: true };
        this.drop(FILES.slice(0, 2));
      },
      watched: () => {
        this.presets = [
          { name: "Interviews", settings: { ...this.settings, model: 1, language: "de", beams: 5, words: ["Ærø"] }, missing_model: null },
          { name: "Lectures", settings: { ...this.settings, model: null }, missing_model: "/media/disk/whisper-large-v3" },
        ];
        const exporting = { formats: ["srt", "txt"] as Format[], shaped: false, word_times: false, raw_text: false, translation: true, document: { times: true, speakers: true, paragraphs: true } };
        const failure: Failure = {
          code: "folder_not_found", file: "/media/recorder", message: "The watched folder was not found.",
          remedy: "Connect the disk that it is on, or watch another folder. Steno keeps checking.",
        };
        this.watched = [
          { folder: "/home/me/Recorder", exporting, into: null, failure: null },
          { folder: "/media/recorder", exporting: { ...exporting, formats: [] }, into: "/home/me/Texts", failure },
        ];
        this.#advance(FILES.slice(0, 4), 14);
        const own = { model_name: "whisper-small", model_folder: null, language: "de", translate: true, bilingual: false, beams: 5, several_languages: true, words: ["Ærø", "Aarhus"], words_strength: null, prompt: "", channels: "mix" as const, voice_activity: 0.5, speakers: false, speaker_count: null, output_folder: null, name_template: "", when_finished: null };
        this.#change(3, { watched: true, duration: 754 });
        this.#change(4, { own, duration: 61 });
      },
      many: () => {
        this.drop(Array.from({ length: 1000 }, (_, index) => `/home/me/Archive/tape ${index + 1}.mp3`));
        void this.startAnyway();
      },
    };
    const machine = MACHINES[scene];
    if (machine) {
      const { engine, fits, preferences } = machine();
      Object.assign(this, { engine, fits, settingsOfFile: preferences });
    }
    scenes[scene]?.();
  }

  /** As if files had been dropped on the window. */
  drop(paths: string[]): void {
    this.emit({ kind: "drag_left" });
    const changed = paths.map((path) => this.#add(path, false));
    this.emit({ kind: "jobs", changed, removed: [], order: null });
    this.#run();
  }

  /** As if something had become of a job. */
  set(job: number, change: Partial<Job>): void {
    this.#change(job, change);
  }

  emit(event: WindowEvent): void {
    this.#pending.push(event);
    queueMicrotask(() => this.#flush());
  }

  attach(onEvent: (event: WindowEvent) => void): Promise<Setup> {
    this.#events = onEvent;
    // As from the shell: what there is may be told before the call is answered.
    queueMicrotask(() => this.#flush());
    return new Promise((answer) => setTimeout(() => answer(this.#setup()), 20));
  }

  async describe(): Promise<EngineInfo> {
    if ("message" in this.engine) throw this.engine;
    return this.engine;
  }

  async chooseFiles(): Promise<void> {
    this.drop(FILES);
  }

  async addSample(): Promise<void> {
    this.emit({ kind: "jobs", changed: [this.#add("/usr/share/steno/sample.flac", true)], removed: [], order: null });
    this.#run();
  }

  #replaced: Work[] = [];
  readonly #tags = new Map<number, string[]>();
  knownVoices: Voice[] = [];
  /** Recordings that were shown in the file manager. */
  readonly shownInFolder: number[] = [];
  /** Recordings whose speakers were asked for. */
  /** What is spoken in recordings. */
  languageOf = "en";
  readonly spokenOf: number[] = [];
  /** Parts whose sound was saved. */
  readonly sounds: [number, Gap][] = [];
  /** Whether a search of the history leaves some out. */
  moreFound = false;

  async modelFits(): Promise<ModelFits> {
    return this.fits;
  }

  async changeLook(look: Look): Promise<void> {
    this.look = look;
    this.#tellSetup();
  }

  async preferences(): Promise<Preference[]> {
    return this.settingsOfFile;
  }

  async changePreference(name: PreferenceName, value: string | null): Promise<Preference[]> {
    if (value !== null && name === "batch_size" && !/^[1-9]\d*$/.test(value)) {
      const remedy = "Enter another value, or none.";
      throw { code: "bad_settings", file: null, message: `"${value}" can’t be used: it takes a number from 1.`, remedy } satisfies Failure;
    }
    this.settingsOfFile = this.settingsOfFile.map((one) => (one.name === name ? { ...one, value } : one));
    return this.settingsOfFile;
  }

  async changeMachine(machine: Machine, token: string | null): Promise<void> {
    if (machine.on && this.machineRefused) throw this.machineRefused;
    if (token !== null) this.machineToken = token || null;
    else if (machine.address !== this.machine.address) this.machineToken = null;
    this.machine = machine;
    this.#tellSetup();
  }

  async testMachine(): Promise<string[]> {
    if ("message" in this.machineModels) throw this.machineModels;
    return this.machineModels;
  }

  async changeWorkerQueue(queue: WorkerQueue): Promise<void> {
    this.workers = queue;
    this.#tellSetup();
  }

  async lookAtWorkers(): Promise<WorkersView> {
    this.looks++;
    if ("message" in this.workersNow) throw this.workersNow;
    return this.workersNow;
  }

  async diagnostics(): Promise<string> {
    return JSON.stringify({ version: "0.1.0", engine: this.engine }, null, 2);
  }

  async pause(paused: boolean): Promise<void> {
    this.paused = paused;
    this.#tellSetup();
    this.#run();
  }

  async reorder(jobs: number[], before: number | null): Promise<void> {
    const rest = this.#order.filter((id) => !jobs.includes(id));
    const place = before === null ? rest.length : rest.indexOf(before);
    rest.splice(place, 0, ...jobs);
    this.#order = rest;
    this.emit({ kind: "jobs", changed: [], removed: [], order: rest });
  }

  async watchMemory(job: number, onUpdate: (update: MemoryUpdate) => void): Promise<void> {
    this.#watchedMemory = { job, tell: onUpdate, from: 0 };
    this.#tellMemory(job);
  }

  async saveSound(job: number, part: Gap): Promise<string | null> {
    this.sounds.push([job, part]);
    return "/home/me/Interviews/part.wav";
  }

  async saveChart(job: number, kind: ChartFile, bytes: Uint8Array): Promise<string | null> {
    this.charts.push([job, kind, bytes]);
    return `/home/me/Interviews/memory.${kind}`;
  }

  chooseModel(): Promise<void> {
    return this.changeSettings({ ...this.settings, model: 1 });
  }

  /** The list that the user chooses. */
  wordList: string[] | null = ["Ada Lovelace", "naproxen"];
  savedWords: string[][] = [];

  async readWordLists(): Promise<string[] | null> {
    return this.wordList;
  }

  async saveWordList(words: string[]): Promise<string | null> {
    this.savedWords.push(words);
    return "/home/me/words.txt";
  }

  async chooseOutputFolder(): Promise<number | null> {
    const folder = `/home/me/Texts ${this.outputFolders.length + 1}`;
    this.outputFolders = [...this.outputFolders, folder];
    this.#tellSetup();
    return this.outputFolders.length - 1;
  }

  async previewName(template: string, name: string): Promise<NamePreview> {
    const facts: Record<string, string> = { name, date: "2026-11-24", language: this.settings.language ?? "en", model: "whisper-small" };
    const character = /[/\\:*?"<>|]/.exec(template)?.[0];
    if (character !== undefined) return { name: null, problem: { kind: "forbidden", character } };
    const placeholder = [...template.matchAll(/\{([^{}]*)\}/g)].map(([, word]) => word ?? "").find((word) => !(word in facts));
    if (placeholder !== undefined) return { name: null, problem: { kind: "unknown", placeholder } };
    const filled = template.trim().replace(/\{(\w+)\}/g, (_, word: string) => facts[word] ?? "");
    return /[{}]/.test(filled) ? { name: null, problem: { kind: "brace" } } : { name: filled, problem: null };
  }

  async changeSettings(settings: Settings): Promise<void> {
    this.settings = settings;
    this.#tellSetup();
    for (const { job } of this.#works.values()) {
      const hold = this.#isDemonstration() && !job.sample;
      if (job.state === "held" && !hold) this.#change(job.id, { state: "waiting" });
      if (job.state === "waiting" && hold) this.#change(job.id, { state: "held" });
    }
    this.#run();
  }

  async freeMemory(): Promise<void> {
    this.freed++;
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

  async pauseJob(job: number): Promise<void> {
    const work = this.#works.get(job);
    if (work?.job.state !== "running") return;
    const { progress } = work.job;
    this.#change(job, { state: "paused", progress: null, reached: progress?.stage === "transcribe" ? progress.position : null });
    work.memory.end();
    this.#tell(work, { from: work.segments.length, segments: [], ending: { language: "und", complete: false, speech: 0, covered: 0, gaps: [] } });
    this.#run();
  }

  async retry(job: number): Promise<void> {
    const work = this.#works.get(job);
    if (!work || work.job.failure) return;
    if (work.job.state === "paused") {
      const waits = (id: number) => this.#works.get(id)?.job.state === "waiting";
      const rest = this.#order.filter((id) => id !== job);
      const place = rest.findIndex(waits);
      rest.splice(place < 0 ? rest.length : place, 0, job);
      this.#order = rest;
      this.#change(job, { state: "waiting" });
      this.emit({ kind: "jobs", changed: [], removed: [], order: rest });
      this.#run();
      return;
    }
    work.segments = [];
    work.memory = new FakeMemory();
    if (this.#watchedMemory?.job === job) this.#watchedMemory.from = 0;
    this.#tell(work, { from: 0, segments: [], editing: null, ending: null });
    this.#change(job, { state: "waiting" });
    this.#run();
  }

  async again(job: number, part: Gap, attempt: Attempt | null): Promise<void> {
    const work = this.#works.get(job);
    if (!work) return;
    this.#attempts.set(job, attempt);
    this.#change(job, { again: [...work.job.again, { ...part, speakers: false, translation: false, found: null }] });
  }

  /** What was asked for again is there. */
  foundAgain(job: number): void {
    const work = this.#works.get(job);
    const part = work?.job.again[0];
    if (!work?.text || !part) return;
    const attempt = this.#attempts.get(job);
    const model = this.models.find(({ id }) => id === (attempt?.model ?? this.settings.model))?.name ?? "";
    const said = { ...segment(part.start, "It was said otherwise, or so this model heard it.", 0), end: part.end };
    if (attempt) this.#change(job, { again: [{ ...part, speakers: false, translation: false, found: { model, language: attempt.language ?? "en", segments: [said] } }, ...work.job.again.slice(1)] });
    else this.#put(work, part, []);
  }

  async showInFolder(job: number): Promise<void> {
    this.shownInFolder.push(job);
  }

  async findSpeakers(job: number): Promise<void> {
    this.spokenOf.push(job);
    this.#change(job, { again: [{ start: 0, end: 4e6, speakers: true, translation: false, found: null }] });
  }

  async translate(job: number): Promise<void> {
    this.#change(job, { again: [{ start: 0, end: 4e6, speakers: false, translation: true, found: null }] });
  }

  /** The translation that was asked for is there. */
  translated(job: number): void {
    const work = this.#works.get(job);
    if (!work?.text) return;
    work.text.translate();
    this.#show(work);
    this.#change(job, { again: [] });
  }

  async findChapters(job: number): Promise<Edited | null> {
    if (this.index.model === null) {
      throw { code: "no_embedding_model", file: null, message: "No model that compares meanings is installed.", remedy: "Install one: steno models pull multilingual-e5-small" } satisfies Failure;
    }
    return this.#edited(job, (text) => {
      const begins = [0, Math.floor(text.segments.length / 2)].flatMap((number) => text.segments[number] ?? []);
      const titles = ["Harbour, ferry", "Quay"];
      return text.setChapters(begins.map(({ id }, number) => ({ segment: id, start: 0, title: titles[number] ?? "" })));
    });
  }

  async chooseAgain(job: number, part: Gap, take: boolean): Promise<Edited | null> {
    const work = this.#works.get(job);
    const found = work?.job.again.find(({ start }) => start === part.start)?.found;
    if (!work || !found) return null;
    if (take) this.#put(work, part, found.segments);
    else this.#change(job, { again: work.job.again.filter(({ start }) => start !== part.start) });
    return null;
  }

  #put(work: Work, part: Gap, found: Segment[]): void {
    if (found.length > 0) work.text?.replace(part, found);
    else if (work.text) work.text.gaps = work.text.gaps.filter(({ start }) => start !== part.start);
    this.#show(work);
    this.#change(work.job.id, { again: work.job.again.filter(({ start }) => start !== part.start) });
  }

  async remove(job: number): Promise<void> {
    const work = this.#works.get(job);
    if (work?.text) this.#closed.set(job, work);
    this.#works.delete(job);
    this.#order = this.#order.filter((id) => id !== job);
    this.emit({ kind: "jobs", changed: [], removed: [job], order: null });
  }

  async save(job: number, exporting: Exporting, place: SaveLocation): Promise<Saved | null> {
    const saved: Saved = { files: [], failures: [] };
    const { name, folder } = this.#works.get(job)?.job ?? { name: "", folder: "" };
    for (const format of exporting.formats) {
      const failure = this.saveFailure ?? (place === "beside" ? (this.saveFailures.get(job) ?? null) : null);
      if (failure) {
        saved.failures.push({ format, failure });
        this.saveFailure = null;
        continue;
      }
      this.saved.push([job, format, place]);
      saved.files.push(`${folder}/${name.replace(/\.\w+$/, "")}.${format}`);
    }
    if (place !== "beside_replacing") this.exporting = exporting;
    this.#tellSetup();
    this.#wrote(job, exporting.formats.filter((format) => !saved.failures.some((one) => one.format === format)));
    if (saved.files[0] && saved.failures.length === 0) this.#change(job, { saved: saved.files[0] });
    return saved;
  }

  /** Of what was not saved when it was finished, these formats are. */
  #wrote(job: number, formats: Format[]): void {
    const unsaved = this.#works.get(job)?.job.unsaved;
    if (!unsaved) return;
    const left = unsaved.formats.filter((format) => !formats.includes(format));
    this.#change(job, left.length > 0 ? { unsaved: { ...unsaved, formats: left } } : { unsaved: null, not_saved: null });
  }

  async saveUnsaved(job: number, replace: boolean): Promise<Saved> {
    const unsaved = this.#works.get(job)?.job.unsaved;
    return (unsaved && (await this.save(job, unsaved, replace ? "beside_replacing" : "beside"))) ?? { files: [], failures: [] };
  }

  async close(really: boolean): Promise<void> {
    this.closed = really;
  }

  async catalog(): Promise<ModelCatalog> {
    return this.catalogNow;
  }

  async download(id: string): Promise<void> {
    this.#transfer(transfer(id, { stage: "look", done: 0, total: 0, speed: null, left: null }));
  }

  /** As when the shell tells how a download goes. */
  progress(id: string, change: Partial<Transfer>): void {
    this.transfers = this.transfers.map((one) => (one.id === id ? { ...one, ...change } : one));
    this.#transfer();
  }

  /** As when it was verified: it is there, and is used where only the demonstration was. */
  arrive(id: string): void {
    const model = { id: this.models.length, name: id, folder: `/home/me/models/${id}`, demonstration: false, note: null, removable: true };
    this.models = [...this.models, model];
    this.catalogNow = { ...this.catalogNow, entries: this.catalogNow.entries.filter((offer) => offer.id !== id) };
    void this.stopDownload(id);
    void this.changeSettings({ ...this.settings, model: model.id });
  }

  async pauseDownload(id: string, paused: boolean): Promise<void> {
    this.progress(id, { paused });
  }

  async stopDownload(id: string): Promise<void> {
    this.transfers = this.transfers.filter((one) => one.id !== id);
    this.#transfer();
  }

  async importModel(folder: boolean): Promise<void> {
    this.imported.push(folder);
    this.arrive("imported-model");
  }

  async removeModel(id: string): Promise<void> {
    this.removed.push(id);
    this.models = this.models.filter((model) => model.name !== id);
    this.catalogNow = { ...this.catalogNow, entries: this.catalogNow.entries.filter((offer) => offer.id !== id) };
    this.#tellSetup();
  }

  async connections(): Promise<Connection[]> {
    return this.used;
  }

  async painted(): Promise<void> {}

  #transfer(...more: Transfer[]): void {
    const rest = this.transfers.filter((one) => !more.some((now) => now.id === one.id));
    this.transfers = [...rest, ...more];
    this.emit({ kind: "transfers", transfers: this.transfers });
  }

  #onlyDemonstration(): void {
    this.models = MODELS.slice(0, 1);
    this.catalogNow = CATALOG_WITH_RECOMMENDED;
    this.fits = { ...FITS, models: FITS.models.slice(0, 1), recommended: null };
  }

  async changeOwn(jobs: number[], settings: Settings | null): Promise<void> {
    const { model, output_folder, ...rest } = settings ?? this.settings;
    const output = output_folder === null ? null : (this.outputFolders[output_folder] ?? null);
    const { name, folder } = MODELS.find((one) => one.id === (model ?? this.settings.model)) ?? { name: null, folder: null };
    for (const job of jobs) this.#change(job, { own: settings && { ...rest, model_name: name, model_folder: folder, output_folder: output } });
  }

  async changePart(job: number, part: Part): Promise<void> {
    this.#change(job, { part });
  }

  async putShortestFirst(on: boolean): Promise<void> {
    this.shortestFirst = on;
    const length = (id: number) => this.#works.get(id)?.job.duration ?? Infinity;
    const waits = (id: number) => this.#works.get(id)?.job.state === "waiting";
    const order = this.#order.toSorted((a, b) => a - b);
    const waiting = on ? order.filter(waits).toSorted((a, b) => length(a) - length(b)) : [];
    this.#order = on ? [...order.filter((id) => !waits(id)), ...waiting] : order;
    this.emit({ kind: "jobs", changed: [], removed: [], order: this.#order });
    this.#tellSetup();
  }

  async cancelAll(): Promise<void> {
    for (const id of this.#order.toReversed()) await this.cancel(id);
  }

  async retryFailed(): Promise<void> {
    for (const { job } of this.#works.values()) {
      if (job.state === "failed" && !job.name.endsWith(".pdf")) this.#change(job.id, { state: "waiting", failure: null });
    }
    this.#run();
  }

  async savePreset(name: string, settings: Settings): Promise<void> {
    this.presets = [...this.presets.filter((one) => one.name !== name), { name, settings, missing_model: null }];
    this.#tellSetup();
  }

  async renamePreset(name: string, to: string): Promise<void> {
    if (name !== to && this.presets.some((one) => one.name === to)) {
      throw { code: "bad_settings", file: null, message: `A preset named "${to}" already exists.`, remedy: "Choose another name." } satisfies Failure;
    }
    this.presets = this.presets.map((one) => (one.name === name ? { ...one, name: to } : one));
    this.#tellSetup();
  }

  async deletePreset(name: string): Promise<void> {
    this.presets = this.presets.filter((one) => one.name !== name);
    this.#tellSetup();
  }

  async watchFolder(): Promise<void> {
    this.watched = [...this.watched, { folder: "/home/me/Dictations", exporting: this.exporting, into: null, failure: null }];
    this.#tellSetup();
  }

  changeWatched(number: number, exporting: Exporting): Promise<void> {
    return this.#changeWatched(number, { exporting });
  }

  placeWatched(number: number, beside: boolean): Promise<void> {
    return this.#changeWatched(number, { into: beside ? null : "/home/me/Texts" });
  }

  async unwatchFolder(number: number): Promise<void> {
    this.watched = this.watched.filter((_, index) => index !== number);
    this.#tellSetup();
  }

  async changeSwitches(switches: Switches): Promise<void> {
    this.switches = switches;
    this.#tellSetup();
  }

  async playSource(job: number): Promise<PlaySource> {
    return silence(this.#works.get(job)?.job.duration ?? 60);
  }

  async notify(title: string, text: string): Promise<void> {
    this.notified.push([title, text]);
  }

  async review(job: number): Promise<Review> {
    return this.#works.get(job)?.text?.review() ?? { count: 0, passages: [] };
  }

  edit = async (job: number, edit: Edit): Promise<Edited | null> => this.#edited(job, (text) => text.edit(edit));
  undo = async (job: number): Promise<Edited | null> => this.#edited(job, (text) => text.undo());
  redo = async (job: number): Promise<Edited | null> => this.#edited(job, (text) => text.redo());

  async countPlaces(job: number, finding: Finding): Promise<Replaced> {
    void job;
    const places = this.#documents().map(({ segments }) =>
      segments.reduce((sum, { text }) => sum + text.toLowerCase().split(finding.text.toLowerCase()).length - 1, 0),
    );
    return { places: places.reduce((sum, one) => sum + one, 0), transcripts: places.filter((one) => one > 0).length };
  }

  async places(job: number, finding: Finding): Promise<Place[]> {
    return finding.text === "" ? [] : (this.#works.get(job)?.text?.places(finding) ?? []);
  }

  async replaceOne(job: number, finding: Finding, withText: string, place: Place): Promise<Place | null> {
    const work = this.#works.get(job);
    const behind = work?.text?.replaceOne(finding, withText, place) ?? null;
    if (work && behind) this.#show(work);
    return behind;
  }

  async undoReplacing(): Promise<Undone> {
    const undone = this.#replaced.splice(0);
    for (const work of undone) {
      work.text?.undo();
      this.#show(work);
    }
    return { undone: undone.length, left: [] };
  }

  async replaceAll(job: number, finding: Finding, withText: string, everywhere: boolean): Promise<Replaced> {
    const works = everywhere ? [...this.#works.values(), ...this.#closed.values()] : [this.#works.get(job)];
    const replaced: Replaced = { places: 0, transcripts: 0 };
    this.#replaced = [];
    for (const work of works) {
      const places = work?.text?.replaceAll(finding, withText) ?? 0;
      if (!work || places === 0) continue;
      replaced.places += places;
      replaced.transcripts++;
      this.#replaced.push(work);
      this.#show(work);
    }
    return replaced;
  }

  async documents(): Promise<DocumentInfo[]> {
    return this.#documents().map(({ job }) => ({
      id: job.id, title: job.name, folder: job.folder, created: CREATED, changed: CREATED + job.id * 60_000,
      duration: job.duration ?? 0, language: "en", model: job.model ?? "", tags: this.#tags.get(job.id) ?? [],
    }));
  }

  async searchDocuments(text: string, filter: SearchFilter): Promise<SearchResults> {
    this.filters.push(filter);
    const of = ({ job, segments }: Work): Hit[] =>
      segments
        .filter((segment) => segment.text.toLowerCase().includes(text.toLowerCase()))
        .map((segment) => ({ document: job.id, title: job.name, segment: segment.id, start: segment.start, text: segment.text }));
    const hits = this.#documents().flatMap(of);
    return { hits, more: this.moreFound };
  }

  /** Whatever has a word of the question; by meaning, whatever comes behind that. */
  async findPassages(text: string, filter: SearchFilter, byMeaning: boolean): Promise<PassageResults> {
    this.filters.push(filter);
    const words = text.toLowerCase().split(/\s+/).filter((word) => word.length > 2);
    const has = (one: string) => words.some((word) => one.toLowerCase().includes(word));
    const passages = this.#passages(filter).map((one) => {
      const parts = one.text.flatMap(([said]) => said.split(/(?<= )/)).map((word): [string, boolean] => [word, has(word)]);
      const by_words = parts.some(([, found]) => found);
      return { ...one, text: parts, by_words, by_meaning: byMeaning };
    });
    const found = passages.filter(({ by_words }) => by_words);
    const others = byMeaning ? passages.filter(({ by_words }) => !by_words).slice(0, 2) : [];
    return { passages: [...found, ...others], by_meaning: byMeaning };
  }

  async similarPassages(passage: number, filter: SearchFilter): Promise<PassageResults> {
    return { passages: this.#passages(filter).filter(({ id }) => id > passage).slice(0, 3), by_meaning: true };
  }

  async correctedWords(): Promise<CorrectedWord[]> {
    return this.corrected.filter(({ word }) => !this.ignoredWords.has(word));
  }

  async ignoreWord(word: string, ignored: boolean): Promise<void> {
    if (ignored) this.ignoredWords.add(word);
    else this.ignoredWords.delete(word);
  }

  async searchChoices(): Promise<SearchChoices> {
    return { speakers: ["Ada", "Grace"], languages: ["de", "en"] };
  }

  /** A passage per segment, said by two people by turns. */
  #passages({ speaker, language, since, until }: SearchFilter): FoundPassage[] {
    const isWanted = (one: FoundPassage) =>
      (speaker === null || one.speaker === speaker) && (since === null || one.created >= since) && (until === null || one.created < until);
    const of = ({ job, segments }: Work): FoundPassage[] =>
      segments.map(({ id, start, end, text }) => ({
        id: job.id * 1000 + id, document: job.id, title: job.name, created: CREATED, segment: id, start, end,
        speaker: id % 2 === 0 ? "Grace" : "Ada", text: [[text, false]], by_words: false, by_meaning: true,
      }));
    return language === null || language === "en" ? this.#documents().flatMap(of).filter(isWanted) : [];
  }

  async openDocument(document: number): Promise<number> {
    const work = this.#closed.get(document);
    if (work) {
      this.#closed.delete(document);
      this.#works.set(document, work);
      this.#order.push(document);
      this.emit({ kind: "jobs", changed: [work.job], removed: [], order: this.#order });
    }
    return document;
  }

  async tagDocument(document: number, tags: string[]): Promise<void> {
    this.#tags.set(document, [...new Set(tags.map((tag) => tag.trim()).filter(Boolean))].sort());
  }

  async deleteDocument(document: number): Promise<void> {
    await this.remove(document);
    this.deleted.add(document);
  }

  async restoreDocument(document: number): Promise<void> {
    this.deleted.delete(document);
  }

  async voices(): Promise<VoiceList> {
    return { voices: this.knownVoices, damaged: [] };
  }

  async addVoice(name: string): Promise<VoiceList> {
    return this.#addSample(name, "interview.wav");
  }

  async rememberSpeaker(job: number, speaker: string): Promise<VoiceList> {
    return this.#addSample(speaker, this.#works.get(job)?.job.name ?? "");
  }

  async renameVoice(name: string, to: string): Promise<VoiceList> {
    this.knownVoices = this.knownVoices.map((voice) => (voice.name === name ? { ...voice, name: to } : voice));
    return this.voices();
  }

  async removeVoice(name: string, sample: number | null): Promise<VoiceList> {
    const left = (voice: Voice): Voice => ({ ...voice, samples: voice.samples.filter((_, number) => number !== sample) });
    this.knownVoices = this.knownVoices.flatMap((voice) => (voice.name !== name ? [voice] : sample === null ? [] : [left(voice)]));
    return this.voices();
  }

  knownAdapters: Adapter[] = [];
  run: LearningRun | null = null;
  lessonsOf: Lessons = { recordings: [], memory: 420 * 2 ** 20, failure: null };

  async adapters(): Promise<Adapter[]> {
    return this.knownAdapters;
  }

  async switchAdapter(name: string, on: boolean): Promise<Adapter[]> {
    this.knownAdapters = this.knownAdapters.map((adapter) => (adapter.name === name ? { ...adapter, on } : adapter));
    return this.knownAdapters;
  }

  async removeAdapter(name: string): Promise<Adapter[]> {
    this.knownAdapters = this.knownAdapters.filter((adapter) => adapter.name !== name);
    return this.knownAdapters;
  }

  async importAdapters(): Promise<Adapter[]> {
    return this.knownAdapters;
  }

  async exportAdapter(name: string): Promise<string | null> {
    return `/home/me/${name}.safetensors`;
  }

  async lessons(): Promise<Lessons> {
    return this.lessonsOf;
  }

  async startLearning(model: number, documents: number[]): Promise<void> {
    this.learntFrom = documents;
    this.run = {
      model: `model ${model}`, stage: "training", heard: 0, to_hear: 0, epoch: 1, epochs: 4, step: 2, steps: 8, left: 60, losses: [[1, 1], [2, 0.8]],
      held_back: [[0, 1.1]], strength: null, remembered: false, figures: null, failure: null,
    };
  }

  /** The transcripts that the latest run was asked to learn from. */
  learntFrom: number[] = [];

  async stopLearning(): Promise<void> {
    if (this.run) this.run = { ...this.run, stage: "stopped" };
  }

  async learning(): Promise<LearningRun | null> {
    return this.run;
  }

  /** Whether there is one; null seconds: nothing is being recorded. */
  microphoneState: Microphone = { available: true, seconds: null, level: 0, failure: null };

  async microphone(): Promise<Microphone> {
    const { seconds } = this.microphoneState;
    if (seconds !== null) this.microphoneState = { ...this.microphoneState, seconds: seconds + 0.5, level: 0.5 + 0.3 * Math.sin(seconds) };
    return this.microphoneState;
  }

  async startMicrophone(): Promise<void> {
    this.microphoneState = { ...this.microphoneState, seconds: 0 };
  }

  async stopMicrophone(): Promise<PlaySource> {
    const { seconds } = this.microphoneState;
    await this.dropMicrophone();
    return silence(seconds ?? 0);
  }

  async keepMicrophone(name: string): Promise<VoiceList> {
    return this.#addSample(name, "Microphone.wav");
  }

  async dropMicrophone(): Promise<void> {
    this.microphoneState = { ...this.microphoneState, seconds: null, level: 0 };
  }

  async #addSample(name: string, source: string): Promise<VoiceList> {
    const old = this.knownVoices.find((voice) => voice.name === name)?.samples ?? [];
    const short = old.length === 0;
    const samples = [...old, { source, seconds: short ? 4 : 21, likeness: short ? null : 0.93, flaws: short ? (["short"] as const).slice() : [] }];
    this.knownVoices = [...this.knownVoices.filter((voice) => voice.name !== name), { name, samples }];
    return this.voices();
  }

  async locateRecording(job: number): Promise<boolean> {
    this.#change(job, { missing: false });
    return true;
  }

  async saveJobs(jobs: number[], exporting: Exporting): Promise<Saved[] | null> {
    const saved: Saved[] = [];
    for (const job of jobs) {
      const one = await this.save(job, exporting, "ask");
      if (one) saved.push(one);
    }
    return saved;
  }

  async saveDocuments(documents: number[], exporting: Exporting): Promise<Saved> {
    this.exported.push(documents);
    return { files: documents.flatMap((id) => exporting.formats.map((format) => `/home/me/Texts/${id}.${format}`)), failures: [] };
  }

  #documents(): Work[] {
    const all = [...this.#works.values(), ...this.#closed.values()].filter(({ job, text }) => text && !this.deleted.has(job.id));
    return all.sort((a, b) => b.job.id - a.job.id);
  }

  #edited(job: number, change: (text: FakeText) => number | null): Edited | null {
    const work = this.#works.get(job);
    const segment = work?.text ? change(work.text) : null;
    if (!work?.text || segment === null) return null;
    this.#show(work);
    return { revision: work.text.revision, segment };
  }

  /** As the program does, only what is another one is sent. */
  #show(work: Work): void {
    const { text } = work;
    if (!text) return;
    const [old, now] = [work.segments, text.segments];
    let from = 0;
    while (from < old.length && from < now.length && old[from] === now[from]) from++;
    let end = 0;
    while (end < old.length - from && end < now.length - from && old[old.length - 1 - end] === now[now.length - 1 - end]) end++;
    work.segments = now;
    const ending = work.update.ending && { ...work.update.ending, gaps: text.gaps };
    const change: TextChange = { kind: "segments", at: from, removed: old.length - end - from, inserted: now.slice(from, now.length - end) };
    this.#tell(work, { from: old.length, segments: [], changes: [change], editing: text.editing, chapters: text.chapters, ending });
    this.#change(work.job.id, { saved: null });
  }

  async #changeWatched(number: number, change: Partial<WatchedFolder>): Promise<void> {
    this.watched = this.watched.map((one, index) => (index === number ? { ...one, ...change } : one));
    this.#tellSetup();
  }

  #setup(): Setup {
    const { settings, look, exporting, paused, models, presets, watched, switches } = this;
    const shortest_first = this.shortestFirst;
    const { machine } = this;
    const place = machine.on ? machine.address.replace(/^https?:\/\//, "") : null;
    const is_open = machine.address.startsWith("http://") && !machine.address.includes("127.0.0.1");
    const order = { workers: this.workers, machine: { machine, has_token: this.machineToken !== null, place, is_open }, paused, shortest_first, presets, watched, switches, output_folders: this.outputFolders };
    return { version: "0.1.0", models, settings, look, exporting, has_sample: true, preferences_failure: null, forgotten: this.forgotten, ...order };
  }

  #tellSetup(): void {
    this.emit({ kind: "setup", setup: this.#setup() });
  }

  #tellMemory(id: number): void {
    const [watched, work] = [this.#watchedMemory, this.#works.get(id)];
    if (watched?.job !== id || !work) return;
    watched.tell(work.memory.update(id, watched.from));
    watched.from = work.memory.samples.length;
  }

  #isDemonstration(): boolean {
    return this.models.find((model) => model.id === this.settings.model)?.demonstration ?? false;
  }

  #add(path: string, sample: boolean): Job {
    const id = ++this.#last;
    const job: Job = { ...recording(id, path, sample), state: this.#isDemonstration() && !sample && !this.machine.on ? "held" : "waiting" };
    if (path.endsWith(".pdf")) {
      job.state = "failed";
      job.failure = {
        code: "unknown_format", file: path, message: "This is not a recording.", remedy: "Choose an audio or video file.",
      };
    }
    const update: TextUpdate = { job: id, from: 0, segments: [], changes: [], editing: null, notices: [], chapters: [], live_text: null, ending: null };
    this.#works.set(id, { job, segments: [], update, memory: new FakeMemory() });
    this.#order.push(id);
    return job;
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
    if (this.still) return;
    this.#timer ??= setInterval(() => this.#step(), this.#tick);
  }

  #step(): void {
    const works = this.#order.flatMap((id) => this.#works.get(id) ?? []);
    const waiting = this.paused ? undefined : works.find(({ job }) => job.state === "waiting");
    const work = works.find(({ job }) => job.state === "running") ?? waiting;
    if (!work) {
      clearInterval(this.#timer);
      this.#timer = undefined;
      return;
    }
    const { job } = work;
    const model = this.models.find((model) => model.id === this.settings.model);
    if (job.state === "waiting") {
      const elsewhere = this.machine.on && !job.sample ? { place: this.#setup().machine.place ?? "", sent: null, waiting: null } : null;
      this.#change(job.id, { elsewhere, state: "running", model: model?.name ?? null, demonstration: model?.demonstration ?? false });
      return;
    }
    const progress = next(job.progress, job.duration ?? 60, job.reached ?? 0);
    if (!progress) return this.#end(job.id, "finished");
    this.#change(job.id, { progress });
    if (progress.stage === "speech_model") work.memory.begin();
    if (progress.stage === "transcribe") this.squeezed && progress.position === 30 ? work.memory.squeeze() : work.memory.batch();
    this.#tellMemory(job.id);
    if (progress.stage === "transcribe" && progress.position > 0) {
      const index = work.segments.length;
      const said: Segment = {
        ...segment(progress.position - SECONDS_PER_TICK, SENTENCES[index % SENTENCES.length] ?? "", index + 1),
        suspicions: index === 6 ? ["over_silence", "low_confidence"] : [],
      };
      work.segments.push(said);
      this.#tell(work, { from: index, segments: [said] });
    }
  }

  #end(job: number, state: "finished" | "cancelled"): void {
    const work = this.#works.get(job);
    if (!work) return;
    this.#change(job, { state, progress: null });
    work.memory.end();
    this.#tellMemory(job);
    const complete = state === "finished";
    const gaps = complete ? [{ start: 21.5, end: 24.25 }] : [];
    if (complete) work.text = new FakeText(work.segments, gaps);
    this.#tell(work, {
      from: work.segments.length,
      segments: [],
      editing: work.text?.editing ?? null,
      ending: { language: this.languageOf, complete, speech: 58, covered: 55.25, gaps },
    });
  }

  #change(id: number, change: Partial<Job>): void {
    const work = this.#works.get(id);
    if (!work) return;
    work.job = { ...work.job, ...change };
    this.emit({ kind: "jobs", changed: [work.job], removed: [], order: null });
  }

  #tell(work: Work, change: Partial<TextUpdate>): void {
    const { changes = [], ...rest } = change;
    work.update = { ...work.update, ...rest };
    if (this.#watched?.job === work.job.id) this.#watched.tell({ ...work.update, changes });
  }

  #flush(): void {
    if (!this.#events) return;
    const events = this.#pending;
    this.#pending = [];
    for (const event of events) this.#events(event);
  }
}

function segment(start: number, text: string, id: number): Segment {
  const end = start + SECONDS_PER_TICK;
  return { id, start, end, text, words: words(text, start, end), language: null, speaker: null, channel: null, translation: null, suspicions: [] };
}

function next(before: Progress | null, duration: number, from: number): Progress | null {
  const at = (stage: Progress["stage"], position: number): Progress => ({
    stage, position, duration, speed: stage === "speech_model" ? null : 3.2, left: stage === "speech_model" ? null : (duration - position) / 3.2,
  });
  if (!before) return at("speech_model", 0);
  if (before.stage === "speech_model") return at("preprocess", duration / 2);
  if (before.stage === "preprocess") return at("transcribe", from);
  return before.position >= duration ? null : at("transcribe", Math.min(duration, before.position + SECONDS_PER_TICK));
}
