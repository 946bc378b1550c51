// Made from crates/app by `STENO_WRITE_CONTRACT=1 cargo test -p app`.

export type CommandName = "attach" | "describe" | "model_fits" | "choose_files" | "choose_model" | "choose_output_folder" | "read_word_lists" | "save_word_list" | "preview_name" | "preferences" | "change_preference" | "diagnostics" | "change_machine" | "test_machine" | "change_worker_queue" | "look_at_workers" | "watch" | "watch_memory" | "save" | "save_unsaved" | "save_chart" | "save_sound" | "close" | "play_source" | "catalog" | "download" | "import_model" | "connections" | "painted" | "execute" | "execute_blocking" | "watch_folder" | "place_watched" | "notify" | "edit" | "review" | "replace_all" | "places" | "replace_one" | "documents" | "search_documents" | "find_passages" | "similar_passages" | "search_choices" | "corrected_words" | "open_document" | "locate_recording" | "save_documents" | "save_jobs" | "count_places" | "undo_replacing" | "show_in_folder" | "voices" | "add_voice" | "remember_speaker" | "rename_voice" | "remove_voice" | "microphone" | "start_microphone" | "stop_microphone" | "keep_microphone" | "drop_microphone" | "adapters" | "switch_adapter" | "remove_adapter" | "import_adapters" | "export_adapter" | "lessons" | "start_learning" | "stop_learning" | "learning";

/** Every code of a notice. */
export const NOTICE_CODES = ["memory.elevated", "memory.critical", "memory.occupied", "memory.not_recovered", "memory.release_failed", "memory.leak", "memory.fragmentation", "memory.spike", "memory.unavailable", "memory.retried", "memory.engine_renewed", "memory.batch_halved", "memory.precision_lowered", "memory.smaller_model", "memory.moved_to_cpu", "memory.speakers_skipped", "memory.gave_up", "memory.will_not_fit", "audio.truncated", "audio.damaged", "audio.phase", "audio.mono", "audio.several_tracks", "speakers.maybe_known", "model.of_language", "model.language_not_identified", "speakers.voices_unreadable", "transcript.gaps", "transcript.discarded", "transcript.again", "transcript.again_failed", "engine.restarted", "engine.window_skipped", "device.waiting", "device.unusable", "journal.unavailable", "journal.file_changed", "history.unavailable", "history.damaged", "export.failed"] as const;

/** Every code of an error. */
export const ERROR_CODES = ["file_not_found", "folder_not_found", "file_unreadable", "not_a_file", "file_empty", "file_incomplete", "no_recordings", "no_audio_track", "no_such_track", "unknown_format", "unsupported_codec", "needs_ffmpeg", "audio_broken", "no_voice", "no_microphone", "no_embedding_model", "recording_too_short", "one_subject", "no_chapters", "no_speakers", "model_not_found", "model_invalid", "model_unsupported", "language_unknown", "bad_settings", "name_taken", "name_missing", "recording_gone", "transcript_gone", "bad_pattern", "device_unavailable", "out_of_memory", "network_off", "network_failed", "download_refused", "server_refused", "server_busy", "recording_refused", "model_corrupt", "model_in_use", "disk_full", "output_exists", "output_unwritable", "output_name_too_long", "engine_not_found", "engine_failed", "engine_silent", "player_failed", "protocol_mismatch", "cancelled", "internal"] as const;

export type PreferenceName = "memory_profile" | "batch_size" | "speaker_batch_size" | "skip_speakers" | "fast_path" | "memory_fraction" | "trim_every" | "renew_after" | "memory_limit" | "ram_limit" | "embedding_profile" | "keep" | "precision" | "threads" | "priority" | "device" | "idle_release" | "speaker_model" | "model_by_language" | "hf_endpoint" | "proxy" | "offline";

/** A word of less probability is uncertain. */
export const UNSURE = 0.5;

/** Share of other people whose voice is mistaken for a known one. */
export const FALSE_ACCEPTS = 0.0014;

/**
 * What programs branch on. The text of a message may change, these may not.
 */
export type ErrorCode = "file_not_found" | "folder_not_found" | "file_unreadable" | "not_a_file" | "file_empty" | "file_incomplete" | "no_recordings" | "no_audio_track" | "no_such_track" | "unknown_format" | "unsupported_codec" | "needs_ffmpeg" | "audio_broken" | "no_voice" | "no_microphone" | "no_embedding_model" | "recording_too_short" | "one_subject" | "no_chapters" | "no_speakers" | "model_not_found" | "model_invalid" | "model_unsupported" | "language_unknown" | "bad_settings" | "name_taken" | "name_missing" | "recording_gone" | "transcript_gone" | "bad_pattern" | "device_unavailable" | "out_of_memory" | "network_off" | "network_failed" | "download_refused" | "server_refused" | "server_busy" | "recording_refused" | "model_corrupt" | "model_in_use" | "disk_full" | "output_exists" | "output_unwritable" | "output_name_too_long" | "engine_not_found" | "engine_failed" | "engine_silent" | "player_failed" | "protocol_mismatch" | "cancelled" | "internal";

/**
 * What an engine was built to compute on.
 */
export type Backend = "cpu" | "cuda";

/**
 * Which channels of a recording are transcribed.
 */
export type Channels = "mix" | "left" | "right" | "separate";

/**
 * An audio track of a recording.
 */
export type AudioTrack = { 
/**
 * Counted from 0, as `Job::track`.
 */
number: number, 
/**
 * As the file spells it, e.g. `eng`.
 */
language: string | null, 
/**
 * Its name, where the file gives it one.
 */
title: string | null, 
/**
 * Name of the codec.
 */
codec: string, 
/**
 * How many channels it has, where the file says so.
 */
channels: number | null, 
/**
 * It is transcribed where none is chosen.
 */
default: boolean, };

/**
 * The stages of a job and the models that they load: everything that holds
 * memory for a while. A model is a stage of its own because it may stay loaded
 * for the next file.
 */
export type Stage = "preprocess" | "speech_model" | "transcribe" | "speaker_model" | "diarize" | "align" | "embedding_model" | "embed" | "adapt";

/**
 * A point in a job at which memory is read.
 */
export type Checkpoint = "pipeline_start" | "before_preprocess" | "after_preprocess" | "before_audio_release" | "after_audio_release" | "before_speech_model_load" | "after_speech_model_load" | "before_transcribe" | "batch" | "after_transcribe" | "before_decoding_release" | "after_decoding_release" | "before_speech_model_release" | "after_speech_model_release" | "before_speaker_model_load" | "after_speaker_model_load" | "before_diarize" | "after_diarize" | "before_waveform_release" | "after_waveform_release" | "before_speaker_model_release" | "after_speaker_model_release" | "before_align" | "after_align" | "before_alignment_release" | "after_alignment_release" | "before_embedding_model_load" | "after_embedding_model_load" | "before_embed" | "after_embed" | "before_embedding_release" | "after_embedding_release" | "before_embedding_model_release" | "after_embedding_model_release" | "before_adapt" | "before_epoch" | "after_epoch" | "after_adapt" | "before_adaptation_release" | "after_adaptation_release" | "before_recovery" | "after_recovery" | "before_trim" | "after_trim" | "before_final_cleanup" | "final_cleanup";

/**
 * What went wrong.
 */
export type Trouble = "refused" | "out_of_memory" | "died" | "killed" | "device_error" | "no_code";

/**
 * What would help most where memory is short.
 */
export type Relief = { "by": "others", 
/**
 * What the others hold.
 */
bytes: number, } | { "by": "batch", 
/**
 * Windows together now.
 */
windows: number, } | { "by": "precision", 
/**
 * The next lower one.
 */
precision: string, } | { "by": "model", 
/**
 * The next smaller one.
 */
model: string, } | { "by": "nothing" };

/**
 * A program that holds memory.
 */
export type Program = { 
/**
 * Its name, where the system tells it.
 */
name: string | null, 
/**
 * The number of its process.
 */
pid: number, 
/**
 * What it holds.
 */
bytes: number, };

/**
 * How fragmentation shows.
 */
export type Fragmented = { "by": "idle", 
/**
 * In use.
 */
allocated: number, 
/**
 * Held.
 */
reserved: number, } | { "by": "refused", 
/**
 * Its size.
 */
asked: number, 
/**
 * What was free.
 */
free: number, };

