import type { CardProblem, Checkpoint, ErrorCode, NoticeMessage, Pinned, Relief, Stage, Trouble } from "../../generated/contract";
import { clock, languageName, list, memorySize, percent, round } from "../../ui/format";

/** What each notice says, made of its figures. */
export type NoticeTexts = { [Code in NoticeMessage["code"]]: (data: Extract<NoticeMessage, { code: Code }>["data"]) => string };

/** What the engine and the program’s other parts tell by codes, in words. */
export interface EngineText {
  details: string;
  remedies: Record<ErrorCode, string>;
  checkpoints: Record<Checkpoint, string>;
  batch: (number: number) => string;
  notices: NoticeTexts;
}

const MOMENTS: Record<Stage, string> = {
  preprocess: "while the recording was read",
  speech_model: "while the model was loaded",
  transcribe: "during transcription",
  speaker_model: "while the speaker model was loaded",
  diarize: "while speakers were identified",
  align: "while words were aligned",
  embedding_model: "while the embedding model was loaded",
  embed: "while texts were embedded",
  adapt: "during the adaptation",
};

const TROUBLES: Record<Trouble, string> = {
  refused: "There was not enough memory",
  out_of_memory: "Memory ran out",
  died: "The engine ran out of memory and stopped",
  killed: "The system stopped the engine more than once",
  device_error: "The device failed",
  no_code: "The engine can’t compute on this graphics card",
};

const PINNED: Record<Pinned, string> = { model: "“Model”", precision: "“Precision”", gpu: "“Graphics card”", speakers: "“Speakers”" };

const happened = (trouble: Trouble, stage: Stage) => `${TROUBLES[trouble]} ${MOMENTS[stage]}`;
const step = (trouble: Trouble, stage: Stage, done: string) => `${happened(trouble, stage)}: ${done}`;

function cardProblem(problem: CardProblem): string {
  switch (problem.by) {
    case "capability":
      return `${problem.card} has compute capability ${problem.found}, and this engine is built for ${list(problem.built_for)}. Install an engine that is built for it.`;
    case "code":
      return `The NVIDIA driver does not accept this engine’s code (${problem.detail}). Update the driver, or install an engine that is built for this card.`;
    case "result":
      return `The operation “${problem.operation}” gave a wrong result. Update the NVIDIA driver, or install an engine that is built for this card.`;
  }
}

function relief(told: Relief): string {
  switch (told.by) {
    case "others":
      return `Other programs hold ${memorySize(told.bytes)}: closing one of them helps most.`;
    case "batch":
      return `A smaller batch (now ${told.windows}) needs less.`;
    case "precision":
      return `The same model in ${told.precision} needs less.`;
    case "model":
      return `A smaller model (${told.model}) needs less.`;
    case "nothing":
      return "Nothing has failed. If memory runs out, the job continues with less.";
  }
}

