// Made from crates/app by `STENO_WRITE_CONTRACT=1 cargo test -p app`.

export type CommandName = "attach" | "describe" | "model_fits" | "choose_files" | "choose_model" | "preferences" | "change_preference" | "diagnostics" | "watch" | "watch_memory" | "save" | "save_chart" | "close" | "play_source" | "shelf" | "download" | "import_model" | "connections" | "painted" | "execute" | "execute_blocking" | "watch_folder" | "place_watched" | "notify" | "edit" | "review" | "replace_all" | "documents" | "search_documents" | "open_document" | "locate_recording" | "save_documents";

export type ErrorCode = "file_not_found" | "file_unreadable" | "not_a_file" | "file_empty" | "no_audio_track" | "no_such_track" | "unknown_format" | "unsupported_codec" | "needs_ffmpeg" | "audio_broken" | "model_not_found" | "model_invalid" | "model_unsupported" | "language_unknown" | "bad_settings" | "device_unavailable" | "out_of_memory" | "network_off" | "network_failed" | "download_refused" | "model_corrupt" | "model_in_use" | "disk_full" | "output_exists" | "output_unwritable" | "engine_not_found" | "engine_failed" | "engine_silent" | "player_failed" | "protocol_mismatch" | "cancelled" | "internal";

export type Backend = "cpu" | "cuda";

export type Stage = "load_model" | "preprocess" | "transcribe" | "diarize" | "align";

export type Format = "txt" | "srt" | "vtt" | "json" | "md" | "html" | "docx" | "csv" | "tsv" | "whisperx";

export type Severity = "info" | "degraded" | "failed";

export type Suspicion = "loop" | "too_fast" | "over_silence" | "low_confidence";

export type FitWord = "does_not_fit" | "tight" | "comfortable";

export type DeviceKind = "gpu" | "host";

export type MemoryStage = "preprocess" | "speech_model" | "transcribe" | "speaker_model" | "diarize" | "align";

export type PreferenceName = "memory_profile" | "batch_size" | "speaker_batch_size" | "skip_speakers" | "fast_path" | "memory_fraction" | "trim_every" | "renew_after" | "memory_limit" | "ram_limit" | "keep" | "precision" | "threads" | "priority" | "hf_endpoint" | "proxy" | "offline";

/** A word of less probability is uncertain. */
export const UNSURE = 0.5;

/**
 * What the page needs at its start.
 */
export type Setup = { version: string, models: Array<ModelChoice>, settings: Settings, look: Look, 
/**
 * How transcripts were last saved.
 */
exporting: Exporting, 
/**
 * Whether there is a recording to try the program with.
 */
has_sample: boolean, 
/**
 * Nothing new is begun.
 */
paused: boolean, 
/**
 * What is short has its turn before what is long.
 */
shortest_first: boolean, presets: Array<Preset>, watched: Array<WatchedFolder>, switches: Switches, 
/**
 * What the user's config file says that can't be used; the defaults are in force.
 */
preferences_failure: Failure | null, };

export type ModelChoice = { id: number, name: string, folder: string, 
/**
 * Its text is not reliable: it is there to show how the program works.
 */
demonstration: boolean, note: string | null, 
/**
 * It was downloaded or imported, and can be removed.
 */
removable: boolean, };

export type Settings = { model: number | null, 
/**
 * ISO 639-1; null: detect.
 */
language: string | null, 
/**
 * To English.
 */
translate: boolean, 
/**
 * Searched for the likeliest text at once, from 1 to 8; 1 is the quickest.
 */
beams: number, 
/**
 * Detect the language of each stretch anew.
 */
several_languages: boolean, 
/**
 * Names and words to be expected.
 */
words: Array<string>, };

/**
 * Settings of one recording: the model by its folder and name, since it need
 * not be among those there are.
 */
export type OwnSettings = { model_name: string | null, model_folder: string | null, language: string | null, translate: boolean, beams: number, several_languages: boolean, words: Array<string>, };

/**
 * Settings under a name.
 */
export type Preset = { name: string, settings: Settings, 
/**
 * The folder of its model, where that is not among those there are.
 */
missing_model: string | null, };

/**
 * A folder whose new recordings are transcribed.
 */