/**
 * What a user can forbid the ladder to change.
 */
export type Pinned = "model" | "precision" | "gpu" | "speakers";

/**
 * What a notice says, as figures. Amounts are bytes, times seconds, shares 0 to 1.
 */
export type MemoryMessage = { "code": "memory.elevated", "data": { 
/**
 * The device.
 */
kind: DeviceKind, 
/**
 * Of the limit in force.
 */
share: number, 
/**
 * What would help most.
 */
relief: Relief, } } | { "code": "memory.critical", "data": { 
/**
 * The device.
 */
kind: DeviceKind, 
/**
 * Of the limit in force.
 */
share: number, 
/**
 * What would help most.
 */
relief: Relief, } } | { "code": "memory.occupied", "data": { 
/**
 * The device.
 */
kind: DeviceKind, 
/**
 * In use.
 */
used: number, 
/**
 * What there is.
 */
total: number, 
/**
 * This program's part.
 */
ours: number, 
/**
 * The other programs' part.
 */
others: number, 
/**
 * The programs that hold most of it.
 */
programs: Array<Program>, } } | { "code": "memory.not_recovered", "data": { 
/**
 * The stage.
 */
stage: Stage, 
/**
 * What it took.
 */
taken: number, 
/**
 * How much of that came back.
 */
share: number, 
/**
 * What did not.
 */
remaining: number, 
/**
 * It is free, but in pieces that can't be given back.
 */
fragmented: boolean, } } | { "code": "memory.release_failed", "data": { 
/**
 * After this stage; null: after the whole job, or a recovery from a failure.
 */
stage: Stage | null, 
/**
 * What the driver says.
 */
detail: string, } } | { "code": "memory.leak", "data": { 
/**
 * By how much.
 */
grown: number, 
/**
 * Over how many files.
 */
files: number, } } | { "code": "memory.fragmentation", "data": { 
/**
 * How it shows.
 */
sign: Fragmented, } } | { "code": "memory.spike", "data": { 
/**
 * The checkpoint before it.
 */
before: Checkpoint, 
/**
 * The checkpoint after it.
 */
after: Checkpoint, 
/**
 * The most that was held between them.
 */
peak: number, 
/**
 * The most that was held at either.
 */
held: number, } } | { "code": "memory.unavailable", "data": { 
/**
 * Why.
 */
detail: string, } } | { "code": "memory.retried", "data": { 
/**
 * When.
 */
stage: Stage, 
/**
 * Why.
 */
trouble: Trouble, } } | { "code": "memory.engine_renewed", "data": { 
/**
 * When.
 */
stage: Stage, 
/**
 * Why.
 */
trouble: Trouble, } } | { "code": "memory.batch_halved", "data": { 
/**
 * When.
 */
stage: Stage, 
/**
 * Why.
 */
trouble: Trouble, 
/**
 * It is the batch of the speakers' stage.
 */
speakers: boolean, 
/**
 * Windows together before.
 */
from: number, 
/**
 * Windows together from now on.
 */
to: number, } } | { "code": "memory.precision_lowered", "data": { 
/**
 * When.
 */
stage: Stage, 
/**
 * Why.
 */
trouble: Trouble, 
/**
 * The model.
 */
model: string, 
/**
 * The precision before.
 */
from: string, 
/**
 * The precision from now on.
 */
to: string, } } | { "code": "memory.smaller_model", "data": { 
/**
 * When.
 */
stage: Stage, 
/**
 * Why.
 */
trouble: Trouble, 
/**
 * The model before.
 */
from: string, 
/**
 * The model from now on.
 */
to: string, } } | { "code": "memory.moved_to_cpu", "data": { 
/**
 * When.
 */
stage: Stage, 
/**
 * Why.
 */
trouble: Trouble, } } | { "code": "memory.speakers_skipped", "data": { 
/**
 * When.
 */
stage: Stage, 
/**
 * Why.
 */
trouble: Trouble, } } | { "code": "memory.gave_up", "data": { 
/**
 * When.
 */
stage: Stage, 
/**
 * Why.
 */
trouble: Trouble, 
/**
 * What the user forbade to change.
 */
kept: Array<Pinned>, } } | { "code": "memory.will_not_fit", "data": { 
/**
 * The model.
 */
model: string, 
/**
 * Its precision.
 */
precision: string, 
/**
 * What is missing, and what is done instead.
 */
detail: string, } };

/**
 * Why this engine can't use a graphics card.
 */
export type CardProblem = { "by": "capability", 
/**
 * What the card is called.
 */
card: string, 
/**
 * Its compute capability.
 */
found: string, 
/**
 * Those that the engine has code for.
 */
built_for: Array<string>, } | { "by": "code", 
/**
 * What the driver says.
 */
detail: string, } | { "by": "result", 
/**
 * Which one.
 */
operation: string, };

/**
 * What a notice says, as figures. Amounts are bytes, times seconds, shares 0 to 1.
 */
export type JobMessage = { "code": "audio.truncated", "data": { 
/**
 * How much was decoded.
 */
decoded: number, 
/**
 * How long the recording is, where the file says so.
 */
declared: number | null, 
/**
 * What the decoder says, where that is more.
 */
detail: string | null, } } | { "code": "audio.damaged", "data": { 
/**
 * There is silence in their place.
 */
silenced: boolean, 
/**
 * What the decoder says.
 */
detail: string | null, } } | { "code": "audio.phase", "data": { 
/**
 * The channel that was taken alone, from 1.
 */
channel: number, 
/**
 * By how much the mix would be quieter.
 */
decibels: number, } } | { "code": "audio.mono", "data": Record<symbol, never> } | { "code": "audio.several_tracks", "data": { 
/**
 * How many.
 */
tracks: number, 
/**
 * The one that is taken, from 0.
 */
taken: number, 
/**
 * Its language, as the file spells it.
 */
language: string | null, } } | { "code": "speakers.maybe_known", "data": { 
/**
 * The speaker.
 */
speaker: string, 
/**
 * The person.
 */
person: string, } } | { "code": "model.of_language", "data": { 
/**
 * ISO 639-1.
 */
language: string, 
/**
 * How sure that is, 0 to 1.
 */
probability: number, 
/**
 * The model that transcribes.
 */
model: string, } } | { "code": "model.language_not_identified", "data": { 
/**
 * Why.
 */
detail: string, } } | { "code": "speakers.voices_unreadable", "data": { 
/**
 * Why.
 */
detail: string, } } | { "code": "transcript.gaps", "data": { 
/**
 * In how many places.
 */
gaps: number, } } | { "code": "transcript.discarded", "data": { 
/**
 * How many passages.
 */
passages: number, } } | { "code": "transcript.again", "data": { 
/**
 * Where it begins.
 */
from: number, 
/**
 * Where it ends.
 */
to: number, 
/**
 * The model.
 */
model: string, } } | { "code": "transcript.again_failed", "data": { 
/**
 * Why.
 */
error: ErrorCode, 
/**
 * The same in English.
 */
detail: string, } } | { "code": "engine.restarted", "data": { 
/**
 * Why.
 */
error: ErrorCode, 
/**
 * The same in English.
 */
detail: string, } } | { "code": "engine.window_skipped", "data": { 
/**
 * How often.
 */
times: number, } } | { "code": "device.waiting", "data": { 
/**
 * `cpu` or `cuda:N`.
 */
device: string, 
/**
 * The number of the other's process.
 */
pid: number | null, } } | { "code": "device.unusable", "data": { 
/**
 * `cuda:N`.
 */
device: string, 
/**
 * Why.
 */
problem: CardProblem, } } | { "code": "journal.unavailable", "data": { 
/**
 * Why.
 */
detail: string, } } | { "code": "journal.file_changed", "data": Record<symbol, never> } | { "code": "history.unavailable", "data": { 
/**
 * Why.
 */
detail: string, } } | { "code": "history.damaged", "data": { 
/**
 * Why.
 */
detail: string, } } | { "code": "export.failed", "data": { 
/**
 * Why.
 */
error: ErrorCode, 
/**
 * The file.
 */
file: string | null, 
/**
 * The same in English.
 */
detail: string, } };

/**
 * A notice of either kind, for a reader that has its words in another language.
 */
export type NoticeMessage = MemoryMessage | JobMessage;

