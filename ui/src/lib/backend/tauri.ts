import { Channel, invoke } from "@tauri-apps/api/core";
import type {
  Adapter, CorrectedWord, Attempt, BlockingCommand, ChartFile, CommandName, Connection, DocumentInfo, Edit, EditCommand, Edited, EngineInfo, Exporting, Finding, Place, Gap,
  LearningRun, Lessons, Look, Machine, MemoryUpdate, Microphone, ModelFits, NamePreview, Part, PassageResults, SaveLocation, PlaySource, Preference, PreferenceName, Replaced, Review, Saved, SearchChoices, SearchFilter, SearchResults, Settings, Setup, ModelCatalog, Switches, TextUpdate,
  Undone, VoiceList, WindowCommand, WindowEvent, WorkerQueue, WorkersView,
} from "../generated/contract";
import { t } from "../text";
import type { Backend } from ".";

/** `invoke`, for commands that the shell has. */
function call<T>(command: CommandName, args?: Record<string, unknown>): Promise<T> {
  return invoke<T>(command, args);
}

/** Takes effect in the order of the calls. */
function execute(command: WindowCommand): Promise<void> {
  return call("execute", { command });
}

/** May wait for the disk. */
function executeBlocking(command: BlockingCommand): Promise<void> {
  return call("execute_blocking", { command });
}

function executeEdit(job: number, command: EditCommand): Promise<Edited | null> {
  return call("edit", { job, command });
}

export class TauriBackend implements Backend {
  attach(onEvent: (event: WindowEvent) => void): Promise<Setup> {
    return call("attach", { events: new Channel<WindowEvent>(onEvent) });
  }
  describe(): Promise<EngineInfo> {
    return call("describe");
  }
  modelFits(): Promise<ModelFits> {
    return call("model_fits");
  }
  chooseFiles(): Promise<void> {
    return call("choose_files", { title: t.dialogs.files });
  }
  addSample(): Promise<void> {
    return execute({ type: "add_sample" });
  }
  chooseModel(): Promise<void> {
    return call("choose_model", { title: t.dialogs.model });
  }
  chooseOutputFolder(): Promise<number | null> {
    return call("choose_output_folder", { title: t.dialogs.folder });
  }
  readWordLists(): Promise<string[] | null> {
    return call("read_word_lists", { title: t.dialogs.wordList });
  }
  saveWordList(words: string[]): Promise<string | null> {
    return call("save_word_list", { words, name: `${t.dialogs.wordListName}.txt`, title: t.dialogs.saveWordList });
  }
  previewName(template: string, name: string): Promise<NamePreview> {
    return call("preview_name", { template, name });
  }
  changeSettings(settings: Settings): Promise<void> {
    return execute({ type: "change_settings", settings });
  }
  changeLook(look: Look): Promise<void> {
    return execute({ type: "change_look", look });
  }
  preferences(): Promise<Preference[]> {
    return call("preferences");
  }
  changePreference(name: PreferenceName, value: string | null): Promise<Preference[]> {
    return call("change_preference", { name, value });
  }
  changeMachine(machine: Machine, token: string | null): Promise<void> {
    return call("change_machine", { machine, token });
  }
  testMachine(address: string, token: string | null): Promise<string[]> {
    return call("test_machine", { address, token });
  }
  changeWorkerQueue(queue: WorkerQueue): Promise<void> {
    return call("change_worker_queue", { queue });
  }
  lookAtWorkers(): Promise<WorkersView> {
    return call("look_at_workers");
  }
  diagnostics(): Promise<string> {
    return call("diagnostics");
  }
  freeMemory(): Promise<void> {
    return execute({ type: "free_memory" });
  }
  startAnyway(): Promise<void> {
    return execute({ type: "start_anyway" });
  }
  pause(paused: boolean): Promise<void> {
    return execute({ type: "pause", paused });
  }
  reorder(jobs: number[], before: number | null): Promise<void> {
    return execute({ type: "reorder", jobs, before });
  }
  watch(job: number, onUpdate: (update: TextUpdate) => void): Promise<void> {
    return call("watch", { job, updates: new Channel<TextUpdate>(onUpdate) });
  }
  watchMemory(job: number, onUpdate: (update: MemoryUpdate) => void): Promise<void> {
    return call("watch_memory", { job, updates: new Channel<MemoryUpdate>(onUpdate) });
  }
  cancel(job: number): Promise<void> {
    return executeBlocking({ type: "cancel", job });
  }
  pauseJob(job: number): Promise<void> {
    return executeBlocking({ type: "pause_job", job });
  }
  retry(job: number): Promise<void> {
    return executeBlocking({ type: "retry", job });
  }