export type WatchedFolder = { folder: string, 
/**
 * How its texts are written; with no format they are not.
 */
exporting: Exporting, 
/**
 * Where to; null: beside the recording.
 */
into: string | null, 
/**
 * Why nothing can be found in it.
 */
failure: Failure | null, };

/**
 * What the window may do beyond itself.
 */
export type Switches = { 
/**
 * The machine does not go to sleep while there is work.
 */
stay_awake: boolean, 
/**
 * Says when the queue ends while the user is elsewhere.
 */
notify: boolean, };

/**
 * What the window looks and sounds like.
 */
export type Look = { theme: "system" | "light" | "dark", 
/**
 * Null: the system's.
 */
language: "en" | "de" | "es" | "fr" | "zh" | "ja" | null, 
/**
 * Uncertain words are not marked.
 */
hide_unsure: boolean, 
/**
 * Keys that the user chose, by what they do; none: that has no key.
 */
keys: { [key in string]: Array<string> }, };

/**
 * How transcripts were last saved.
 */
export type Exporting = { formats: Array<Format>, 
/**
 * Subtitles divided into cues that fit a screen.
 */
shaped: boolean, 
/**
 * In vtt, when each word is said.
 */
word_times: boolean, };

/**
 * The engine that does the work.
 */
export type EngineInfo = { version: string, backend: Backend, devices: Array<Device>, 
/**
 * Why the CPU computes, in a sentence; null where a GPU does.
 */
cpu_reason: string | null, threads: number, 
/**
 * Whether formats that need ffmpeg can be opened.
 */
ffmpeg: boolean, };

export type Device = { id: string, name: string, total_bytes: number | null, free_bytes: number | null, };

/**
 * What happens to the window or the queue, at most twenty times a second.
 */
export type WindowEvent = { "kind": "drag_over", files: number, } | { "kind": "drag_left" } | { "kind": "jobs", changed: Array<Job>, removed: Array<number>, 
/**
 * All of them in the order of their turns, where that changed.
 */
order: Array<number> | null, } | { "kind": "setup", setup: Setup, } | { "kind": "close_requested", unfinished: number, unsaved: number, } | { "kind": "transfers", transfers: Array<Transfer>, } | { "kind": "queue_ended", finished: number, failed: number, };

/**
 * One recording in the queue.
 */
export type Job = { id: number, 
/**
 * File name without its folder.
 */
name: string, folder: string, bytes: number | null, sample: boolean, 
/**
 * It was found in a watched folder.
 */
watched: boolean, 
/**
 * Of its own, where they differ from those at hand.
 */
own: OwnSettings | null, state: JobState, 
/**
 * Parts of it that are being transcribed again, wait for that, or for the
 * user's choice.
 */
again: Array<Again>, progress: Progress | null, duration: number | null, 
/**
 * Container and codec in words.
 */
format: string | null, model: string | null, 
/**
 * The text is the demonstration model's.
 */
demonstration: boolean, failure: Failure | null, 
/**
 * Where its transcript was last saved.
 */
saved: string | null, 
/**
 * The recording of a transcript of the history is not where it was.
 */
missing: boolean, 
/**
 * Set while it is transcribed with a model that was not expected to fit
 * into the free memory.
 */
fit_warning: FitWarning | null, };

/**
 * Where a recording stands.
 */
export type JobState = "held" | "waiting" | "running" | "stopping" | "finished" | "failed" | "cancelled";

export type Progress = { stage: Stage, position: number, duration: number | null, 
/**
 * Seconds of recording per second.
 */
speed: number | null, 
/**
 * Seconds until this stage is done.
 */
left: number | null, };

/**
 * What changed in one recording's text: from index `from` on there are now
 * `segments`; then `changes` were made, in order.
 */
export type TextUpdate = { job: number, from: number, segments: Array<Segment>, changes: Array<TextChange>, 
/**
 * Null: it can't be edited. Its revision is 0 until all of the text is there.
 */
editing: Editing | null, notices: Array<Notice>, 
/**
 * Known once the job is over.
 */
ending: Ending | null, };

/**
 * What was done to the text as it is by then. Segments are named by their index.
 */