/**
 * A file format.
 */
export type Format = "txt" | "srt" | "vtt" | "ass" | "lrc" | "json" | "md" | "html" | "docx" | "pdf" | "csv" | "tsv" | "whisperx" | "rttm" | "chapters" | "chapters-vtt";

/**
 * How far a result differs from what was asked for; later variants are worse.
 */
export type Severity = "info" | "degraded" | "failed";

/**
 * A reason to doubt a segment.
 */
export type Suspicion = "loop" | "too_fast" | "over_silence" | "low_confidence";

/**
 * How a job's predicted peak compares with what is free.
 */
export type Fit = "does_not_fit" | "tight" | "comfortable";

/**
 * Where memory is.
 */
export type DeviceKind = "gpu" | "host";

/**
 * Where a job would compute, and what is free there. Bytes.
 */
export type DeviceMemory = { 
/**
 * Whether it is a GPU or the host.
 */
kind: DeviceKind, 
/**
 * To follow "on": `the CPU`, or a card's name.
 */
name: string, 
/**
 * Free now, within the user's limits.
 */
free: number, 
/**
 * In all, within the user's limits.
 */
total: number, };

/**
 * The models that can be installed or repaired.
 */
export type ModelCatalog = { 
/**
 * What was begun first, then the recommended one, then the best first.
 */
entries: Array<CatalogEntry>, 
/**
 * The name of the model to take, which may be installed already.
 */
recommended: string | null, 
/**
 * The user forbids any use of the network.
 */
offline: boolean, 
/**
 * The folder of the models, for people to read.
 */
folder: string | null, 
/**
 * Bytes that are free on the disk of that folder; null where the system does not say.
 */
free: number | null, };

/**
 * A model that can be installed, repaired or removed. Amounts are bytes.
 */
export type CatalogEntry = { 
/**
 * Its name in the catalogue.
 */
id: string, 
/**
 * What it is for.
 */
purpose: ModelKind, 
/**
 * How much of it is on this machine.
 */
state: InstallState, 
/**
 * The size of its download; null where that is not known.
 */
bytes: number | null, 
/**
 * `en`, `99+`: as the catalogue has it.
 */
languages: string | null, 
/**
 * Its licence, an SPDX identifier.
 */
licence: string | null, 
/**
 * Slower than most recordings on this device, as far as it was measured.
 */
slow: boolean, 
/**
 * In the precision that suits it best. Null where its network is not known before
 * it is installed, and where it can't do the job.
 */
facts: EntryFacts | null, 
/**
 * Whether it, or what it lacks, can be downloaded.
 */
downloadable: boolean, };

/**
 * How a model of the catalogue would run on this machine. Amounts are bytes.
 */
export type EntryFacts = { 
/**
 * Whether it fits into what is free now.
 */
fit: Fit, 
/**
 * How its weights would be held.
 */
precision: string, 
/**
 * The predicted peak.
 */
peak: number, 
/**
 * Free where it would compute.
 */
free: number, 
/**
 * What would have to become free.
 */
missing: number, 
/**
 * Numbers in the network.
 */
parameters: number, 
/**
 * Seconds of recording per second, where this machine's speed was measured.
 */
speed: number | null, };

/**
 * How much of a model is on this machine.
 */
export type InstallState = { "kind": "offered" } | { "kind": "interrupted", 
/**
 * Bytes on disk.
 */
done: number, 
/**
 * Bytes of all its files, where that is known.
 */
total: number | null, } | { "kind": "damaged", 
/**
 * The names of those files.
 */
files: Array<string>, } | { "kind": "installed" };

/**
 * What a download or import is doing.
 */
export type TransferStage = "look" | "download" | "copy" | "wait" | "verify" | "install" | "installed";

/**
 * What the page needs at its start.
 */
export type Setup = { 
/**
 * The version of Steno.
 */
version: string, 
/**
 * The models to choose from.
 */
models: Array<ModelChoice>, 
/**
 * What recordings are transcribed with.
 */
settings: Settings, 
/**
 * The folders for transcripts to choose from.
 */
output_folders: Array<string>, 
/**
 * What the window looks like.
 */
look: Look, 
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
shortest_first: boolean, 
/**
 * Settings under a name.
 */
presets: Array<Preset>, 
/**
 * Folders whose new recordings are transcribed.
 */
watched: Array<WatchedFolder>, 
/**
 * What the window may do beyond itself.
 */
switches: Switches, 
/**
 * Which machine transcribes.
 */
machine: MachineSetup, 
/**
 * The queue of workers that the window looks at.
 */
workers: WorkerQueue, 
/**
 * What the user's config file says that can't be used; the defaults are in force.
 */
preferences_failure: Failure | null, 
/**
 * What of the choices of earlier windows could not be read; its file is a copy of them.
 */
forgotten: Failure | null, };

/**
 * A model to choose.
 */
export type ModelChoice = { 
/**
 * Its number, which the page names it by.
 */
id: number, 
/**
 * Its name.
 */
name: string, 
/**
 * Its folder.
 */
folder: string, 
/**
 * Its text is not reliable: it is there to show how the program works.
 */
demonstration: boolean, 
/**
 * What is to be known of it.
 */
note: string | null, 
/**
 * It was downloaded or imported, and can be removed.
 */
removable: boolean, };

/**
 * What recordings are transcribed with.
 */
export type Settings = { 
/**
 * The number of the model; null: there is none.
 */
model: number | null, 
/**
 * ISO 639-1; null: detect.
 */
language: string | null, 
/**
 * To English.
 */
translate: boolean, 
/**
 * The original is kept, with the translation beside it.
 */
bilingual: boolean, 
/**
 * Searched for the likeliest text at once, from 1 to 8; 1 is the quickest, null what suits the model.
 */
beams: number | null, 
/**
 * Detect the language of each stretch anew.
 */
several_languages: boolean, 
/**
 * Names and words to be expected.
 */
words: Array<string>, 
/**
 * How far from its own choice the model may be to write one of them, in nats, 0 to 12; null: as far as usual.
 */
words_strength: number | null, 
/**
 * Text that the model takes for what was said before; empty: none.
 */
prompt: string, 
/**
 * What becomes of several channels.
 */
channels: Channels, 
/**
 * Probability of speech from which on sound is transcribed, 0 to 1; null: all of it is.
 */
voice_activity: number | null, 
/**
 * Tell speakers apart.
 */
speakers: boolean, 
/**
 * How many speakers there are; null: as many as are found.
 */
speaker_count: number | null, 
/**
 * Where transcripts go: the number of a folder; null: next to the recording.
 */
output_folder: number | null, 
/**
 * How files are named, without their endings: a text with placeholders such as {name}; empty: as
 * the recording.
 */
name_template: string, 
/**
 * What is written as soon as a transcript is finished; null: nothing.
 */
when_finished: Exporting | null, };

/**
 * Settings of one recording: the model by its folder and name, since it need
 * not be among those there are.
 */
export type OwnSettings = { 
/**
 * The name of the model.
 */
model_name: string | null, 
/**
 * The folder of the model.
 */
model_folder: string | null, 
/**
 * ISO 639-1; null: detect.
 */
language: string | null, 
/**
 * To English.
 */
translate: boolean, 
/**
 * The original is kept, with the translation beside it.
 */
bilingual: boolean, 
/**
 * As in `Settings`.
 */
beams: number | null, 
/**
 * As in `Settings`.
 */
several_languages: boolean, 
/**
 * As in `Settings`.
 */
words: Array<string>, 
/**
 * How far from its own choice the model may be to write one of them, in nats, 0 to 12; null: as far as usual.
 */
words_strength: number | null, 
/**
 * As in `Settings`.
 */
prompt: string, 
/**
 * As in `Settings`.
 */
channels: Channels, 
/**
 * As in `Settings`.
 */
voice_activity: number | null, 
/**
 * As in `Settings`.
 */
speakers: boolean, 
/**
 * As in `Settings`.
 */
speaker_count: number | null, 
/**
 * The folder for transcripts; null: next to the recording.
 */
output_folder: string | null, 
/**
 * As in `Settings`.
 */
name_template: string, 
/**
 * As in `Settings`.
 */
when_finished: Exporting | null, };

/**
 * Which part of a recording is transcribed. Times are seconds.
 */
