import type {
  Adapter, CorrectedWord, Attempt, ChartFile, Connection, DocumentInfo, Edit, Edited, EngineInfo, Exporting, Failure, Finding, Place, Gap, LearningRun, Lessons, Look, Machine, MemoryUpdate, Microphone,
  ModelFits, PassageResults, SaveLocation, PlaySource, Preference, PreferenceName, Replaced, Review, Saved, SearchChoices, SearchFilter, SearchResults, Settings, Setup, ModelCatalog, NamePreview, Part, Switches, TextUpdate, Undone, VoiceList, WindowEvent, WorkerQueue, WorkersView,
} from "../generated/contract";

/**
 * What the page asks of the program. There are two: the shell's, and one that
 * only pretends, for browsers. Whatever fails rejects with a `Failure`.
 */
export interface Backend {
  /** Called once, first; `onEvent` hears of everything from then on. */
  attach(onEvent: (event: WindowEvent) => void): Promise<Setup>;
  describe(): Promise<EngineInfo>;
  /** How each model fits into what is free now. */
  modelFits(): Promise<ModelFits>;
  chooseFiles(): Promise<void>;
  addSample(): Promise<void>;
  chooseModel(): Promise<void>;
  changeSettings(settings: Settings): Promise<void>;
  /** Asks for a folder for transcripts: its number; null where the dialog was closed. */
  chooseOutputFolder(): Promise<number | null>;
  /** The words of the lists that the user chooses; null where the dialog was closed. */
  readWordLists(): Promise<string[] | null>;
  /** Saves words as a list where the user says; the file written, or null where the dialog was closed. */
  saveWordList(words: string[]): Promise<string | null>;
  /** What the files of a recording of this name would be called. */
  previewName(template: string, name: string): Promise<NamePreview>;
  changeLook(look: Look): Promise<void>;
  preferences(): Promise<Preference[]>;
  /** All of them, as they are after the change. */
  changePreference(name: PreferenceName, value: string | null): Promise<Preference[]>;
  /** Which machine transcribes. `token`: another one; empty: none; null: as it is. */
  changeMachine(machine: Machine, token: string | null): Promise<void>;
  /** The models of the machine at this address, which also shows that it can be used. */
  testMachine(address: string, token: string | null): Promise<string[]>;
  changeWorkerQueue(queue: WorkerQueue): Promise<void>;
  /** One look at the queue of workers. */
  lookAtWorkers(): Promise<WorkersView>;
  diagnostics(): Promise<string>;
  /** Ends the idle engine, so that the memory of its model is free. */
  freeMemory(): Promise<void>;
  startAnyway(): Promise<void>;
  /** While paused nothing new is begun. */
  pause(paused: boolean): Promise<void>;
  /** Gives jobs their turn before that of another; null: after all. */
  reorder(jobs: number[], before: number | null): Promise<void>;
  /** Whole text first, then what changes, until another job is watched. */
  watch(job: number, onUpdate: (update: TextUpdate) => void): Promise<void>;
  /** The same of a job's memory. */
  watchMemory(job: number, onUpdate: (update: MemoryUpdate) => void): Promise<void>;
  cancel(job: number): Promise<void>;
  /** Ends the run of a recording, whose text stays; `retry` has it go on. */
  pauseJob(job: number): Promise<void>;
  retry(job: number): Promise<void>;
  /** Transcribes a part of a finished recording again: in its place, or to be compared where it is another attempt. */
  again(job: number, part: Gap, attempt: Attempt | null): Promise<void>;
  /** Who speaks in a finished recording, without transcribing again; an edit. */
  findSpeakers(job: number): Promise<void>;
  /** Translates a finished recording to English, beside its text; an edit. */
  translate(job: number): Promise<void>;
  /** Finds the chapters of a finished recording, in place of those that there are; an edit. It may take minutes. */
  findChapters(job: number): Promise<Edited | null>;
  /** What another attempt found is taken, or forgotten. */
  chooseAgain(job: number, part: Gap, take: boolean): Promise<Edited | null>;
  remove(job: number): Promise<void>;
  /** What was written and what was not; null where the user closed the dialog. */
  save(job: number, exporting: Exporting, place: SaveLocation): Promise<Saved | null>;
  /** Saves what was not saved when a transcript was finished, in those formats and where they go. `replace`: over files that are there. */
  saveUnsaved(job: number, replace: boolean): Promise<Saved>;
  /** The file written; null where the user closed the dialog. */
  saveChart(job: number, kind: ChartFile, bytes: Uint8Array): Promise<string | null>;
  /** A part of a recording as a sound file, where the user says; null where the dialog was closed. */
  saveSound(job: number, part: Gap): Promise<string | null>;
  close(really: boolean): Promise<void>;
  /** Models that could be had. */
  catalog(): Promise<ModelCatalog>;
  /** Begins a download or goes on with it; how it goes is told in events. */
  download(id: string): Promise<void>;
  pauseDownload(id: string, paused: boolean): Promise<void>;
  stopDownload(id: string): Promise<void>;
  /** From a folder or files that the user chooses. */
  importModel(folder: boolean): Promise<void>;
  removeModel(id: string): Promise<void>;
  /** What the network was used for, the newest first. */
  connections(): Promise<Connection[]>;
  /** The first frame was seen, or the page is hidden. */
  painted(seen: boolean): Promise<void>;
  /** Settings of their own for jobs that have not begun; null: those at hand. */
  changeOwn(jobs: number[], settings: Settings | null): Promise<void>;
  /** Which part of a job that has not begun is transcribed. */
  changePart(job: number, part: Part): Promise<void>;
  putShortestFirst(on: boolean): Promise<void>;
  cancelAll(): Promise<void>;
  retryFailed(): Promise<void>;
  savePreset(name: string, settings: Settings): Promise<void>;
  renamePreset(name: string, to: string): Promise<void>;
  deletePreset(name: string): Promise<void>;
  /** Asks which folder. `present`: what lies in it now is transcribed too. */
  watchFolder(present: boolean): Promise<void>;
  /** How the texts of a watched folder, by its place in the list, are written. */
  changeWatched(number: number, exporting: Exporting): Promise<void>;
  /** Beside the recordings, or in a folder that the user is asked for. */
  placeWatched(number: number, beside: boolean): Promise<void>;
  unwatchFolder(number: number): Promise<void>;
  changeSwitches(switches: Switches): Promise<void>;
  /** Shows a message of the desktop. */
  notify(title: string, text: string): Promise<void>;
  /** What of a transcript should be listened to, the most doubtful first. */
  review(job: number): Promise<Review>;
  /** Written down when it answers; null where it makes no sense, or not any more. */
  edit(job: number, edit: Edit): Promise<Edited | null>;
  /** Null where there is nothing to take back. */
  undo(job: number): Promise<Edited | null>;
  redo(job: number): Promise<Edited | null>;
  /** `everywhere`: in all transcripts of the history too. */
  replaceAll(job: number, finding: Finding, withText: string, everywhere: boolean): Promise<Replaced>;
  /** Where the words occur in this transcript. */
  places(job: number, finding: Finding): Promise<Place[]>;
  /** Replaces the words at one place; the place behind what took theirs, or null if they are gone. */
  replaceOne(job: number, finding: Finding, withText: string, place: Place): Promise<Place | null>;
  /** What would be replaced in all transcripts. */
  countPlaces(job: number, finding: Finding): Promise<Replaced>;
  /** The latest replacement is taken back in all transcripts that were not edited since. */
  undoReplacing(): Promise<Undone>;
  /** The history, what was changed last first. */
  documents(): Promise<DocumentInfo[]>;
  searchDocuments(words: string, filter: SearchFilter): Promise<SearchResults>;
  /** The passages that answer a question best: at once by words alone, or also by their meaning. */
  findPassages(text: string, filter: SearchFilter, byMeaning: boolean): Promise<PassageResults>;
  /** Whose meaning is like that of this one. */
  similarPassages(passage: number, filter: SearchFilter): Promise<PassageResults>;
  searchChoices(): Promise<SearchChoices>;
  /** Words that the user corrects again and again, the most frequent first. */
  correctedWords(): Promise<CorrectedWord[]>;
  /** Whether a word is left out of those. */
  ignoreWord(word: string, ignored: boolean): Promise<void>;
  /** Puts it in the list; its job. */
  openDocument(document: number): Promise<number>;
  tagDocument(document: number, tags: string[]): Promise<void>;
  deleteDocument(document: number): Promise<void>;
  restoreDocument(document: number): Promise<void>;
  /** In a folder that the user chooses; null where the dialog was closed. */
  locateRecording(job: number): Promise<boolean | null>;
  /** Several recordings in one folder that the user chooses; null where the dialog was closed. */
  saveJobs(jobs: number[], exporting: Exporting): Promise<Saved[] | null>;
  saveDocuments(documents: number[], exporting: Exporting): Promise<Saved | null>;
  /** People whose voices are recognized. */
  voices(): Promise<VoiceList>;
  /** Adds recordings of a person, which the user chooses; all voices then, as below. */
  addVoice(name: string): Promise<VoiceList>;
  /** Adds a speaker of a finished transcript, under the speaker's name. */
  rememberSpeaker(job: number, speaker: string): Promise<VoiceList>;
  renameVoice(name: string, to: string): Promise<VoiceList>;
  /** For good; one sample of it, or all where that is null. */
  removeVoice(name: string, sample: number | null): Promise<VoiceList>;
  /** How far a recording from the microphone is. */
  microphone(): Promise<Microphone>;
  startMicrophone(): Promise<void>;
  /** Where what was recorded is listened to. */
  stopMicrophone(): Promise<PlaySource>;
  /** What was recorded becomes a sample of this voice. */
  keepMicrophone(name: string): Promise<VoiceList>;
  /** Ends it, and forgets what was recorded. */
  dropMicrophone(): Promise<void>;
  /** What models have learnt from corrections. */
  adapters(): Promise<Adapter[]>;
  /** Uses a model with it or as it is; all of them then, as below. */
  switchAdapter(name: string, on: boolean): Promise<Adapter[]>;
  /** For good. */
  removeAdapter(name: string): Promise<Adapter[]>;
  /** From files that the user chooses. */
  importAdapters(): Promise<Adapter[]>;
  /** To a file that the user names, which is the answer; null where the dialog was closed. */
  exportAdapter(name: string): Promise<string | null>;
  /** What a model could learn from. */
  lessons(model: number): Promise<Lessons>;
  /** From the corrections in these transcripts. */
  startLearning(model: number, documents: number[]): Promise<void>;
  stopLearning(): Promise<void>;
  /** What is being learnt, or was last. */
  learning(): Promise<LearningRun | null>;
  /** What was saved of a recording, else the recording, in the file manager. */
  showInFolder(job: number): Promise<void>;
  /** Where a recording is listened to, in place of the one before. */
  playSource(job: number): Promise<PlaySource>;
}

/** The shell's; in a browser during development the pretended one, which no release contains. */
export async function backend(): Promise<Backend> {
  if (import.meta.env.DEV && !("__TAURI_INTERNALS__" in window)) {
    return (await import("./fake")).fakeBackend(new URLSearchParams(location.search));
  }
  return new (await import("./tauri")).TauriBackend();
}

/** Errors from elsewhere (a bug, a broken connection) take the same form. */
export function asFailure(error: unknown): Failure {
  if (typeof error === "object" && error !== null && "code" in error && "message" in error) return error as Failure;
  return { code: "internal", file: null, message: String(error), remedy: null };
}
