import type { ErrorCode, Format, Job, PreferenceName, Progress, Suspicion, TransferStage } from "../generated/contract";
import { clock, gigabytes, span } from "../ui/format";

/** Everything the window says, in English; every other language has the same shape. */
export const en = {
  app: "Steno",
  language: "en" as "en" | "de",
  recordings: "Recordings",
  addFiles: "Add files…",

  home: {
    title: "Drop recordings here",
    hint: "Audio or video, one file, many, or a folder. They stay on this computer.",
    choose: "Choose files…",
    sample: "Try the sample recording",
  },

  views: { label: "Parts of the window", recordings: "Recordings", models: "Models", settings: "Settings" },

  device: {
    room: (free: string, total: string) => `${free} of ${total} free for Steno`,
    unknown: "How much memory is free is not known.",
  },

  models: {
    title: "Device and model",
    recommended: "Recommended",
    demonstration: "Shows how Steno works. Its text is not reliable: not for your own recordings.",
    parameters: (count: string) => `${count} parameters`,
    multilingual: "many languages",
    english: "English only",
    disk: (size: string) => `${size} on disk`,
    needs: (size: string, free: string, precision: string) => `needs ${size} of ${free} free (${precision})`,
    best: "Best of those here",
    unsuited: "Not for the language and the task that are set",
    fit: { comfortable: "Fits", tight: "Fits, but only just", does_not_fit: "Does not fit" },
    missing: (size: string) => `${size} are missing`,
    none: "No model is installed. Choose the folder of a Whisper model.",
    again: "Look again",
  },

  offers: {
    title: "Models to download",
    hint: "Nothing is downloaded unless you press the button.",
    folder: (folder: string, free: string | null) => `They go to ${folder}${free === null ? "" : `, where ${free} are free`}.`,
    offline: "The network is switched off in the settings.",
    off: "Network off",
    begun: "Under way and unfinished",
    download: "Download",
    size: (size: string) => `${size} to download`,
    interrupted: (done: string, total: string | null) => (total ? `Interrupted at ${done} of ${total}` : "Interrupted"),
    damaged: (files: string) => `Damaged: ${files}`,
    slow: "Slow without a graphics card",
    repair: "Repair",
    gone: "It can’t be downloaded: remove it, and import it again.",
    unknown: "What it needs is known once it is here.",
    disk: "There is not enough room on the disk.",
    remove: "Remove",
    keep: "Keep",
    removeModel: (model: string) => `Remove ${model}`,
    removeTitle: (model: string) => `Remove ${model}?`,
    removeText: "Its files are deleted from this computer. It can be downloaded or imported again.",
    importFolder: "Import a folder…",
    importFile: "Import a file…",
    inPlace: "Use a folder where it is…",
    importHint: "A copy is made and checked: a folder with config.json, tokenizer.json and .safetensors files, a .gguf file, or a ggml file of whisper.cpp.",
  },

  transfers: {
    stage: {
      look: "Asking what there is",
      download: "Downloading",
      copy: "Copying",
      wait: "Waiting for the connection",
      verify: "Checking what came",
      install: "Almost done",
    } satisfies Record<TransferStage, string>,
    paused: "Paused",
    bytes: (done: string, total: string) => `${done} of ${total}`,
    speed: (bytes: string) => `${bytes}/s`,
    again: (seconds: number) => `again in ${seconds} s`,
    pause: "Pause",
    resume: "Go on",
    cancel: "Stop",
    retry: "Try again",
    dismiss: "Close",
    remedies: {
      network_off: "Allow the network in the settings.",
      network_failed: "Check the connection and try again: it goes on where it stopped.",
      download_refused: "If the model asks for an account, accept its terms on its page and set HF_TOKEN to a token of yours.",
      model_corrupt: "Try again; if that does not help, something between here and there changes files.",
      model_in_use: "Wait until the other program is done with it.",
      disk_full: "Make room and try again: it goes on where it stopped.",
    } as Partial<Record<ErrorCode, string>>,
  },

  memory: {
    title: "Memory",
    starting: "What the job takes of memory appears here with its first stage.",
    none: "Nothing was seen of this recording’s memory.",
    device: "Memory of",
    kinds: { gpu: "Graphics card", host: "Main memory" },
    chart: (kind: string) => `${kind} over time. The arrow keys go from checkpoint to checkpoint; a table is below.`,
    ours: "Steno",
    others: "Other programs",
    free: "Free",
    limit: "Limit",
    peak: "Highest use, predicted and measured",
    predicted: "Predicted",
    measured: "Measured",
    ofPredicted: (share: string) => `${share} of what was predicted`,
    before: "held before",
    work: "caches, activations, workspace",
    parts: { context: "program", weights: "weights", caches: "caches", activations: "activations", workspace: "workspace" },
    stagesTitle: "Stages",
    stage: "Stage",
    beforeStage: "Before",
    highest: "Highest",
    afterStage: "After",
    recovered: "Given back",
    held: "stays loaded",
    notRecovered: "Less came back than should",
    stages: {
      preprocess: "Sound",
      speech_model: "Model",
      transcribe: "Transcription",
      speaker_model: "Speaker model",
      diarize: "Speakers",
      align: "Alignment",
    },
    table: (samples: number) => (samples === 1 ? "1 checkpoint as a table" : `${samples} checkpoints as a table`),
    latest: (samples: number) => `The latest ${samples}; the saved table has all.`,
    time: "Time",
    checkpoint: "Checkpoint",
    unknown: "not known",
    saveTable: "Save as csv",
    savePicture: "Save as picture",
  },

  severity: { info: "Note", degraded: "In a lesser form", failed: "Missing" },

  preferences: {
    title: "Settings",
    look: "Appearance",
    theme: "Theme",
    themes: { system: "As the system", light: "Light", dark: "Dark" },
    language: "Language",
    systemLanguage: "As the system",
    memory: "Memory and engine",
    network: "Network",
    hint: "For recordings that are begun from now on. They stand in the file that the command line reads too.",
    unset: "Not set",
    overruled: (value: string) => `The environment says ${value}, which goes before this.`,
    wrong: "The config file can’t be used; the defaults are in force.",
    switches: { true: "Yes", false: "No" },
    profiles: { safe: "Safe: small batches, often tidied up", fast: "Fast: as much at once as fits" },
    priorities: { low: "Low", normal: "Normal" },
    kept: { model: "the model", precision: "the precision", gpu: "the graphics card", speakers: "the speakers" },
    names: {
      memory_profile: ["Profile", "Several of the others at once"],
      batch_size: ["Windows at once", "A number from 1; not set: as many as fit"],
      speaker_batch_size: ["Windows of the speakers’ models at once", "A number from 1; not set: as many as fit"],
      skip_speakers: ["Never tell speakers apart", null],
      fast_path: ["Drop the speakers where memory does not suffice", null],
      memory_fraction: ["Part of the free memory for one buffer", "Above 0 and up to 1"],
      trim_every: ["Batches between looks at fragmentation", "0: never"],
      renew_after: ["Files until the engine is renewed", "0: never; from the next start on"],
      memory_limit: ["Most of the device that computes", "Such as 6GiB"],
      ram_limit: ["Most of the main memory", "Such as 4GiB"],
      keep: ["Never give up", "What must not be changed to save memory"],
      precision: ["How weights are held", "f32, f16, bf16, q8_0 …; not set: as stored"],
      hf_endpoint: ["Where models are downloaded from", "An address; not set: huggingface.co"],
      proxy: ["Proxy for downloads", "Such as http://proxy:3128"],
      offline: ["Never use the network", null],
      threads: ["Threads to compute with", "A number from 1; not set: one per core"],
      priority: ["Priority of the engine", "Low leaves the processor to other programs; from the next start on"],
    } satisfies Record<PreferenceName, [string, string | null]>,
    folders: "Folders of models",
    help: "Help with problems",
    diagnostics: "Copy diagnostics",
    diagnosticsHint: "Program, engine, cards, models and settings for a bug report. Nothing of your recordings and their text.",
    diagnosticsShow: "What is in it",
    copied: "The diagnostics were copied.",
  },

  connections: {
    title: "What the network was used for",
    none: "It was never used.",
    at: "Time",
    host: "Host",
    bytes: "Amount",
    why: "Why",
    unfinished: "not finished",
    again: "Look again",
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
    pause: "Pause the queue",
    resume: "Go on",
    paused: "Paused: nothing new is begun",
    saveAll: (files: number) => `Save all ${files}`,
    removeSaved: "Remove saved",
  },

  decoding: {
    more: "More…",
    label: "More settings",
    beams: "Search for the likeliest text",
    beamsHint: "More takes longer",
    beamsOf: (beams: number) => (beams === 1 ? "quick" : `${beams} at once`),
    severalLanguages: "Several languages in one recording",
    words: "Names and words to expect",
    wordsHint: "Divided by commas",
  },

  own: {
    title: "Settings of this recording",
    differ: "Its own settings",
    same: "As set above",
    reset: "Use those set above",
    all: (files: number) => (files === 1 ? "Use these for the 1 that waits" : `Use these for all ${files} that wait`),
  },

  presets: {
    title: "Presets",
    none: "Keep the settings above under a name to use them again.",
    name: "Name",
    save: "Save",
    apply: (name: string) => `Use ${name} for new recordings`,
    applyToWaiting: (name: string) => `All that wait: use ${name}`,
    waiting: "All that wait",
    use: "Use",
    rename: (name: string) => `Rename ${name}`,
    delete: (name: string) => `Delete ${name}`,
    missing: (model: string) => `Its model is not there: ${model}`,
    choose: "Use a preset…",
    saved: (name: string) => `The settings were saved as ${name}.`,
  },

  watched: {
    title: "Watched folders",
    hint: "New recordings in them are transcribed as soon as they are whole, and their text is written. What was transcribed once is not taken again.",
    none: "No folder is watched.",
    add: "Watch a folder…",
    present: "Also transcribe what lies in it now",
    formats: "Texts are written as",
    noFormat: "Texts are not written.",
    place: "Where to",
    beside: "Beside the recording",
    choose: "Choose a folder…",
    stop: (folder: string) => `Watch no longer: ${folder}`,
    stopShort: "Watch no longer",
    line: (folders: number) => (folders === 1 ? "1 folder is watched" : `${folders} folders are watched`),
    gone: (folders: number) => (folders === 1 ? "1 watched folder can’t be read" : `${folders} watched folders can’t be read`),
    from: "from a watched folder",
    dialog: "Choose a folder to watch",
    placeDialog: "Choose a folder for the texts",
  },

  work: {
    title: "While it works",
    stayAwake: "Keep the machine awake",
    stayAwakeHint: "It does not go to sleep by itself while recordings are transcribed; the screen may go dark.",
    notify: "Say when all is done",
    notifyHint: "A message of the desktop while this window is not in front. It names no recording and no text.",
    ended: (finished: number) => (finished === 1 ? "1 recording is done" : `${finished} recordings are done`),
    failed: (failed: number) => (failed === 0 ? "" : failed === 1 ? "1 failed" : `${failed} failed`),
  },

  order: {
    label: "Order",
    given: "As given",
    shortest: "Shortest first",
    retryFailed: (files: number) => `Try ${files} failed again`,
  },

  demonstration: {
    title: "Only the demonstration model is here",
    text: "It is tiny and shows how Steno works. The text it writes is not reliable. Your own recordings wait for a real Whisper model.",
    waiting: (files: number) => (files === 1 ? "1 recording waits." : `${files} recordings wait.`),
    choose: "Import from disk…",
    download: (model: string) => `Download ${model}`,
    looking: "Looking for the model that suits this computer…",
    downloadHint: (size: string, time: string) => `${size}, about ${time} at 50 Mbit/s. It is downloaded once; your recordings stay on this computer.`,
    downloading: (model: string) => `${model} is on its way. Your recordings begin as soon as it is here.`,
    offline: "The network is switched off in the settings, so that nothing can be downloaded.",
    chosen: "The demonstration model is chosen",
    take: (model: string) => `Use ${model}`,
    others: "Other models…",
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
    moveFile: (name: string) => `Move ${name}: drag, or use the arrow keys`,
    parts: "Parts of this recording",
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
    again: "Transcribe again",
    againAt: (from: string, to: string) => `Transcribe ${from}–${to} again`,
    againRuns: "Being transcribed again …",
    goTo: (from: string, to: string) => `Show the text at ${from}–${to}`,
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
    as: "Export…",
    format: "Formats",
    formats: {
      txt: "Text, one segment per line",
      srt: "Subtitles (SubRip)",
      vtt: "Subtitles (WebVTT)",
      json: "Everything, for other programs",
      md: "Markdown, in paragraphs",
      html: "A page for the browser",
      docx: "For Word and LibreOffice",
      csv: "A table for spreadsheets",
      tsv: "A table as openai/whisper writes it",
      whisperx: "json as WhisperX writes it",
    } satisfies Record<Format, string>,
    several: (formats: number) => `Save ${formats} files`,
    subtitles: "Subtitles",
    shaped: "Short lines that fit a screen",
    wordTimes: "Mark when each word is said (vtt)",
    elsewhere: "Save as…",
    besideRecording: "Save beside the recording",
    done: (file: string) => `Saved: ${file}`,
    doneAll: (files: number) => (files === 1 ? "1 file was saved." : `${files} files were saved.`),
    replace: "Replace it",
  },

  closing: {
    title: "Close Steno?",
    unfinished: (files: number) =>
      files === 1 ? "1 recording is not finished; it goes on at the next start." : `${files} recordings are not finished; they go on at the next start.`,
    unsaved: (files: number) =>
      files === 1 ? "1 transcript was not saved; its text will be lost." : `${files} transcripts were not saved; their text will be lost.`,
    stay: "Stay",
    close: "Close",
  },

  dialogs: {
    files: "Choose recordings",
    model: "Choose a model’s folder",
    modelFile: "Choose a model’s file",
    save: "Save the transcript",
    folder: "Choose a folder for the transcripts",
    chart: "Save the memory of this job",
  },

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