export type Part = { 
/**
 * Audio track by number from 0; null: the file's default one.
 */
track: number | null, 
/**
 * Null: from the start.
 */
from: number | null, 
/**
 * Null: to the end.
 */
to: number | null, };

/**
 * What files would be called.
 */
export type NamePreview = { 
/**
 * An example without its ending; null: the template can't be used.
 */
name: string | null, 
/**
 * Why not.
 */
problem: TemplateError | null, };

/**
 * Why a template can't be used.
 */
export type TemplateError = { "kind": "unknown", 
/**
 * What stands between the braces.
 */
placeholder: string, } | { "kind": "brace" } | { "kind": "forbidden", 
/**
 * The character.
 */
character: string, } | { "kind": "empty" };

/**
 * Settings under a name.
 */
export type Preset = { 
/**
 * The name that the user gave.
 */
name: string, 
/**
 * The settings.
 */
settings: Settings, 
/**
 * The folder of its model, where that is not among those there are.
 */
missing_model: string | null, };

/**
 * A folder whose new recordings are transcribed.
 */
export type WatchedFolder = { 
/**
 * Its path.
 */
folder: string, 
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
 * Which machine transcribes.
 */
export type MachineSetup = { 
/**
 * As it was entered.
 */
machine: Machine, 
/**
 * There is a token for it, which the page never sees.
 */
has_token: boolean, 
/**
 * Host and port, while it is used.
 */
place: string | null, 
/**
 * What is sent there can be read on its way.
 */
is_open: boolean, };

/**
 * A machine on which `steno serve` runs.
 */
export type Machine = { 
/**
 * Recordings that are begun from now on go there.
 */
on: boolean, 
/**
 * Such as `http://studio:8642`; empty where none was entered.
 */
address: string, 
/**
 * A model of that machine; null: it chooses.
 */
model: string | null, };

/**
 * Where a recording is transcribed that is not transcribed here.
 */
export type Elsewhere = { 
/**
 * Host and port of the machine.
 */
place: string, 
/**
 * How much of the recording was sent, from 0 to 1, while it is.
 */
sent: number | null, 
/**
 * Why it does not go on now; it does by itself when that has passed.
 */
waiting: Failure | null, };

/**
 * Where the queue is.
 */
export type WorkerQueue = { 
/**
 * Such as `nats://head:4222`; empty: none.
 */
address: string, 
/**
 * The queue's name.
 */
queue: string, };

/**
 * One look at a queue.
 */
export type WorkersView = { 
/**
 * Jobs that no worker has.
 */
waiting: number, 
/**
 * Jobs that workers have.
 */
running: number, 
/**
 * Jobs with a transcript.
 */
finished: number, 
/**
 * Jobs that were given up.
 */
failed: number, 
/**
 * What the workers do in a minute, all at work; null before any finished one.
 */
jobs_per_minute: number | null, 
/**
 * Seconds of recordings per second, all at work.
 */
speed: number | null, 
/**
 * Seconds until the queue is empty; null where it is, or that is not known.
 */
left: number | null, 
/**
 * Those that said something in the last half minute.
 */
workers: Array<WorkerView>, 
/**
 * Jobs that no worker takes.
 */
unplaced: Array<UnplacedView>, };

/**
 * A living worker.
 */
export type WorkerView = { 
/**
 * The machine's.
 */
name: string, 
/**
 * The process.
 */
pid: number, 
/**
 * What computes.
 */
device: string, 
/**
 * Free on the device when it started, in bytes.
 */
free: number, 
/**
 * In all, in bytes.
 */
total: number, 
/**
 * The models that fit.
 */
models: Array<string>, 
/**
 * Jobs that it finished.
 */
finished: number, 
/**
 * Seconds of recordings per second; null before the first.
 */
speed: number | null, 
/**
 * The recording that it works on; null: none.
 */
recording: string | null, 
/**
 * How far it is, in seconds.
 */
position: number, };

/**
 * Jobs that no living worker takes.
 */
export type UnplacedView = { 
/**
 * The model that they are for.
 */
model: string, 
/**
 * How many.
 */
waiting: number, 
/**
 * Bytes that they need at the least; null: not known.
 */
needs: number | null, };

/**
 * What the window looks and sounds like.
 */
export type Look = { 
/**
 * Light, dark, or as the system.
 */
theme: "system" | "light" | "dark", 
/**
 * Null: the system's.
 */
language: "en" | "de" | "es" | "fr" | "zh" | "ja" | null, 
/**
 * Uncertain words are not marked.
 */
hide_unsure: boolean, 
/**
 * The pictures of a film are not shown while it is heard.
 */
hide_pictures: boolean, 
/**
 * Keys that the user chose, by what they do; none: that has no key.
 */
keys: { [key in string]: Array<string> }, };

/**
 * How transcripts were last saved.
 */
export type Exporting = { 
/**
 * The formats to write.
 */
formats: Array<Format>, 
/**
 * Subtitles divided into cues that fit a screen.
 */
shaped: boolean, 
/**
 * In vtt, ass and lrc, when each word is said.
 */
word_times: boolean, 
/**
 * In tables and SubRip, text that other programs take for a formula or a tag is kept.
 */
raw_text: boolean, 
/**
 * In subtitles and plain text, a translation stands below what was said.
 */
translation: boolean, 
/**
 * In documents, what stands beside the text.
 */
document: DocumentOptions, };

/**
 * What stands beside the text of a document, and how the text is divided.
 */
export type DocumentOptions = { 
/**
 * The time before each paragraph.
 */
times: boolean, 
/**
 * The speaker before each paragraph.
 */
speakers: boolean, 
/**
 * Paragraphs of several segments; else one per segment.
 */
paragraphs: boolean, };

/**
 * The engine that does the work.
 */
export type EngineInfo = { 
/**
 * The version of the engine.
 */
version: string, 
/**
 * What it can compute on.
 */
backend: Backend, 
/**
 * The devices of this machine.
 */
devices: Array<Device>, 
/**
 * Why the CPU computes, in a sentence; null where a GPU does.
 */
cpu_reason: string | null, 
/**
 * Threads that compute.
 */
threads: number, 
/**
 * Whether formats that need ffmpeg can be opened.
 */
ffmpeg: boolean, };

/**
 * A device that can compute.
 */
export type Device = { 
/**
 * `cpu` or `cuda:N`.
 */
id: string, 
/**
 * Its name.
 */
name: string, 
/**
 * Its memory; null where it is not known.
 */
total_bytes: number | null, 
/**
 * What of it is free; null where it is not known.
 */
free_bytes: number | null, };

/**
 * What happens to the window or the queue, at most twenty times a second.
 */
export type WindowEvent = { "kind": "drag_over", 
/**
 * How many.
 */
files: number, } | { "kind": "drag_left" } | { "kind": "jobs", 
/**
 * Recordings that are new or changed.
 */
changed: Array<Job>, 
/**
 * Recordings that are no longer in the list.
 */
removed: Array<number>, 
/**
 * All of them in the order of their turns, where that changed.
 */
order: Array<number> | null, } | { "kind": "setup", 
/**
 * All of the setup.
 */
setup: Setup, } | { "kind": "close_requested", 
/**
 * Recordings that would be left undone.
 */
unfinished: number, 
/**
 * Recordings whose transcripts would be lost.
 */
unsaved: Array<number>, } | { "kind": "transfers", 
/**
 * All of them.
 */
transfers: Array<Transfer>, } | { "kind": "index", 
/**
 * How far it is.
 */
state: IndexState, } | { "kind": "queue_ended", 
/**
 * Recordings that were transcribed.
 */
finished: number, 
/**
 * Recordings that failed.
 */
failed: number, };

/**
 * One recording in the queue.
 */
export type Job = { 
/**
 * Its number, which the page names it by.
 */
id: number, 
/**
 * File name without its folder.
 */
name: string, 
/**
 * Its folder.
 */
folder: string, 
/**
 * The file's size.
 */
bytes: number | null, 
/**
 * It is the program's own recording.
 */
sample: boolean, 
/**
 * It was found in a watched folder.
 */
watched: boolean, 
/**
 * Of its own, where they differ from those at hand.
 */
own: OwnSettings | null, 
/**
 * Which part of it is transcribed.
 */
part: Part, 
/**
 * Its audio tracks, where it is known to have several.
 */
tracks: Array<AudioTrack>, 
/**
 * Where it stands.
 */
state: JobState, 
/**
 * Parts of it that are being transcribed again, wait for that, or for the
 * user's choice.
 */
again: Array<Again>, 
/**
 * How far its job has come.
 */
progress: Progress | null, 
/**
 * How long the recording is; null where that is not known yet.
 */
duration: number | null, 
/**
 * Container and codec in words.
 */
format: string | null, 
/**
 * The name of the model that transcribes it.
 */
model: string | null, 
/**
 * What computes, once that is known: `cpu` or `cuda:N`.
 */
device: string | null, 
/**
 * The text is the demonstration model's.
 */
demonstration: boolean, 
/**
 * Why it failed.
 */
failure: Failure | null, 
/**
 * Where its transcript was last saved.
 */
saved: string | null, 
/**
 * Why its transcript is not in the history; null: it is, or is to be.
 */
not_stored: Failure | null, 
/**
 * Why it was not saved when it was finished; null: it was, or that was not asked for.
 */
not_saved: Failure | null, 
/**
 * How it was to be saved then: the formats that are not written yet; null with `not_saved`.
 */
unsaved: Exporting | null, 
/**
 * The recording of a transcript of the history is not where it was.
 */
missing: boolean, 
/**
 * The file is damaged or cut off: up to this second it could be decoded.
 */
truncated_at: number | null, 
/**
 * Its job, once it has begun, tells speakers apart when the text is there.
 */
speakers: boolean, 
/**
 * It was paused, stopped or failed, and resuming goes on from this second; null: from the start.
 */
reached: number | null, 
/**
 * Resuming it begins anew, because its settings are others than those of its text, which then goes into
 * the history.
 */
starts_over: boolean, 
/**
 * Where it is transcribed, or was; null: here.
 */
elsewhere: Elsewhere | null, 
/**
 * Set while it is transcribed with a model that was not expected to fit
 * into the free memory.
 */
fit_warning: FitWarning | null, };

/**
 * The state of a recording in the queue.
 */
export type JobState = "held" | "waiting" | "running" | "stopping" | "pausing" | "paused" | "finished" | "failed" | "cancelled";

/**
 * How far a job has come.
 */
export type Progress = { 
/**
 * What is being done.
 */
stage: Stage, 
/**
 * How much of the recording is done.
 */
position: number, 
/**
 * How long the recording is.
 */
duration: number | null, 
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
export type TextUpdate = { 
/**
 * The recording.
 */
job: number, 
/**
 * Index of the first replaced segment.
 */
from: number, 
/**
 * The segments from that index on.
 */
segments: Array<Segment>, 
/**
 * Edits that follow, in order.
 */
changes: Array<TextChange>, 
/**
 * Null: it can't be edited. Its revision is 0 until all of the text is there.
 */
editing: Editing | null, 
/**
 * All notices about the text.
 */
notices: Array<Notice>, 
/**
 * All chapters, in order.
 */
chapters: Array<Chapter>, 
/**
 * What is being written behind the segments; it may still change.
 */
live_text: string | null, 
/**
 * Known once the job is over.
 */
ending: Ending | null, };

/**
 * What was done to the text as it is by then. Segments are named by their index.
 */
export type TextChange = { "kind": "segments", 
/**
 * Index of the first segment.
 */
at: number, 
/**
 * How many segments were removed.
 */
removed: number, 
/**
 * The new segments.
 */
inserted: Array<Segment>, } | { "kind": "text", 
/**
 * Index of the segment.
 */
at: number, 
/**
 * Its whole text.
 */
text: string, 
/**
 * Index of the first changed word.
 */
word: number, 
/**
 * How many words were removed.
 */
removed: number, 
/**
 * The new words.
 */
inserted: Array<Word>, } | { "kind": "speaker", 
/**
 * First segment and the one after the last.
 */
ranges: Array<[number, number]>, 
/**
 * Their new speaker; null: no name.
 */
speaker: string | null, };

/**
 * A piece of the text, usually a sentence.
 */
export type Segment = { 
/**
 * Its name while it is there; 0 for what can't be edited.
 */
id: number, 
/**
 * When it begins.
 */
start: number, 
/**
 * When it ends.
 */
end: number, 
/**
 * The text.
 */
text: string, 
/**
 * The same in English, where it was translated besides.
 */
translation: string | null, 
/**
 * Its words; empty where their times are not known.
 */
words: Array<Word>, 
/**
 * Its language, where that is another one than the transcript's.
 */
language: string | null, 
/**
 * Who speaks.
 */
speaker: string | null, 
/**
 * Its channel, from 0, where channels were transcribed apart.
 */
channel: number | null, 
/**
 * What it is flagged for.
 */
suspicions: Array<Suspicion>, };

/**
 * A word of a segment.
 */
export type Word = { 
/**
 * With the white space before it.
 */
text: string, 
/**
 * When it begins.
 */
start: number, 
/**
 * When it ends.
 */
end: number, 
/**
 * 0 to 1.
 */
probability: number, };

/**
 * What is to be known of a transcript as a whole.
 */
export type Notice = { 
/**
 * What to branch on.
 */
code: string, 
/**
 * How much it matters.
 */
severity: Severity, 
/**
 * What the page's words are made of; null in a transcript that another version saved.
 */
told: NoticeMessage | null, 
/**
 * In English, for where nothing is told.
 */
text: string, 
/**
 * The time in the recording that it is about.
 */
at: number | null, };

/**
 * What a transcript says of itself as a whole.
 */
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
speech: number, 
/**
 * Seconds of speech that have text.
 */
covered: number, 
/**
 * Stretches of speech of over 2 s without text, with more than a second of voice in them.
 */
gaps: Array<Gap>, };

/**
 * A part of a recording, in seconds.
 */
export type Gap = { 
/**
 * Start.
 */
start: number, 
/**
 * End.
 */
end: number, };

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
 * Address of `{pictures, missing}`: whether it has pictures, or can't show them without ffmpeg. With
 * `/` and seconds behind it, of the picture at that time.
 */
pictures: string, 
/**
 * Address that, with a number behind it, tells at which speed it is played.
 */
speed: string, 
/**
 * How long the recording is.
 */
seconds: number, };