export const engine: EngineText = {
  details: "Details",
  batch: (number) => `Batch ${number}`,
  checkpoints: {
    pipeline_start: "Start of the job",
    before_preprocess: "Before reading the recording",
    after_preprocess: "After reading the recording",
    before_audio_release: "Before releasing audio buffers",
    after_audio_release: "After releasing audio buffers",
    before_speech_model_load: "Before loading the model",
    after_speech_model_load: "After loading the model",
    before_transcribe: "Before transcription",
    batch: "Batch",
    after_transcribe: "After transcription",
    before_decoding_release: "Before releasing decoding buffers",
    after_decoding_release: "After releasing decoding buffers",
    before_speech_model_release: "Before unloading the model",
    after_speech_model_release: "After unloading the model",
    before_speaker_model_load: "Before loading the speaker model",
    after_speaker_model_load: "After loading the speaker model",
    before_diarize: "Before identifying speakers",
    after_diarize: "After identifying speakers",
    before_waveform_release: "Before releasing the sound",
    after_waveform_release: "After releasing the sound",
    before_speaker_model_release: "Before unloading the speaker model",
    after_speaker_model_release: "After unloading the speaker model",
    before_align: "Before aligning words",
    after_align: "After aligning words",
    before_alignment_release: "Before releasing alignment buffers",
    after_alignment_release: "After releasing alignment buffers",
    before_embedding_model_load: "Before loading the embedding model",
    after_embedding_model_load: "After loading the embedding model",
    before_embed: "Before embedding texts",
    after_embed: "After embedding texts",
    before_embedding_release: "Before releasing embedding buffers",
    after_embedding_release: "After releasing embedding buffers",
    before_embedding_model_release: "Before unloading the embedding model",
    after_embedding_model_release: "After unloading the embedding model",
    before_adapt: "Before the adaptation",
    before_epoch: "Before epoch",
    after_epoch: "After epoch",
    after_adapt: "After the adaptation",
    before_adaptation_release: "Before releasing adaptation buffers",
    after_adaptation_release: "After releasing adaptation buffers",
    before_recovery: "Before recovering memory",
    after_recovery: "After recovering memory",
    before_trim: "Before releasing unused memory",
    after_trim: "After releasing unused memory",
    before_final_cleanup: "Before the final clean-up",
    final_cleanup: "Final clean-up",
  },
  notices: {
    "memory.elevated": ({ kind, share, relief: told }) =>
      `${kind === "gpu" ? "Memory of the graphics card" : "Main memory"} is ${percent(share)} full. ${relief(told)}`,
    "memory.critical": ({ kind, share, relief: told }) =>
      `${kind === "gpu" ? "Memory of the graphics card" : "Main memory"} is nearly full (${percent(share)}). ${relief(told)}`,
    "memory.occupied": ({ kind, used, total, ours, others, programs }) => {
      const named = programs.map(({ name, pid, bytes }) => `${name ?? "process"} [${pid}] ${memorySize(bytes)}`);
      return (
        `${memorySize(used)} of ${memorySize(total)} of ${kind === "gpu" ? "the graphics card’s memory" : "main memory"} was in use before anything was loaded: ` +
        `Steno ${memorySize(ours)}, other programs ${memorySize(others)}${named.length > 0 ? ` (${list(named)})` : ""}.`
      );
    },
    "memory.not_recovered": ({ stage, taken, share, remaining, fragmented }) =>
      `Memory used ${MOMENTS[stage]} was not fully released: ${percent(share)} of ${memorySize(taken)} was released, ${memorySize(remaining)} ` +
      (fragmented ? "is free but fragmented." : "is still in use."),
    "memory.release_failed": () => "Memory could not be released. The engine is restarted; the result is not affected.",
    "memory.leak": ({ grown, files }) => `Memory grew by ${memorySize(grown)} over the last ${files} files. The engine is restarted before the next file.`,
    "memory.fragmentation": ({ sign }) =>
      sign.by === "idle"
        ? `${memorySize(sign.reserved)} is reserved, but only ${memorySize(sign.allocated)} is in use: memory is fragmented. Steno releases what is unused, and restarts the engine if that does not help.`
        : `${memorySize(sign.asked)} could not be allocated although ${memorySize(sign.free)} was free: memory is fragmented. The engine is restarted.`,
    "memory.spike": ({ before, after, peak, held }) =>
      `Between “${engine.checkpoints[before]}” and “${engine.checkpoints[after]}” memory rose to ${memorySize(peak)} for a moment and fell back to ${memorySize(held)}. A smaller batch reduces such peaks.`,
    "memory.unavailable": () => "Memory use can’t be measured.",
    "memory.retried": ({ stage, trouble }) => step(trouble, stage, "unused memory was released, and the same step is retried. The result stays the same."),
    "memory.engine_renewed": ({ stage, trouble }) =>
      step(trouble, stage, "the engine was restarted, and the same step is retried. The result stays the same."),
    "memory.batch_halved": ({ stage, trouble, speakers, from, to }) =>
      step(trouble, stage, `the ${speakers ? "speaker batch" : "batch"} was halved from ${from} to ${to}. It takes longer; the result stays the same.`),
    "memory.precision_lowered": ({ stage, trouble, model, from, to }) =>
      step(trouble, stage, `${model} continues in ${to} instead of ${from}. ${stage === "adapt" ? "What is learned may differ a little." : "Some words may come out differently from here on."}`),
    "memory.smaller_model": ({ stage, trouble, from, to }) =>
      step(trouble, stage, `${to} continues in place of ${from}. Expect more mistakes from here on.`),
    "memory.moved_to_cpu": ({ stage, trouble }) => step(trouble, stage, "the job continues on the CPU. It takes several times as long from here on."),
    "memory.speakers_skipped": ({ stage, trouble }) => step(trouble, stage, "speakers are not identified. The transcript will not say who speaks."),
    "memory.gave_up": ({ stage, trouble, kept }) =>
      `${happened(trouble, stage)}, and nothing smaller is left to try. Close other programs, or ` +
      (kept.length === 0 ? "choose a smaller model." : `clear ${list(kept.map((one) => PINNED[one]))} under “Always keep” in the settings.`),
    "memory.will_not_fit": ({ model, precision }) => `${model} (${precision}) does not fit into the free memory.`,
    "audio.truncated": ({ decoded, declared }) =>
      `The file is damaged or cut off: only ${clock(decoded)}${declared === null ? "" : ` of ${clock(declared)}`} could be decoded.`,
    "audio.damaged": ({ silenced }) => `Parts of the file are damaged${silenced ? "; there is silence in their place" : ""}.`,
    "audio.phase": ({ channel, decibels }) =>
      `The channels cancel each other out: mixed, they would be ${round(decibels)} dB quieter. Only channel ${channel} is transcribed.`,
    "audio.mono": () => "The recording has only one channel, which is transcribed.",
    "audio.several_tracks": ({ tracks, taken, language }) =>
      `The file has ${tracks} audio tracks; track ${taken + 1}${language === null ? "" : ` (${languageName(language)})`} is transcribed.`,
    "speakers.maybe_known": ({ speaker, person }) => `${speaker} may be ${person}. Listen, and rename ${speaker} if that is right.`,
    "model.of_language": ({ language, probability, model }) =>
      `The language is ${languageName(language)} (${percent(probability)}), so the model ${model} transcribes this recording.`,
    "model.language_not_identified": () => "The language could not be identified, so the chosen model transcribes.",
    "speakers.voices_unreadable": () => "The known voices could not be read. Speakers have numbers instead of names.",
    "transcript.gaps": ({ gaps }) => (gaps === 1 ? "In 1 place, more than 2 s of speech has no text." : `In ${gaps} places, more than 2 s of speech has no text.`),
    "transcript.discarded": ({ passages }) =>
      passages === 1 ? "1 passage of text without speech was left out." : `${passages} passages of text without speech were left out.`,
    "transcript.again": ({ from, to, model }) => `The part from ${clock(from)} to ${clock(to)} was transcribed again with the model ${model}.`,
    "transcript.again_failed": () => "This part could not be transcribed again.",
    "engine.restarted": () => "The engine stopped unexpectedly and was restarted. Transcription continues where it stopped.",
    "engine.window_skipped": ({ times }) => `The engine stopped here ${times} times, so this passage is skipped.`,
    "device.waiting": ({ device }) => `Another Steno is using ${device === "cpu" ? "the CPU" : device}. This recording is next.`,
    "device.unusable": ({ device, problem }) => `${device} is not used; Steno uses the CPU instead. ${cardProblem(problem)}`,
    "journal.unavailable": () => "Progress can’t be saved. If Steno is closed now, this recording starts again from the beginning.",
    "journal.file_changed": () => "The recording has changed since it was interrupted, so it starts again from the beginning.",
    "history.unavailable": () => "The transcript is not in the history: it can be saved, but not edited.",
    "history.damaged": () => "Only the beginning of this transcript could be read.",
    "export.failed": ({ file }) => `The transcript was not saved${file === null ? "" : `: ${file}`}.`,
  },
  remedies: {
    file_not_found: "It may have been moved, renamed or deleted, or its disk is not connected.",
    folder_not_found: "It may have been moved, renamed or deleted, or its disk is not connected. Steno keeps checking.",
    file_unreadable: "Check the permissions of the file and its disk.",
    not_a_file: "Choose a recording or a folder.",
    file_empty: "It may not have been copied completely.",
    file_incomplete: "Copy the file again from its source: the index at its end is missing. A recording that was interrupted needs a program that repairs it.",
    no_recordings: "Choose a folder with audio or video files.",
    no_audio_track: "Choose a file with sound.",
    no_such_track: "Choose another audio track.",
    unknown_format: "Choose an audio or video file.",
    unsupported_codec: "Convert the recording to WAV or FLAC, or install ffmpeg.",
    needs_ffmpeg: "Install ffmpeg, or convert the recording to WAV or FLAC.",
    audio_broken: "Copy the file again from its source, or convert it to WAV or FLAC.",
    no_voice: "Choose a recording with more speech of this person.",
    model_not_found: "Download a model or choose another one.",
    model_invalid: "Download or import the model again.",
    model_unsupported: "Choose a Whisper model.",
    language_unknown: "Choose another language, or a model for many languages.",
    bad_settings: "Check the settings.",
    name_taken: "This name is already used. Choose another one.",
    name_missing: "Enter a name.",
    recording_gone: "Add the recording again.",
    transcript_gone: "Open it from the history.",
    bad_pattern: "Correct the expression, or search for plain text.",
    device_unavailable: "Choose another device or update its driver.",
    out_of_memory: "Close other programs, or choose a smaller model.",
    network_off: "Allow network access in the settings.",
    network_failed: "Check the connection and try again.",
    download_refused: "If the model requires an account, accept its terms on its page and set HF_TOKEN to your token.",
    server_refused: "Enter a token of the other machine in the settings.",
    server_busy: "Steno tries again automatically.",
    recording_refused: "Allow larger recordings on the other machine, or transcribe it on this computer.",
    model_corrupt: "Download the model again.",
    model_in_use: "Wait until the other program has finished with it.",
    disk_full: "Free some disk space and try again.",
    output_exists: "Replace it, or save elsewhere.",
    output_unwritable: "Choose another folder, or check the permissions of this one.",
    output_name_too_long: "Choose a shorter name, or a shorter file name template in the settings.",
    engine_not_found: "Install Steno again: a part of it is missing.",
    engine_failed: "Try again. If it fails again, copy the diagnostics in the settings and report the problem.",
    engine_silent: "Try again. If it happens again, close other programs or choose a smaller model.",
    no_microphone: "Connect a microphone, and install pw-record (PipeWire), parecord (PulseAudio) or arecord (ALSA).",
    no_embedding_model: "Download a model for the search by meaning on the Models page.",
    recording_too_short: "If the text needs chapters, add them by hand.",
    one_subject: "If the text needs chapters, add them by hand.",
    no_chapters: "Find the chapters above the text first, or add them by hand.",
    no_speakers: "Identify the speakers above the text first.",
    player_failed: "Play again, or convert the recording to WAV or FLAC first.",
    protocol_mismatch: "Install Steno again: its parts are of different versions.",
    cancelled: "It was stopped before it finished.",
    internal: "Try again. If it fails again, copy the diagnostics in the settings and report the problem.",
  },
};