export type TextChange = { "kind": "segments", at: number, removed: number, inserted: Array<Segment>, } | { "kind": "text", at: number, text: string, word: number, removed: number, inserted: Array<Word>, } | { "kind": "speaker", ranges: Array<[number, number]>, speaker: string | null, };

export type Segment = { 
/**
 * Its name while it is there; 0 for what can't be edited.
 */
id: number, start: number, end: number, text: string, words: Array<Word>, language: string | null, speaker: string | null, channel: number | null, suspicions: Array<Suspicion>, };

export type Word = { 
/**
 * With the white space before it.
 */
text: string, start: number, end: number, 
/**
 * 0 to 1.
 */
probability: number, };

export type Notice = { 
/**
 * What to branch on.
 */
code: string, severity: Severity, text: string, at: number | null, };

export type Ending = { 
/**
 * ISO 639-1 code of the main language; `und` where it was not determined.
 */
language: string, 
/**
 * False for what a stopped job left behind.
 */
complete: boolean, 
/**
 * Seconds of speech found, and how many of them have text; zero where
 * voice activity detection was off.
 */
speech: number, covered: number, 
/**
 * Stretches of speech of over 2 s without text.
 */
gaps: Array<Gap>, };

/**
 * A part of a recording, in seconds.
 */
export type Gap = { start: number, end: number, };

/**
 * Where to save to.
 */
export type SaveLocation = "beside" | "beside_replacing" | "ask";

/**
 * Where a recording is listened to.
 */
export type PlaySource = { 
/**
 * Address of a WAV file.
 */
audio: string, 
/**
 * Address of its waveform: `{seconds, done, values}`.
 */
peaks: string, 
/**
 * Address that, with a number behind it, tells at which speed it is played.
 */
speed: string, seconds: number, };

/**
 * What came of saving in several formats.
 */
export type Saved = { files: Array<string>, failures: Array<NotSaved>, };

export type NotSaved = { format: Format, failure: Failure, };

/**
 * An error that a user sees. Branch on `code`, show the rest.
 */
export type Failure = { code: ErrorCode, file: string | null, message: string, remedy: string | null, };

/**
 * The models against what is free now.
 */
export type ModelFits = { 
/**
 * Where the next job can be expected to compute; null where nobody can say.
 */
room: MemoryRoom | null, models: Array<ModelFit>, 
/**
 * The number of the best installed model.
 */
recommended: number | null, 
/**
 * Whether no model of the catalogue would be better.
 */
is_best_of_all: boolean, 
/**
 * What is wrong with the card's driver, in a sentence or two.
 */
gpu_problem: string | null, };

export type MemoryRoom = { kind: DeviceKind, name: string, free: number, total: number, };

/**
 * How one model fits. Amounts are bytes.
 */
export type ModelFit = { 
/**
 * Its number.
 */
model: number, 
/**
 * Why it can't be used; then there is no `facts`.
 */
failure: Failure | null, facts: ModelFacts | null, };

export type ModelFacts = { fit: FitWord, 
/**
 * How its weights would be held.
 */
precision: string, 
/**
 * Needed at the least.
 */
peak: number, parts: MemoryParts, 
/**
 * What would have to become free.
 */
missing: number, 
/**
 * Numbers in the network.
 */
parameters: number, disk: number, multilingual: boolean, translates: boolean, 
/**
 * Whether it knows the language and the task that are set.
 */
suits: boolean, 
/**
 * Seconds of recording per second, where this machine's speed was measured.
 */
speed: number | null, };

/**
 * A model that does not fit into the free memory, told before it is loaded.
 * The job starts all the same. Amounts are bytes.
 */
export type FitWarning = { model: string, 
/**
 * How its weights would be held.
 */
precision: string, 
/**
 * Where it was to compute.
 */
room: MemoryRoom, 
/**
 * Needed at the least.
 */
needed: number, 
/**
 * What would have to become free.
 */
missing: number, 
/**
 * What fits; null: none of the installed models that can do the job.
 */
instead: FitInstead | null, };

/**
 * What the job is likely to go on with when memory runs out.
 */
export type FitInstead = { model: string, precision: string, 
/**
 * Windows that fit together.
 */
windows: number, };

/**
 * One setting of the config file.
 */
