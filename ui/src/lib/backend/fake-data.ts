import type { EngineInfo, Job, ModelChoice, PlaySource, WorkersView } from "../generated/contract";

export const ENGINE: EngineInfo = {
  version: "0.1.0",
  backend: "cpu",
  devices: [{ id: "cpu", name: "Quad-core processor", total_bytes: 16 * 2 ** 30, free_bytes: 11 * 2 ** 30 }],
  cpu_reason: "There is no NVIDIA driver on this machine.",
  threads: 4,
  ffmpeg: false,
};

export const MODELS: ModelChoice[] = [
  { id: 0, name: "starter", folder: "/usr/share/steno/models/starter-whisper", demonstration: true, note: null, removable: false },
  { id: 1, name: "whisper-small", folder: "/home/me/models/whisper-small", demonstration: false, note: null, removable: true },
  { id: 2, name: "whisper-medium.en", folder: "/home/me/models/whisper-medium.en", demonstration: false, note: null, removable: false },
  { id: 3, name: "whisper-large-v3", folder: "/home/me/models/whisper-large-v3", demonstration: false, note: null, removable: false },
  { id: 4, name: "copied-halfway", folder: "/home/me/models/copied-halfway", demonstration: false, note: null, removable: false },
];

export const FILES = [
  "/home/me/Interviews/Interview with the harbour master.m4a",
  "/home/me/Interviews/Lecture 2, questions.mp3",
  "/home/me/Interviews/Sprachnotiz über die Fähre.ogg",
  "/home/me/Interviews/meeting-2026-11-03-regional-planning-committee-second-session-raw-recording.mkv",
  "/home/me/Interviews/Agenda.pdf",
];

export const SENTENCES = [
  "Thank you for taking the time on such a busy morning.",
  "It is never quiet here, so any morning will do.",
  "How long have you been in charge of the harbour?",
  "Nineteen years this spring. Before that I was on the tugs, and before that on the ferries between the islands, which is where I learned to read the weather without looking at a screen.",
  "What has changed most in that time?",
  "The size of everything.",
  "Of everything, yes.",
  "When I began, two ships of a hundred metres filled the northern quay, and people came to look at them.",
];

/** A recording as it is when it has just been added. */
export function recording(id: number, path: string, sample: boolean): Job {
  const cut = path.lastIndexOf("/");
  return {
    id,
    name: path.slice(cut + 1),
    folder: path.slice(0, cut),
    bytes: 4_200_000 + id * 1_000_000,
    sample,
    watched: false,
    own: null,
    part: { track: null, from: null, to: null },
    tracks: [],
    state: "waiting",
    again: [],
    progress: null,
    duration: 60,
    format: "isomp4, aac",
    model: null,
    device: null,
    demonstration: false,
    failure: null,
    saved: null,
    not_stored: null,
    not_saved: null,
    unsaved: null,
    starts_over: false,
    fit_warning: null,
    missing: false,
    truncated_at: null,
    speakers: false,
    reached: null,
    elsewhere: null,
  };
}

/** A WAV file of 8 bits in which nothing is heard, as an address. */
function silent(seconds: number): string {
  const RATE = 3000;
  const samples = Math.ceil(seconds * RATE);
  const number = (value: number, bytes: number) => String.fromCharCode(...Array.from({ length: bytes }, (_, at) => (value >> (8 * at)) & 255));
  const format = `${number(1, 2)}${number(1, 2)}${number(RATE, 4)}${number(RATE, 4)}${number(1, 2)}${number(8, 2)}`;
  const file = `RIFF${number(36 + samples, 4)}WAVEfmt ${number(16, 4)}${format}data${number(samples, 4)}${"\x80".repeat(samples)}`;
  return `data:audio/wav;base64,${btoa(file)}`;
}

/** Nothing to be heard, and a waveform to be seen. */
export const silence = (seconds: number): PlaySource => ({
  audio: silent(seconds),
  peaks: `data:application/json,${JSON.stringify({
    seconds: 0.1,
    done: true,
    values: Array.from({ length: 600 }, (_, at) => Math.round(70 * Math.abs(Math.sin(at / 7) * Math.sin(at / 61)))).flatMap((peak) => [-peak, peak]),
  })}`,
  pictures: `data:application/json,${JSON.stringify({ pictures: false, missing: false })}`,
  speed: "data:,",
  seconds,
});

/** A queue of two workers, as `steno cluster` would print it. */
export const WORKERS: WorkersView = {
  waiting: 12, running: 1, finished: 340, failed: 2, jobs_per_minute: 3.5, speed: 21, left: 210,
  workers: [
    { name: "studio", pid: 4211, device: "NVIDIA RTX A4000", free: 14 * 2 ** 30, total: 16 * 2 ** 30, models: ["whisper-small", "whisper-medium"], finished: 280, speed: 18, recording: "tape 7.wav", position: 95 },
    { name: "attic", pid: 812, device: "the CPU", free: 6 * 2 ** 30, total: 8 * 2 ** 30, models: ["whisper-small"], finished: 60, speed: null, recording: null, position: 0 },
  ],
  unplaced: [{ model: "whisper-large-v3", waiting: 4, needs: 6 * 2 ** 30 }],
};
