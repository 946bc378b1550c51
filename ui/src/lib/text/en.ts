import type { ErrorCode, Job, Progress, Suspicion } from "../generated/contract";
import { clock, gigabytes, span } from "../ui/format";

/** Everything the window says, in English; every other language has the same shape. */
export const en = {
  app: "Steno",
  recordings: "Recordings",
  noRecordingsHere: "No recordings yet",
  addFiles: "Add files…",

  home: {
    title: "Drop recordings here",
    hint: "Audio or video, one file, many, or a folder. They stay on this computer.",
    choose: "Choose files…",
    sample: "Try the sample recording",
  },

  drag: (files: number) => (files === 1 ? "Drop to transcribe 1 file" : `Drop to transcribe ${files} files`),

  settings: {
    label: "Settings for the next recording",
    model: "Model",
    noModel: "None",
    chooseModel: "Choose a model’s folder…",
    demonstration: "demonstration",
    language: "Language",
    detect: "Detect",
    translate: "Translate to English",
  },

  engine: {
    label: "Computing device",
    starting: "Looking for the device…",
    missing: "Engine not available",
    cpu: (threads: number) => (threads === 1 ? "CPU, 1 thread" : `CPU, ${threads} threads`),
    why: "Why the CPU",
    memory: (free: number, total: number) => `${gigabytes(free)} of ${gigabytes(total)} free`,
    noFfmpeg: "ffmpeg is not installed: a few rare formats can’t be opened.",
    version: (version: string) => `Engine ${version}`,
    again: "Look again",
    close: "Close",
  },

  queue: {
    stopAll: "Stop all",
    saveAll: (files: number, format: string) => `Save all ${files} as .${format}`,
    removeSaved: "Remove saved",
  },

  demonstration: {
    title: "Only the demonstration model is here",
    text: "It is tiny and shows how Steno works. The text it writes is not reliable. For your own recordings, choose a real Whisper model: the folder with its config.json and .safetensors files.",
    waiting: (files: number) => (files === 1 ? "1 recording waits." : `${files} recordings wait.`),
    choose: "Choose a model’s folder…",
    anyway: "Try the demonstration anyway",
    banner: "Written by the demonstration model: this text is not reliable.",
  },

  state: (job: Job): string => {
    switch (job.state) {
      case "held":
        return "Waiting for a model";
      case "waiting":
        return "Waiting";
      case "running":
        return job.progress ? en.stage(job.progress) : "Starting";
      case "stopping":
        return "Stopping";
      case "finished":
        return "Done";
      case "failed":
        return "Failed";
      case "cancelled":
        return "Stopped";
    }
  },

  stage: (progress: Progress): string => {
    switch (progress.stage) {
      case "load_model":
        return "Loading the model";
      case "preprocess":
        return "Reading the recording";
      case "transcribe":
        return "Transcribing";
      case "diarize":
        return "Telling speakers apart";
      case "align":
        return "Timing the words";
    }
  },

  progress: {
    label: "Progress",
    position: (position: number, duration: number | null) =>
      duration === null ? clock(position) : `${clock(position)} of ${clock(duration)}`,
    speed: (speed: number) => `${speed.toFixed(speed < 10 ? 1 : 0)}× real time`,
    left: (seconds: number) => `${span(seconds, "en")} left`,
  },

  job: {
    stop: "Stop",
    retry: "Try again",
    remove: "Remove from the list",
    stopFile: (name: string) => `Stop ${name}`,
    retryFile: (name: string) => `Try ${name} again`,
    removeFile: (name: string) => `Remove ${name} from the list`,
    sample: "Sample recording",
  },

  transcript: {
    label: "Transcript",
    waiting: "The words appear here as soon as the first are written.",
    waitingTurn: "This recording is transcribed when those before it are done.",
    none: "No speech was found in this recording.",
    nothing: "Nothing was written before it was stopped.",
    partial: "Stopped before the end: this is what was written until then.",
    failedPartial: "This is what was written until then.",
    newest: "Show the newest",
    copy: "Copy",
    search: "Search",
    searchIn: "Search in this transcript",
    matches: (at: number, all: number) => (all === 0 ? "Nothing found" : `${at} of ${all}`),
    next: "Next place",
    previous: "Previous place",
    copied: "The text was copied.",
    doubtful: (reasons: Suspicion[]) => `Doubtful: ${reasons.map((reason) => en.suspicion[reason]).join(", ")}`,
    gaps: (gaps: number) =>
      gaps === 1 ? "Speech was heard in 1 place without text:" : `Speech was heard in ${gaps} places without text:`,
    notices: "Notes about this transcript",
  },

  suspicion: {
    loop: "the same words over and over",
    too_fast: "more words than anyone speaks in that time",
    over_silence: "text where no speech was heard",
    low_confidence: "the model was unsure",
  } satisfies Record<Suspicion, string>,

  save: {
    label: "Save",
    beside: (format: string) => `Save .${format}`,
    besideHint: (folder: string) => `Saves beside the recording, in ${folder}`,
    as: "Save as…",
    format: "Format",
    formats: {
      txt: "Text, one segment per line",
      srt: "Subtitles (SubRip)",
      vtt: "Subtitles (WebVTT)",
      json: "Everything, for other programs",
    },
    done: (file: string) => `Saved: ${file}`,
    doneAll: (files: number) => (files === 1 ? "1 file was saved." : `${files} files were saved.`),
    replace: "Replace it",
  },

  closing: {
    title: "Close Steno?",
    unfinished: (files: number) =>
      files === 1 ? "1 recording is not finished; it will be stopped." : `${files} recordings are not finished; they will be stopped.`,
    unsaved: (files: number) =>
      files === 1 ? "1 transcript was not saved; its text will be lost." : `${files} transcripts were not saved; their text will be lost.`,
    stay: "Stay",
    close: "Close",
  },

  dialogs: { files: "Choose recordings", model: "Choose a model’s folder", save: "Save the transcript" },

  toasts: { label: "Messages", dismiss: "Close message" },

  errors: {
    file_not_found: "File not found",
    file_unreadable: "File can’t be read",
    not_a_file: "Not a file",
    file_empty: "Empty file",
    no_audio_track: "No sound in this file",
    no_such_track: "No such audio track",
    unknown_format: "Not a recording",
    unsupported_codec: "Format not supported",
    needs_ffmpeg: "This format needs ffmpeg",
    audio_broken: "Damaged recording",
    model_not_found: "No model",
    model_invalid: "Not a usable model",
    model_unsupported: "Model not supported",
    language_unknown: "Unknown language",
    bad_settings: "These settings don’t work",
    device_unavailable: "Device not available",
    out_of_memory: "Not enough memory",
    network_off: "The network is switched off",
    network_failed: "No connection",
    download_refused: "Not allowed to download",
    model_corrupt: "Damaged model",
    model_in_use: "The model is being changed",
    disk_full: "Disk full",
    output_exists: "There is such a file already",
    output_unwritable: "Can’t be saved there",
    engine_not_found: "Engine not found",
    engine_failed: "The engine stopped unexpectedly",
    engine_silent: "The engine does not answer",
    protocol_mismatch: "Engine of another version",
    cancelled: "Stopped",
    internal: "Something went wrong in Steno",
  } satisfies Record<ErrorCode, string>,
};

export type Text = typeof en;