export type Preference = { name: PreferenceName, value: string | null, 
/**
 * What the environment says instead, which goes before the file.
 */
overruled: string | null, };

/**
 * What is new of one job's memory: the samples from index `from` on are now
 * `samples`; everything else is whole. At most twenty of these a second.
 */
export type MemoryUpdate = { job: number, from: number, samples: Array<MemorySample>, notices: Array<MemoryNotice>, stages: Array<StageUse>, forecast: Forecast | null, };

/**
 * One look at a device, at a known place in the job.
 */
export type MemorySample = { at: number, kind: DeviceKind, 
/**
 * As in the log: `Before Transcription`, `Batch 12`.
 */
label: string, 
/**
 * The log's whole line.
 */
line: string, 
/**
 * Null where nobody could say.
 */
levels: MemoryLevels | null, };

export type MemoryLevels = { 
/**
 * Held by this program.
 */
ours: number, 
/**
 * The most since the sample before.
 */
peak: number, 
/**
 * Held by other programs; null where nobody says.
 */
others: number | null, free: number, 
/**
 * The limit in force.
 */
total: number, };

export type MemoryNotice = { at: number, 
/**
 * What to branch on.
 */
code: string, severity: Severity, text: string, };

/**
 * One stage from before it began to after what it held was given back.
 */
export type StageUse = { stage: MemoryStage, kind: DeviceKind, start: number, 
/**
 * Null while it lasts, and for a model that stays loaded.
 */
end: number | null, before: number, 
/**
 * Once what it came for was loaded: a model's weights, the sound.
 */
loaded: number | null, peak: number, after: number | null, 
/**
 * Part of what was taken that came back, 0 to 1.
 */
recovered: number | null, 
/**
 * False where less came back than has to.
 */
verified: boolean | null, };

/**
 * The peak that was predicted before the job began.
 */
export type Forecast = { kind: DeviceKind, parts: MemoryParts, };

export type MemoryParts = { 
/**
 * The process without a model.
 */
context: number, weights: number, caches: number, activations: number, workspace: number, };

/**
 * In which form a job's memory is saved.
 */
export type ChartFile = "csv" | "png";

/**
 * What there is beside the installed models.
 */
export type Shelf = { 
/**
 * In the order in which to show them.
 */
offers: Array<Offer>, 
/**
 * The name of the model to take on this machine, installed or not.
 */
recommended: string | null, 
/**
 * The user forbids any use of the network.
 */
offline: boolean, 
/**
 * Where models go, and what is free there.
 */
folder: string | null, free: number | null, };

export type Offer = { id: string, stands: Stands, 
/**
 * What is to be downloaded in all.
 */
bytes: number | null, 
/**
 * `en`, `99+`.
 */
languages: string | null, licence: string | null, 
/**
 * Slower than most recordings on this device, as far as anybody knows.
 */
slow: boolean, 
/**
 * Null where it is not known before it is there, or not for the language
 * and task that are set.
 */
facts: OfferFacts | null, 
/**
 * Whether the network can bring it, or what it lacks.
 */
can_be_had: boolean, };

export type Stands = { "kind": "offered" } | { "kind": "interrupted", done: number, total: number | null, } | { "kind": "damaged", files: Array<string>, };

export type OfferFacts = { fit: FitWord, precision: string, 
/**
 * Predicted peak, what is free for it, and what would have to become free.
 */
peak: number, free: number, missing: number, parameters: number, 
/**
 * Seconds of recording per second, where this machine's speed was measured.
 */
speed: number | null, };

/**
 * A download or import under way, or one that failed.
 */
export type Transfer = { id: string, is_import: boolean, stage: TransferStage, file: string | null, done: number, 
/**
 * 0: not known yet.
 */
total: number, speed: number | null, left: number | null, 
/**
 * Seconds until the next attempt, where one failed.
 */
wait: number | null, paused: boolean, failure: Failure | null, };

export type TransferStage = "look" | "download" | "copy" | "wait" | "verify" | "install";

/**
 * One use of the network.
 */
export type Connection = { 
/**
 * Since 1970.
 */
at: number, host: string, why: string, 
/**
 * Null where it is not over, or ended with the program.
 */
bytes: number | null, };