/**
 * What came of saving in several formats.
 */
export type Saved = { 
/**
 * The files that were written.
 */
files: Array<string>, 
/**
 * The formats that were not written.
 */
failures: Array<NotSaved>, };

/**
 * A format that could not be written.
 */
export type NotSaved = { 
/**
 * The format.
 */
format: Format, 
/**
 * Why.
 */
failure: Failure, };

/**
 * An error that a user sees. The page has words of its own for the code; the rest are details.
 */
export type Failure = { 
/**
 * What to branch on.
 */
code: ErrorCode, 
/**
 * The file that it is about.
 */
file: string | null, 
/**
 * What happened, in English.
 */
message: string, 
/**
 * What to do, in English.
 */
remedy: string | null, };

/**
 * The models against what is free now.
 */
export type ModelFits = { 
/**
 * Where the next job is expected to compute; null where that can't be found out.
 */
device: DeviceMemory | null, 
/**
 * One per model, by its number.
 */
models: Array<ModelFit>, 
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
gpu_problem: string | null, 
/**
 * The id of the download that would have a card compute; null where none would.
 */
engine: string | null, };

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
failure: Failure | null, 
/**
 * What it needs, and what it can do.
 */
facts: ModelFacts | null, };

/**
 * What a model needs, and what it can do.
 */
export type ModelFacts = { 
/**
 * Whether it fits into what is free now.
 */
fit: Fit, 
/**
 * How its weights would be held.
 */
precision: string, 
/**
 * Needed at the least.
 */
peak: number, 
/**
 * What each purpose takes at the peak.
 */
parts: MemoryParts, 
/**
 * What would have to become free.
 */
missing: number, 
/**
 * Numbers in the network.
 */
parameters: number, 
/**
 * Size of its files.
 */
disk: number, 
/**
 * It knows more languages than English.
 */
multilingual: boolean, 
/**
 * It translates into English.
 */
translates: boolean, 
/**
 * It can be told the language.
 */
takes_language: boolean, 
/**
 * It finds the language, in each region anew where that is asked for. One that does not and can be told it must be.
 */
finds_language: boolean, 
/**
 * It can be asked to translate.
 */
takes_translation: boolean, 
/**
 * It can be given a prompt.
 */
takes_prompt: boolean, 
/**
 * It can follow several texts at once.
 */
takes_beams: boolean, 
/**
 * How many it follows unless it is told.
 */
usual_beams: number, 
/**
 * Whether it knows the language and the task that are set.
 */
suits: boolean, 
/**
 * Seconds of recording per second, where this machine's speed was measured.
 */
speed: number | null, };