  again(job: number, part: Gap, attempt: Attempt | null): Promise<void> {
    return execute({ type: "again", job, part, attempt });
  }
  findSpeakers(job: number): Promise<void> {
    return execute({ type: "find_speakers", job });
  }
  translate(job: number): Promise<void> {
    return execute({ type: "translate", job });
  }
  findChapters(job: number): Promise<Edited | null> {
    return executeEdit(job, { type: "find_chapters" });
  }
  chooseAgain(job: number, part: Gap, take: boolean): Promise<Edited | null> {
    return executeEdit(job, { type: "choose_again", part, take });
  }
  remove(job: number): Promise<void> {
    return executeBlocking({ type: "remove", job });
  }
  save(job: number, exporting: Exporting, place: SaveLocation): Promise<Saved | null> {
    const title = place === "ask" && exporting.formats.length > 1 ? t.dialogs.folder : t.dialogs.save;
    return call("save", { job, exporting, place, title });
  }
  saveUnsaved(job: number, replace: boolean): Promise<Saved> {
    return call("save_unsaved", { job, replace });
  }
  saveChart(job: number, kind: ChartFile, bytes: Uint8Array): Promise<string | null> {
    return call("save_chart", { job, kind, bytes: [...bytes], title: t.dialogs.chart });
  }
  saveSound(job: number, part: Gap): Promise<string | null> {
    return call("save_sound", { job, part: { start: part.start, end: part.end }, title: t.dialogs.sound });
  }
  close(really: boolean): Promise<void> {
    return call("close", { really });
  }
  catalog(): Promise<ModelCatalog> {
    return call("catalog");
  }
  download(id: string): Promise<void> {
    return call("download", { id });
  }
  pauseDownload(id: string, paused: boolean): Promise<void> {
    return execute({ type: "pause_download", id, paused });
  }
  stopDownload(id: string): Promise<void> {
    return execute({ type: "stop_download", id });
  }
  importModel(folder: boolean): Promise<void> {
    return call("import_model", { folder, title: folder ? t.dialogs.model : t.dialogs.modelFile });
  }
  removeModel(id: string): Promise<void> {
    return executeBlocking({ type: "remove_model", id });
  }
  connections(): Promise<Connection[]> {
    return call("connections");
  }
  painted(seen: boolean): Promise<void> {
    return call("painted", { seen });
  }
  changeOwn(jobs: number[], settings: Settings | null): Promise<void> {
    return executeBlocking({ type: "change_own", jobs, settings });
  }
  changePart(job: number, part: Part): Promise<void> {
    return executeBlocking({ type: "change_part", job, part });
  }
  putShortestFirst(on: boolean): Promise<void> {
    return execute({ type: "put_shortest_first", on });
  }
  cancelAll(): Promise<void> {
    return executeBlocking({ type: "cancel_all" });
  }
  retryFailed(): Promise<void> {
    return executeBlocking({ type: "retry_failed" });
  }
  savePreset(name: string, settings: Settings): Promise<void> {
    return execute({ type: "save_preset", name, settings });
  }
  renamePreset(name: string, to: string): Promise<void> {
    return execute({ type: "rename_preset", name, to });
  }
  deletePreset(name: string): Promise<void> {
    return execute({ type: "delete_preset", name });
  }
  watchFolder(present: boolean): Promise<void> {
    return call("watch_folder", { present, title: t.watched.dialog });
  }
  changeWatched(number: number, exporting: Exporting): Promise<void> {
    return execute({ type: "change_watched", number, exporting });
  }
  placeWatched(number: number, beside: boolean): Promise<void> {
    return call("place_watched", { number, beside, title: t.watched.placeDialog });
  }
  unwatchFolder(number: number): Promise<void> {
    return execute({ type: "unwatch_folder", number });
  }
  changeSwitches(switches: Switches): Promise<void> {
    return execute({ type: "change_switches", switches });
  }
  notify(title: string, text: string): Promise<void> {
    return call("notify", { title, text });
  }
  review(job: number): Promise<Review> {
    return call("review", { job });
  }
  edit(job: number, edit: Edit): Promise<Edited | null> {
    return executeEdit(job, { type: "edit", edit });
  }
  undo(job: number): Promise<Edited | null> {
    return executeEdit(job, { type: "undo" });
  }
  redo(job: number): Promise<Edited | null> {
    return executeEdit(job, { type: "redo" });
  }
  replaceAll(job: number, finding: Finding, withText: string, everywhere: boolean): Promise<Replaced> {
    return call("replace_all", { job, finding, withText, everywhere });
  }
  places(job: number, finding: Finding): Promise<Place[]> {
    return call("places", { job, finding });
  }
  replaceOne(job: number, finding: Finding, withText: string, place: Place): Promise<Place | null> {
    return call("replace_one", { job, finding, withText, place });
  }
  countPlaces(job: number, finding: Finding): Promise<Replaced> {
    return call("count_places", { job, finding });
  }
  undoReplacing(): Promise<Undone> {
    return call("undo_replacing");
  }
  documents(): Promise<DocumentInfo[]> {
    return call("documents");
  }
  searchDocuments(words: string, filter: SearchFilter): Promise<SearchResults> {
    return call("search_documents", { words, filter });
  }
  findPassages(text: string, filter: SearchFilter, byMeaning: boolean): Promise<PassageResults> {
    return call("find_passages", { text, filter, byMeaning });
  }
  similarPassages(passage: number, filter: SearchFilter): Promise<PassageResults> {
    return call("similar_passages", { passage, filter });
  }
  searchChoices(): Promise<SearchChoices> {
    return call("search_choices");
  }