/**
 * A change of a transcript. Segments are named by their `id`.
 */
export type Edit = { "kind": "set_text", segment: number, text: string, } | { "kind": "split", segment: number, at: number, } | { "kind": "merge", segment: number, } | { "kind": "delete", segments: Array<number>, } | { "kind": "insert", after: number | null, text: string, } | { "kind": "retime", segment: number, start: number, end: number, } | { "kind": "set_speaker", segments: Array<number>, speaker: string | null, } | { "kind": "rename_speaker", from: string, to: string, } | { "kind": "accept", segments: Array<number>, } | { "kind": "accept_gap", gap: Gap, };

/**
 * What gives a transcript another text: an edit, or one taken back.
 */
export type EditCommand = { "type": "edit", edit: Edit, } | { "type": "undo" } | { "type": "redo" } | { "type": "choose_again", part: Gap, take: boolean, };

/**
 * What another attempt at a part does otherwise; null: as the recording.
 */
export type Attempt = { model: number | null, 
/**
 * ISO 639-1.
 */
language: string | null, };

/**
 * A part of a finished recording that is transcribed once more.
 */
export type Again = { start: number, end: number, 
/**
 * What waits for the user's choice; null: it is not there yet.
 */
found: Found | null, };

/**
 * What another attempt found.
 */
export type Found = { model: string, language: string, segments: Array<Segment>, };

/**
 * What of a transcript should be listened to.
 */
export type Review = { 
/**
 * How many passages there are.
 */
count: number, 
/**
 * The most doubtful of them, in order.
 */
passages: Array<Passage>, };

export type Passage = { 
/**
 * The segment's id; null: speech without text.
 */
segment: number | null, start: number, end: number, 
/**
 * What the segment is flagged for.
 */
suspicions: Array<Suspicion>, 
/**
 * How likely something in it is wrong, 0 to 1.
 */
doubt: number, };

/**
 * What to look for; accents matter.
 */
export type Finding = { text: string, case: boolean, whole_words: boolean, };

/**
 * What came of an edit.
 */
export type Edited = { 
/**
 * Of the text that has it.
 */
revision: number, 
/**
 * Index of the first segment that may be another one.
 */
segment: number, };

/**
 * What can be done to a transcript that is in the history.
 */
export type Editing = { 
/**
 * Grows with every edit.
 */
revision: number, undo: boolean, redo: boolean, };

export type Replaced = { places: number, transcripts: number, };

/**
 * A transcript of the history. Times are milliseconds since 1970.
 */
export type DocumentInfo = { id: number, title: string, folder: string, created: number, changed: number, 
/**
 * Of the recording, in seconds.
 */
duration: number, language: string, model: string, };

/**
 * A passage of the history that was found.
 */
export type Hit = { document: number, title: string, 
/**
 * The segment's id.
 */
segment: number, 
/**
 * Where in the recording, in seconds.
 */
start: number, text: string, };

/**
 * What is done at once, in the order in which it was wished for.
 */
export type WindowCommand = { "type": "add_sample" } | { "type": "change_settings", settings: Settings, } | { "type": "change_look", look: Look, } | { "type": "start_anyway" } | { "type": "pause", paused: boolean, } | { "type": "reorder", jobs: Array<number>, before: number | null, } | { "type": "again", job: number, part: Gap, attempt: Attempt | null, } | { "type": "put_shortest_first", on: boolean, } | { "type": "save_preset", name: string, settings: Settings, } | { "type": "rename_preset", name: string, to: string, } | { "type": "delete_preset", name: string, } | { "type": "change_watched", number: number, exporting: Exporting, } | { "type": "unwatch_folder", number: number, } | { "type": "change_switches", switches: Switches, } | { "type": "pause_download", id: string, paused: boolean, } | { "type": "stop_download", id: string, };

/**
 * What waits for the disk.
 */
export type BlockingCommand = { "type": "cancel", job: number, } | { "type": "retry", job: number, } | { "type": "remove", job: number, } | { "type": "cancel_all" } | { "type": "retry_failed" } | { "type": "change_own", jobs: Array<number>, settings: Settings | null, } | { "type": "delete_document", document: number, } | { "type": "restore_document", document: number, } | { "type": "remove_model", id: string, };