/**
 * Warns before a model is loaded that it does not fit into the free memory. The job
 * starts all the same. Amounts are bytes.
 */
export type FitWarning = { 
/**
 * The name of the model.
 */
model: string, 
/**
 * How its weights would be held.
 */
precision: string, 
/**
 * Where it was to compute.
 */
device: DeviceMemory, 
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
export type FitInstead = { 
/**
 * The name of the model.
 */
model: string, 
/**
 * How its weights would be held.
 */
precision: string, 
/**
 * Windows that fit together.
 */
windows: number, };

/**
 * One setting of the config file.
 */
export type Preference = { 
/**
 * Its key in the config file.
 */
name: PreferenceName, 
/**
 * What the file says; null: nothing.
 */
value: string | null, 
/**
 * What the environment says instead, which goes before the file.
 */
overruled: string | null, 
/**
 * What the user may choose from, where that depends on what is installed.
 */
options: Array<string>, 
/**
 * What each of them is called, where that is not its name.
 */
labels: Array<string>, };

/**
 * What is new of one job's memory: the samples from index `from` on are now
 * `samples`; everything else is whole. At most twenty of these a second.
 */
export type MemoryUpdate = { 
/**
 * The recording.
 */
job: number, 
/**
 * Index of the first new sample.
 */
from: number, 
/**
 * The new samples.
 */
samples: Array<MemorySample>, 
/**
 * All notices.
 */
notices: Array<MemoryNotice>, 
/**
 * All stages that have begun.
 */
stages: Array<StageUse>, 
/**
 * What was predicted; null where the model can't be read.
 */
forecast: Forecast | null, };

/**
 * One look at a device, at a known place in the job.
 */
export type MemorySample = { 
/**
 * When, in seconds.
 */
at: number, 
/**
 * The device.
 */
kind: DeviceKind, 
/**
 * The place in the job.
 */
checkpoint: Checkpoint, 
/**
 * Number of the batch, from 1.
 */
batch: number | null, 
/**
 * Null where it could not be read.
 */
levels: MemoryLevels | null, };

/**
 * What a device held at one moment.
 */
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
 * Held by other programs; null where that is unknown.
 */
others: number | null, 
/**
 * What can be allocated.
 */
free: number, 
/**
 * The limit in force.
 */
total: number, };

/**
 * What is to be known of a job's memory.
 */
export type MemoryNotice = { 
/**
 * When, in seconds.
 */
at: number, 
/**
 * What to branch on.
 */
code: string, 
/**
 * How much it matters.
 */
severity: Severity, 
/**
 * What the page's words are made of; null in what another version saved.
 */
told: NoticeMessage | null, 
/**
 * In English, for where nothing is told.
 */
text: string, };

/**
 * One stage from before it began to after what it held was given back.
 */