  correctedWords(): Promise<CorrectedWord[]> {
    return call("corrected_words");
  }
  ignoreWord(word: string, ignored: boolean): Promise<void> {
    return executeBlocking({ type: "ignore_word", word, ignored });
  }
  openDocument(document: number): Promise<number> {
    return call("open_document", { document });
  }
  tagDocument(document: number, tags: string[]): Promise<void> {
    return executeBlocking({ type: "tag_document", document, tags });
  }
  deleteDocument(document: number): Promise<void> {
    return executeBlocking({ type: "delete_document", document });
  }
  restoreDocument(document: number): Promise<void> {
    return executeBlocking({ type: "restore_document", document });
  }
  locateRecording(job: number): Promise<boolean | null> {
    return call("locate_recording", { job, title: t.history.locate });
  }
  saveJobs(jobs: number[], exporting: Exporting): Promise<Saved[] | null> {
    return call("save_jobs", { jobs, exporting, title: t.dialogs.folder });
  }
  saveDocuments(documents: number[], exporting: Exporting): Promise<Saved | null> {
    return call("save_documents", { documents, exporting, title: t.dialogs.folder });
  }
  voices(): Promise<VoiceList> {
    return call("voices");
  }
  addVoice(name: string): Promise<VoiceList> {
    return call("add_voice", { name, title: t.dialogs.voice });
  }
  rememberSpeaker(job: number, speaker: string): Promise<VoiceList> {
    return call("remember_speaker", { job, speaker });
  }
  renameVoice(name: string, to: string): Promise<VoiceList> {
    return call("rename_voice", { name, to });
  }
  removeVoice(name: string, sample: number | null): Promise<VoiceList> {
    return call("remove_voice", { name, sample });
  }
  adapters(): Promise<Adapter[]> {
    return call("adapters");
  }
  switchAdapter(name: string, on: boolean): Promise<Adapter[]> {
    return call("switch_adapter", { name, on });
  }
  removeAdapter(name: string): Promise<Adapter[]> {
    return call("remove_adapter", { name });
  }
  importAdapters(): Promise<Adapter[]> {
    return call("import_adapters", { title: t.learning.importTitle });
  }
  exportAdapter(name: string): Promise<string | null> {
    return call("export_adapter", { name, title: t.learning.exportTitle });
  }
  lessons(model: number): Promise<Lessons> {
    return call("lessons", { model });
  }
  startLearning(model: number, documents: number[]): Promise<void> {
    return call("start_learning", { model, documents });
  }
  stopLearning(): Promise<void> {
    return call("stop_learning");
  }
  learning(): Promise<LearningRun | null> {
    return call("learning");
  }
  microphone(): Promise<Microphone> {
    return call("microphone");
  }
  startMicrophone(): Promise<void> {
    return call("start_microphone");
  }
  stopMicrophone(): Promise<PlaySource> {
    return call("stop_microphone");
  }
  keepMicrophone(name: string): Promise<VoiceList> {
    return call("keep_microphone", { name });
  }
  dropMicrophone(): Promise<void> {
    return call("drop_microphone");
  }
  showInFolder(job: number): Promise<void> {
    return call("show_in_folder", { job });
  }
  playSource(job: number): Promise<PlaySource> {
    return call("play_source", { job });
  }
}
