// Made from src-tauri/src/contract.rs by `STENO_WRITE_CONTRACT=1 cargo test -p steno-window contract`.

export type Command = "attach" | "describe" | "choose_files" | "add_sample" | "choose_model" | "change_settings" | "start_anyway" | "watch" | "cancel" | "retry" | "remove" | "save" | "close";

export type ErrorCode = "file_not_found" | "file_unreadable" | "not_a_file" | "file_empty" | "no_audio_track" | "no_such_track" | "unknown_format" | "unsupported_codec" | "needs_ffmpeg" | "audio_broken" | "model_not_found" | "model_invalid" | "model_unsupported" | "language_unknown" | "bad_settings" | "device_unavailable" | "out_of_memory" | "network_off" | "network_failed" | "download_refused" | "model_corrupt" | "model_in_use" | "disk_full" | "output_exists" | "output_unwritable" | "engine_not_found" | "engine_failed" | "engine_silent" | "protocol_mismatch" | "cancelled" | "internal";

/**
 * What the page needs at its start.
 */
export type Setup = { version: string, models: Array<ModelChoice>, settings: Settings, 
/**
 * Whether there is a recording to try the program with.
 */
has_sample: boolean, };

export type ModelChoice = { id: number, name: string, folder: string, 
/**
 * Its text is not reliable: it is there to show how the program works.
 */
demonstration: boolean, note: string | null, };

export type Settings = { model: number | null, 
/**
 * ISO 639-1; null: detect.
 */
language: string | null, 
/**
 * To English.
 */
translate: boolean, };

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

export type Backend = "cpu" | "cuda";

export type Device = { id: string, name: string, total_bytes: number | null, free_bytes: number | null, };

/**
 * What happens to the window or the queue, at most twenty times a second.
 */
export type WindowEvent = { "kind": "drag_over", files: number, } | { "kind": "drag_left" } | { "kind": "jobs", changed: Array<Job>, removed: Array<number>, } | { "kind": "setup", setup: Setup, } | { "kind": "close_requested", unfinished: number, unsaved: number, };

/**
 * One recording in the queue.
 */
export type Job = { id: number, 
/**
 * File name without its folder.
 */
name: string, folder: string, bytes: number | null, sample: boolean, state: JobState, progress: Progress | null, duration: number | null, 
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
saved: string | null, };

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

export type Stage = "load_model" | "preprocess" | "transcribe" | "diarize" | "align";

/**
 * What changed in one recording's text: the segments from index `from` on are
 * now `segments`. At most twenty of these a second.
 */
export type TextUpdate = { job: number, from: number, segments: Array<Segment>, notices: Array<Notice>, 
/**
 * Known once the job is over.
 */
ending: Ending | null, };

export type Segment = { start: number, end: number, text: string, language: string | null, speaker: string | null, channel: number | null, suspicions: Array<Suspicion>, };

export type Suspicion = "loop" | "too_fast" | "over_silence" | "low_confidence";

export type Notice = { 
/**
 * What to branch on.
 */
code: string, severity: Severity, text: string, at: number | null, };

export type Severity = "info" | "degraded" | "failed";

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

export type Gap = { start: number, end: number, };

export type Format = "txt" | "srt" | "vtt" | "json";

/**
 * Where to save to.
 */
export type Place = "beside" | "beside_replacing" | "ask";

/**
 * An error that a user sees. Branch on `code`, show the rest.
 */
export type Failure = { code: ErrorCode, file: string | null, message: string, remedy: string | null, };