export type StageUse = { 
/**
 * The stage.
 */
stage: Stage, 
/**
 * The device.
 */
kind: DeviceKind, 
/**
 * When it began, in seconds.
 */
start: number, 
/**
 * Null while it lasts, and for a model that stays loaded.
 */
end: number | null, 
/**
 * Held before it.
 */
before: number, 
/**
 * Once what it came for was loaded: a model's weights, the sound.
 */
loaded: number | null, 
/**
 * The most held during it.
 */
peak: number, 
/**
 * Held after it; null while it lasts.
 */
after: number | null, 
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
export type Forecast = { 
/**
 * The device.
 */
kind: DeviceKind, 
/**
 * What each purpose takes.
 */
parts: MemoryParts, };

/**
 * A peak by purpose.
 */
export type MemoryParts = { 
/**
 * The process without a model.
 */
context: number, 
/**
 * The model.
 */
weights: number, 
/**
 * Keys and values of the decoder.
 */
caches: number, 
/**
 * What the layers compute.
 */
activations: number, 
/**
 * What the libraries need besides.
 */
workspace: number, };

/**
 * In which form a job's memory is saved.
 */
export type ChartFile = "csv" | "png";

/**
 * A download or import under way, or one that failed.
 */
export type Transfer = { 
/**
 * The name of the model.
 */
id: string, 
/**
 * It comes from this machine.
 */
is_import: boolean, 
/**
 * Whether it is the engine for NVIDIA cards and no model.
 */
is_engine: boolean, 
/**
 * The user paused it.
 */
paused: boolean, 
/**
 * Why it failed.
 */
failure: Failure | null, 
/**
 * What is being done.
 */
stage: TransferStage, 
/**
 * The file at work.
 */
file: string | null, 
/**
 * Bytes that are there.
 */
done: number, 
/**
 * Bytes in all; 0 while that is not known.
 */
total: number, 
/**
 * Bytes per second.
 */
speed: number | null, 
/**
 * Seconds until the last byte.
 */
left: number | null, 
/**
 * While waiting: why, in a sentence, and for how many seconds.
 */
why: string | null, 
/**
 * Seconds until the next attempt.
 */
wait: number | null, };

/**
 * What a connection is for.
 */
export type Purpose = { "of": "facts", 
/**
 * The model.
 */
model: string, } | { "of": "file_list", 
/**
 * Its name on the hub.
 */
repository: string, } | { "of": "file", 
/**
 * The file's name.
 */
file: string, 
/**
 * What it is part of.
 */
model: string, } | { "of": "engine_list" } | { "of": "jobs" } | { "of": "recordings" } | { "of": "other_machine" } | string;

/**
 * What a model is for.
 */
export type ModelKind = "speech" | "speakers" | "speaker-embedding" | "speaker-segmentation" | "text-embedding";

/**
 * One use of the network.
 */
export type Connection = { 
/**
 * Since 1970.
 */
at: number, 
/**
 * The host that was asked.
 */
host: string, 
/**
 * What was asked for.
 */
why: Purpose, 
/**
 * Null where it is not over, or ended with the program.
 */
bytes: number | null, };

/**
 * A change of a transcript. Segments are named by their `id`.
 */
export type Edit = { "kind": "set_text", 
/**
 * The segment.
 */
segment: number, 
/**
 * The new text.
 */
text: string, } | { "kind": "split", 
/**
 * The segment.
 */
segment: number, 
/**
 * Characters of the first half.
 */
at: number, } | { "kind": "merge", 
/**
 * The first of the two.
 */
segment: number, } | { "kind": "delete", 
/**
 * The segments.
 */
segments: Array<number>, } | { "kind": "insert", 
/**
 * The segment before the new one.
 */
after: number | null, 
/**
 * Its text.
 */
text: string, } | { "kind": "retime", 
/**
 * The segment.
 */
segment: number, 
/**
 * Its new start, in seconds.
 */
start: number, 
/**
 * Its new end, in seconds.
 */
end: number, } | { "kind": "set_speaker", 
/**
 * The segments.
 */
segments: Array<number>, 
/**
 * The name; null: no name.
 */
speaker: string | null, } | { "kind": "set_speaker_of_words", 
/**
 * The segment.
 */
segment: number, 
/**
 * Characters of its text before the words.
 */
from: number, 
/**
 * Characters of its text up to their end.
 */
to: number, 
/**
 * The name; null: no name.
 */
speaker: string | null, } | { "kind": "rename_speaker", 
/**
 * The name now.
 */
from: string, 
/**
 * The new name.
 */
to: string, } | { "kind": "accept", 
/**
 * The segments.
 */
segments: Array<number>, } | { "kind": "accept_gap", 
/**
 * The stretch.
 */
gap: Gap, } | { "kind": "set_chapters", 
/**
 * Each begins with its segment, wherever that is; an empty title becomes the beginning of the text.
 */
chapters: Array<Chapter>, };

/**
 * A command that changes the text of a transcript.
 */
export type EditCommand = { "type": "edit", 
/**
 * The edit.
 */
edit: Edit, } | { "type": "undo" } | { "type": "redo" } | { "type": "find_chapters" } | { "type": "choose_again", 
/**
 * The part.
 */
part: Gap, 
/**
 * False: it is forgotten.
 */
take: boolean, };

/**
 * A part of a transcript about one subject, up to the next one.
 */
export type Chapter = { 
/**
 * The id of the segment that it begins with.
 */
segment: number, 
/**
 * Start of that segment, in seconds.
 */
start: number, 
/**
 * What it is about.
 */
title: string, };

/**
 * What another attempt at a part does otherwise; null: as the recording.
 */
export type Attempt = { 
/**
 * The number of the model.
 */
model: number | null, 
/**
 * ISO 639-1.
 */
language: string | null, };

/**
 * A part of a finished recording that is transcribed once more.
 */
export type Again = { 
/**
 * Start, in seconds.
 */
start: number, 
/**
 * End, in seconds.
 */
end: number, 
/**
 * Who speaks is found; nothing is transcribed.
 */
speakers: boolean, 
/**
 * It is translated to English beside its text.
 */
translation: boolean, 
/**
 * What waits for the user's choice; null: it is not there yet.
 */
found: Found | null, };

/**
 * What another attempt found.
 */
export type Found = { 
/**
 * The name of the model.
 */
model: string, 
/**
 * ISO 639-1 code of its language.
 */
language: string, 
/**
 * The new text.
 */
segments: Array<Segment>, };

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

/**
 * A passage that should be listened to.
 */
export type Passage = { 
/**
 * The segment's id; null: speech without text.
 */
segment: number | null, 
/**
 * Start, in seconds.
 */
start: number, 
/**
 * End, in seconds.
 */
end: number, 
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
export type Finding = { 
/**
 * The text to find.
 */
text: string, 
/**
 * Upper and lower case matter.
 */
case: boolean, 
/**
 * Only whole words count.
 */
whole_words: boolean, 
/**
 * The text is a regular expression.
 */
regular_expression: boolean, };

/**
 * Words within a segment.
 */
export type Place = { 
/**
 * The segment's index.
 */
segment: number, 
/**
 * The first code unit.
 */
start: number, 
/**
 * The code unit behind the last.
 */
end: number, };

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
revision: number, 
/**
 * An edit can be taken back.
 */
undo: boolean, 
/**
 * An edit that was taken back can be made again.
 */
redo: boolean, };

/**
 * How much was replaced.
 */
export type Replaced = { 
/**
 * Occurrences that were replaced.
 */
places: number, 
/**
 * Transcripts that had one.
 */
transcripts: number, };

/**
 * What came of taking a replacement in several transcripts back.
 */
export type Undone = { 
/**
 * Transcripts that are as they were.
 */
undone: number, 
/**
 * Titles of the transcripts that were edited since and stay as they are.
 */
left: Array<string>, };

/**
 * A transcript of the history. Times are milliseconds since 1970.
 */
export type DocumentInfo = { 
/**
 * Its number in the history.
 */
id: number, 
/**
 * The name of the recording.
 */
title: string, 
/**
 * The folder of the recording.
 */
folder: string, 
/**
 * When it was transcribed.
 */
created: number, 
/**
 * When it was last edited.
 */
changed: number, 
/**
 * Of the recording, in seconds.
 */
duration: number, 
/**
 * ISO 639-1 code of its language.
 */
language: string, 
/**
 * The name of the model.
 */
model: string, 
/**
 * Words by which the user sorts it.
 */
tags: Array<string>, };

/**
 * Word errors without and with an adapter.
 */
export type WordErrors = { 
/**
 * Words in the reference.
 */
words: number, 
/**
 * Words wrong, missing or too many without it.
 */
before: number, 
/**
 * The same with it.
 */
after: number, 
/**
 * Words that are right with it and were not without, with how often; the most frequent first.
 */
better: Array<[string, number]>, 
/**
 * Words that are not right with it and were without.
 */
worse: Array<[string, number]>, };

/**
 * Word errors without and with an adapter.
 */
export type AdapterFigures = { 
/**
 * On corrections that were held back.
 */
corrections: WordErrors, 
/**
 * On other recordings; `None` where there are none.
 */
others: WordErrors | null, 
/**
 * On corrections that were learnt; `None` where there are none, and in the files of earlier versions.
 */
learnt: WordErrors | null, };

/**
 * What an adapter was learnt from.
 */
export type Learnt = { 
/**
 * Recordings.
 */
recordings: number, 
/**
 * Parts of them with their texts.
 */
segments: number, 
/**
 * Of those, the ones that the user corrected.
 */
corrected: number, 
/**
 * Seconds of sound.
 */
seconds: number, 
/**
 * ISO 639-1.
 */
languages: Array<string>, };

/**
 * What an adapter was learnt from, when, and with what success.
 */
export type AdapterCard = { 
/**
 * The name of the model that it belongs to.
 */
model: string, 
/**
 * Tells that model's weights from others ([`fingerprint`]).
 */
base: string, 
/**
 * Rows of A and columns of B, from 1; 0 where there are no matrices.
 */
rank: number, 
/**
 * What B A is multiplied by is `alpha / rank`.
 */
alpha: number, 
/**
 * When it was made, RFC 3339.
 */
created: string, 
/**
 * Of the order of examples and of what A begins with.
 */
seed: number, 
/**
 * What was learnt from.
 */
learnt: Learnt, 
/**
 * Times that everything was gone through, until the best adapter was there.
 */
epochs: number, 
/**
 * How much of what was learnt it has, of 1, where that is less than all; `alpha` is so much less.
 */
strength: number | null, 
/**
 * Corrections that are remembered.
 */
remembered: number, 
/**
 * The mean loss per token of what was held back, before and after, with all that was learnt.
 */
held_back_loss: [number, number] | null, 
/**
 * Word errors with and without it; `None`: they were not counted yet.
 */
figures: AdapterFigures | null, };

/**
 * What a model has learnt.
 */
export type Adapter = { 
/**
 * By which it is chosen.
 */
name: string, 
/**
 * Of its file.
 */
bytes: number, 
/**
 * Its model is used with it.
 */
on: boolean, 
/**
 * What it is; null: it can't be read.
 */
card: AdapterCard | null, 
/**
 * Why it can't be read.
 */
failure: Failure | null, };

/**
 * A segment that the user corrected.
 */
export type CorrectedSegment = { 
/**
 * Its place among the transcript's segments, from 0.
 */
number: number, 
/**
 * Seconds.
 */
start: number, 
/**
 * Seconds.
 */
end: number, 
/**
 * As it reads now.
 */
text: string, };

/**
 * A transcript with corrections.
 */
export type CorrectedText = { 
/**
 * Its number in the history.
 */
document: number, 
/**
 * The recording's file name.
 */
title: string, 
/**
 * The corrected segments.
 */
segments: Array<CorrectedSegment>, 
/**
 * Seconds that training on it takes, about; null: this machine's speed was not measured.
 */
seconds: number | null, };

/**
 * What a model could learn from.
 */
export type Lessons = { 
/**
 * Transcripts with corrections.
 */
recordings: Array<CorrectedText>, 
/**
 * Bytes that it is predicted to take; null: this model can't learn.
 */
memory: number | null, 
/**
 * Why it can't.
 */
failure: Failure | null, };

/**
 * How far a model's learning is.
 */
export type LearningStage = "waiting" | "training" | "comparing" | "kept" | "not_kept" | "stopped" | "failed";

/**
 * What is being learnt, or was last.
 */
export type LearningRun = { 
/**
 * The model's name.
 */
model: string, 
/**
 * How far it is.
 */
stage: LearningStage, 
/**
 * Windows of 30 seconds that the model has heard as it is, for corrections to be remembered.
 */
heard: number, 
/**
 * All that it is to hear so; 0 where it is trained.
 */
to_hear: number, 
/**
 * From 1; 0 before the first one.
 */
epoch: number, 
/**
 * At most.
 */
epochs: number, 
/**
 * Steps done, of all epochs.
 */
step: number, 
/**
 * Steps of all epochs.
 */
steps: number, 
/**
 * Seconds until all epochs are done, at most.
 */
left: number | null, 
/**
 * Steps from 1 with their losses, since it began or went on.
 */
losses: Array<[number, number]>, 
/**
 * The loss of what was held back, with the steps that were done: before the first epoch and after each.
 */
held_back: Array<[number, number]>, 
/**
 * How much of what was learnt is compared, or kept, of 1; null: none.
 */
strength: number | null, 
/**
 * Whether what is kept are corrections that are remembered: nothing was trained, or it was no better.
 */
remembered: boolean, 
/**
 * Word errors without and with it, once it is finished.
 */
figures: AdapterFigures | null, 
/**
 * Why it failed.
 */
failure: Failure | null, };

/**
 * What a search of the history found.
 */
export type SearchResults = { 
/**
 * The latest transcript first; of each in order of time.
 */
hits: Array<Hit>, 
/**
 * There are more, which were left out.
 */
more: boolean, };

/**
 * A passage of the history that was found.
 */
export type Hit = { 
/**
 * Its number in the history.
 */
document: number, 
/**
 * The name of the recording.
 */
title: string, 
/**
 * The segment's id.
 */
segment: number, 
/**
 * Where in the recording, in seconds.
 */
start: number, 
/**
 * The text of the segment.
 */
text: string, };

/**
 * Where to search; null admits everything.
 */
export type SearchFilter = { 
/**
 * The speaker's name.
 */
speaker: string | null, 
/**
 * ISO 639-1 code of the passage's language.
 */
language: string | null, 
/**
 * Transcripts of this time or later, in milliseconds since 1970.
 */
since: number | null, 
/**
 * Transcripts of before this time, in milliseconds since 1970.
 */
until: number | null, 
/**
 * The folder of the recording, with those in it.
 */
folder: string | null, 
/**
 * A tag of the transcript.
 */
tag: string | null, };

/**
 * What can be chosen in a [`SearchFilter`], in alphabetical order.
 */
export type SearchChoices = { 
/**
 * Names of speakers.
 */
speakers: Array<string>, 
/**
 * ISO 639-1 codes.
 */
languages: Array<string>, };

/**
 * A word that was written in place of others several times.
 */
export type CorrectedWord = { 
/**
 * As it was written.
 */
word: string, 
/**
 * What was there before, the most frequent first, at most three.
 */
heard: Array<string>, 
/**
 * In how many places it was written.
 */
times: number, };

/**
 * The passages that answer a question, the best first.
 */
export type PassageResults = { 
/**
 * The passages.
 */
passages: Array<FoundPassage>, 
/**
 * Their meaning was compared, not only their words.
 */
by_meaning: boolean, };

/**
 * A few sentences of one speaker that a search found.
 */
export type FoundPassage = { 
/**
 * Its number, for more like it.
 */
id: number, 
/**
 * The number of its transcript in the history.
 */
document: number, 
/**
 * The name of the recording.
 */
title: string, 
/**
 * When it was transcribed, in milliseconds since 1970.
 */
created: number, 
/**
 * The id of the segment to open.
 */
segment: number, 
/**
 * Start, in seconds.
 */
start: number, 
/**
 * End, in seconds.
 */
end: number, 
/**
 * Who speaks, if known.
 */
speaker: string | null, 
/**
 * The text in parts, and whether each is a word that was asked for.
 */
text: Array<[string, boolean]>, 
/**
 * Its words matched, or some of them.
 */
by_words: boolean, 
/**
 * Its meaning matched.
 */
by_meaning: boolean, };

/**
 * How far the search by meaning is.
 */
export type IndexState = { 
/**
 * The name of the model that compares meanings; null: none is installed.
 */
model: string | null, 
/**
 * Passages that can be found by their meaning.
 */
done: number, 
/**
 * All passages.
 */
total: number, 
/**
 * Grows whenever a search may find something else.
 */
revision: number, 
/**
 * Passages per second while it works; null: it rests.
 */
speed: number | null, 
/**
 * Why it can't work.
 */
failure: Failure | null, };

/**
 * What makes a sample a bad one.
 */
export type Flaw = "short" | "mixed" | "unlike";

/**
 * The page's list of voices.
 */
export type VoiceList = { 
/**
 * In the order of their names.
 */
voices: Array<Voice>, 
/**
 * Names of those of which a sample is damaged and left out.
 */
damaged: Array<string>, };

/**
 * A person who is recognised.
 */
export type Voice = { 
/**
 * What the person is called in transcripts.
 */
name: string, 
/**
 * In the order in which they were added.
 */
samples: Array<VoiceSample>, };

/**
 * One recording's part in a voice.
 */
export type VoiceSample = { 
/**
 * File name of the recording.
 */
source: string, 
/**
 * Speech of the person in it.
 */
seconds: number, 
/**
 * How much it sounds like the other samples, from 0 to 1; null for a single one.
 */
likeness: number | null, 
/**
 * What makes it a bad one.
 */
flaws: Array<Flaw>, };

/**
 * How far a recording from the microphone is.
 */
export type Microphone = { 
/**
 * There is a program that can record.
 */
available: boolean, 
/**
 * Seconds so far; null: nothing is being recorded.
 */
seconds: number | null, 
/**
 * How loud the latest is, from 0 to 1.
 */
level: number, 
/**
 * Why nothing could be recorded.
 */
failure: Failure | null, };

/**
 * A command that takes effect at once, in the order in which the page sends them.
 */
export type WindowCommand = { "type": "add_sample" } | { "type": "change_settings", 
/**
 * The new settings.
 */
settings: Settings, } | { "type": "change_look", 
/**
 * The new look.
 */
look: Look, } | { "type": "start_anyway" } | { "type": "pause", 
/**
 * False: the queue goes on.
 */
paused: boolean, } | { "type": "reorder", 
/**
 * The recordings to move.
 */
jobs: Array<number>, 
/**
 * The recording that follows them.
 */
before: number | null, } | { "type": "again", 
/**
 * The recording.
 */
job: number, 
/**
 * The part of it.
 */
part: Gap, 
/**
 * Null: the new text replaces the old one.
 */
attempt: Attempt | null, } | { "type": "find_speakers", 
/**
 * The recording.
 */
job: number, } | { "type": "translate", 
/**
 * The recording.
 */
job: number, } | { "type": "free_memory" } | { "type": "put_shortest_first", 
/**
 * False: the order is as given.
 */
on: boolean, } | { "type": "save_preset", 
/**
 * The name of the preset.
 */
name: string, 
/**
 * Its settings.
 */
settings: Settings, } | { "type": "rename_preset", 
/**
 * Its name.
 */
name: string, 
/**
 * Its new name.
 */
to: string, } | { "type": "delete_preset", 
/**
 * Its name.
 */
name: string, } | { "type": "change_watched", 
/**
 * Its index in the list of watched folders.
 */
number: number, 
/**
 * Formats and options.
 */
exporting: Exporting, } | { "type": "unwatch_folder", 
/**
 * Its index in the list of watched folders.
 */
number: number, } | { "type": "change_switches", 
/**
 * The new switches.
 */
switches: Switches, } | { "type": "pause_download", 
/**
 * The name of the model.
 */
id: string, 
/**
 * False: it goes on.
 */
paused: boolean, } | { "type": "stop_download", 
/**
 * The name of the model.
 */
id: string, };

/**
 * A command that may wait for the disk.
 */
export type BlockingCommand = { "type": "cancel", 
/**
 * The recording.
 */
job: number, } | { "type": "pause_job", 
/**
 * The recording.
 */
job: number, } | { "type": "retry", 
/**
 * The recording.
 */
job: number, } | { "type": "remove", 
/**
 * The recording.
 */
job: number, } | { "type": "cancel_all" } | { "type": "retry_failed" } | { "type": "change_own", 
/**
 * The recordings.
 */
jobs: Array<number>, 
/**
 * Their settings.
 */
settings: Settings | null, } | { "type": "change_part", 
/**
 * The recording.
 */
job: number, 
/**
 * Track and times.
 */
part: Part, } | { "type": "tag_document", 
/**
 * Its number in the history.
 */
document: number, 
/**
 * All of them.
 */
tags: Array<string>, } | { "type": "ignore_word", 
/**
 * As it is offered.
 */
word: string, 
/**
 * Whether it is offered no longer.
 */
ignored: boolean, } | { "type": "delete_document", 
/**
 * Its number in the history.
 */
document: number, } | { "type": "restore_document", 
/**
 * Its number in the history.
 */
document: number, } | { "type": "remove_model", 
/**
 * Its name.
 */
id: string, };
