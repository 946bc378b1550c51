import { afterEach, describe, expect, test, vi } from "vitest";
import { ERROR_CODES, NOTICE_CODES, type Checkpoint, type Job, type NoticeMessage, type Progress, type Stage, type Suspicion, type Trouble } from "../generated/contract";
import { locale, type Language } from "../locale.svelte";
import { speak, texts } from "./current.svelte";
import { de } from "./de";
import { en, type Text } from "./en";
import { es } from "./es";
import { fr } from "./fr";
import { detailOf, noticeText } from "./notice";

/** Texts that are as in English on purpose: a name, or the same word. */
const SAME: Record<Exclude<Language, "en">, string[]> = {
  de: ["app", "voices.name", "told.details"],
  es: ["app", "transfers.speed", "memory.ours", "preferences.switches.false", "preferences.priorities.normal"],
  fr: ["app", "editing.chosen", "learning.corrected", "transfers.speed", "memory.ours", "memory.parts.caches", "memory.parts.activations", "memory.stages.transcribe"],
  zh: ["app", "memory.ours"],
  ja: ["app", "memory.ours"],
};
const others = Object.keys(SAME) as (keyof typeof SAME)[];

function leaves(texts: object, path = ""): [string, unknown][] {
  return Object.entries(texts).flatMap(([key, value]): [string, unknown][] =>
    typeof value === "object" && value !== null ? leaves(value, `${path}${key}.`) : [[`${path}${key}`, value]],
  );
}

/** Told numbers that are found again wherever they are said. */
const NUMBERS = [1, 11, 22, 33];
const SPECIAL = ["state", "stage", "transcript.doubtful"];

const MB = 2 ** 20;
const AT = { stage: "transcribe", trouble: "out_of_memory" } as const satisfies { stage: Stage; trouble: Trouble };

/** Notices of every code; of several kinds where they read differently. */
const NOTICES: NoticeMessage[] = [
  { code: "memory.elevated", data: { kind: "gpu", share: 0.72, relief: { by: "others", bytes: 5 * 1024 * MB } } },
  { code: "memory.elevated", data: { kind: "host", share: 0.72, relief: { by: "batch", windows: 8 } } },
  { code: "memory.critical", data: { kind: "gpu", share: 0.88, relief: { by: "precision", precision: "q8_0" } } },
  { code: "memory.critical", data: { kind: "host", share: 0.88, relief: { by: "model", model: "whisper-small" } } },
  { code: "memory.critical", data: { kind: "host", share: 0.88, relief: { by: "nothing" } } },
  { code: "memory.occupied", data: { kind: "gpu", used: 900 * MB, total: 8192 * MB, ours: 300 * MB, others: 600 * MB, programs: [{ name: "game", pid: 8, bytes: 500 * MB }, { name: null, pid: 9, bytes: 100 * MB }] } },
  { code: "memory.occupied", data: { kind: "host", used: 900 * MB, total: 8192 * MB, ours: 300 * MB, others: 600 * MB, programs: [] } },
  { code: "memory.not_recovered", data: { stage: "transcribe", taken: 900 * MB, share: 0.4, remaining: 540 * MB, fragmented: true } },
  { code: "memory.not_recovered", data: { stage: "diarize", taken: 900 * MB, share: 0.4, remaining: 540 * MB, fragmented: false } },
  { code: "memory.release_failed", data: { stage: null, detail: "CUDA_ERROR" } },
  { code: "memory.leak", data: { grown: 133 * MB, files: 3 } },
  { code: "memory.fragmentation", data: { sign: { by: "idle", allocated: 200 * MB, reserved: 900 * MB } } },
  { code: "memory.fragmentation", data: { sign: { by: "refused", asked: 200 * MB, free: 900 * MB } } },
  { code: "memory.spike", data: { before: "before_transcribe", after: "after_transcribe", peak: 900 * MB, held: 200 * MB } },
  { code: "memory.unavailable", data: { detail: "no driver" } },
  { code: "memory.retried", data: { stage: "speech_model", trouble: "refused" } },
  { code: "memory.engine_renewed", data: { stage: "transcribe", trouble: "died" } },
  { code: "memory.batch_halved", data: { ...AT, speakers: false, from: 8, to: 4 } },
  { code: "memory.batch_halved", data: { stage: "diarize", trouble: "device_error", speakers: true, from: 8, to: 4 } },
  { code: "memory.precision_lowered", data: { stage: "adapt", trouble: "out_of_memory", model: "small", from: "f32", to: "bf16" } },
  { code: "memory.precision_lowered", data: { ...AT, model: "large-v3", from: "f16", to: "q8_0" } },
  { code: "memory.smaller_model", data: { ...AT, from: "large-v3", to: "whisper-small" } },
  { code: "memory.moved_to_cpu", data: { stage: "transcribe", trouble: "killed" } },
  { code: "memory.moved_to_cpu", data: { stage: "speech_model", trouble: "no_code" } },
  { code: "memory.speakers_skipped", data: { stage: "speaker_model", trouble: "out_of_memory" } },
  { code: "memory.gave_up", data: { ...AT, kept: [] } },
  { code: "memory.gave_up", data: { ...AT, kept: ["model", "precision", "gpu", "speakers"] } },
  { code: "memory.will_not_fit", data: { model: "large-v3", precision: "f16", detail: "It needs more." } },
  { code: "audio.truncated", data: { decoded: 61, declared: 600, detail: null } },
  { code: "audio.truncated", data: { decoded: 61, declared: null, detail: "invalid data" } },
  { code: "audio.damaged", data: { silenced: true, detail: null } },
  { code: "audio.damaged", data: { silenced: false, detail: null } },
  { code: "audio.phase", data: { channel: 2, decibels: 41.4 } },
  { code: "audio.mono", data: {} },
  { code: "audio.several_tracks", data: { tracks: 3, taken: 1, language: "deu" } },
  { code: "audio.several_tracks", data: { tracks: 3, taken: 1, language: null } },
  { code: "model.of_language", data: { language: "de", probability: 0.975, model: "parakeet" } },
  { code: "model.language_not_identified", data: { detail: "The file can't be read." } },
  { code: "speakers.maybe_known", data: { speaker: "S 1", person: "Ada" } },
  { code: "speakers.voices_unreadable", data: { detail: "damaged" } },
  { code: "transcript.gaps", data: { gaps: 1 } },
  { code: "transcript.gaps", data: { gaps: 7 } },
  { code: "transcript.discarded", data: { passages: 1 } },
  { code: "transcript.discarded", data: { passages: 7 } },
  { code: "transcript.again", data: { from: 61, to: 90, model: "large-v3" } },
  { code: "transcript.again_failed", data: { error: "disk_full", detail: "The disk is full." } },
  { code: "engine.restarted", data: { error: "engine_failed", detail: "It ended." } },
  { code: "engine.window_skipped", data: { times: 2 } },
  { code: "device.waiting", data: { device: "cpu", pid: 12 } },
  { code: "device.waiting", data: { device: "cuda:0", pid: null } },
  { code: "device.unusable", data: { device: "cuda:0", problem: { by: "capability", card: "GTX 1080", found: "6.1", built_for: ["7.5", "8.0"] } } },
  { code: "device.unusable", data: { device: "cuda:0", problem: { by: "code", detail: "CUDA_ERROR_INVALID_PTX" } } },
  { code: "device.unusable", data: { device: "cuda:1", problem: { by: "result", operation: "reduce" } } },
  { code: "journal.unavailable", data: { detail: "The disk is full." } },
  { code: "journal.file_changed", data: {} },
  { code: "history.unavailable", data: { detail: "The disk is full." } },
  { code: "history.damaged", data: { detail: "not a database" } },
  { code: "export.failed", data: { error: "disk_full", file: "/talk.srt", detail: "The disk is full." } },
  { code: "export.failed", data: { error: "disk_full", file: null, detail: "The disk is full." } },
];

const say = (text: Text, { code, data }: NoticeMessage): string => (text.told.notices[code] as (data: unknown) => string)(data);

/** Every text as it reads, the ones that functions make too. */
function said(text: Text): Map<string, string> {
  const fixed = leaves(text).flatMap(([key, value]): [string, string][] => {
    if (typeof value === "string") return [[key, value]];
    if (typeof value !== "function" || SPECIAL.includes(key) || key.startsWith("told.notices.")) return [];
    const say = value as (...given: number[]) => string;
    return [[`${key}()`, say(...NUMBERS.slice(1))], [`${key}(1)`, say(...NUMBERS)]];
  });
  const states = (["held", "waiting", "running", "stopping", "pausing", "paused", "finished", "failed", "cancelled"] as const).map((state): [string, string] => [
    `state ${state}`,
    text.state({ state, progress: null } as Job),
  ]);
  const stages = (["speech_model", "preprocess", "transcribe", "diarize", "align"] as const).map((stage): [string, string] => [
    `stage ${stage}`,
    text.stage({ stage } as Progress),
  ]);
  // Numbers and lists as the language writes them.
  speak(text.language);
  const notices = NOTICES.map((notice, index): [string, string] => [`notice ${notice.code} ${index}`, say(text, notice)]);
  return new Map([...fixed, ...states, ...stages, ...notices, ["doubtful", text.transcript.doubtful(Object.keys(en.suspicion) as Suspicion[])]]);
}

afterEach(() => {
  vi.restoreAllMocks();
  speak(null);
});

describe.each(others)("%s", (language) => {
  const text = texts[language];

  test("says everything that English says, and not in English", () => {
    const same = new Set(SAME[language]);
    const ours = new Map(leaves(text));
    const english = leaves(en);
    expect([...ours.keys()].sort()).toEqual(english.map(([key]) => key).sort());
    for (const [key, value] of english) {
      if (value === null) expect(ours.get(key), key).toBeNull();
      else if (same.has(key)) expect(String(ours.get(key)), `${key} differs: allow it no longer`).toBe(String(value));
      // What is said with a number or a name is said by a function.
      else expect(String(ours.get(key)), key).not.toBe(String(value));
      expect(ours.get(key), key).not.toBe("");
    }
  });

  test("leaves out no number and no name that English tells", () => {
    const ours = said(text);
    for (const [key, value] of said(en)) {
      if (!key.endsWith("()")) continue;
      const told = NUMBERS.filter((number) => number > 1 && value.includes(String(number)));
      for (const number of told) expect(ours.get(key), key).toContain(String(number));
    }
  });
});

test("counted things have a form of their own for one, where the language has one", () => {
  for (const text of Object.values(texts)) {
    const inflected = ([en, de, es, fr] as Text[]).includes(text);
    for (const say of [text.drag, text.demonstration.waiting, text.transcript.gaps, text.closing.unfinished, text.watched.line]) {
      expect(say(1)).toContain("1");
      expect(say(5)).toContain("5");
      if (inflected) expect(say(1).replace("1", "5")).not.toBe(say(5));
    }
  }
  expect(fr.work.ended(0)).toBe("0 enregistrement terminé");
});

test("every code that the program knows has words in every language, with all figures, and none is English", () => {
  expect([...new Set(NOTICES.map(({ code }) => code))].sort()).toEqual([...NOTICE_CODES].sort());
  const english = new Map(NOTICES.map((notice) => [notice, say(en, notice)]));
  for (const [language, text] of Object.entries(texts)) {
    speak(language as Language);
    expect(Object.keys(text.told.notices).sort(), language).toEqual([...NOTICE_CODES].sort());
    expect(Object.keys(text.errors).sort(), language).toEqual([...ERROR_CODES].sort());
    expect(Object.keys(text.told.remedies).sort(), language).toEqual([...ERROR_CODES].sort());
    for (const notice of NOTICES) {
      const told = say(text, notice);
      expect(told, `${language} ${notice.code}`).not.toMatch(/undefined|NaN|null|\[object|\(e?s\)/);
      if (language !== "en") expect(told, notice.code).not.toBe(english.get(notice));
      // The page says it in these words, and not in the English ones that come with it.
      expect(noticeText({ told: notice, text: "In English." })).toBe(told);
    }
  }
  speak("de");
  const [, , critical] = NOTICES as [NoticeMessage, NoticeMessage, NoticeMessage];
  expect(noticeText({ told: critical, text: "" })).toMatch(/^Der Speicher der Grafikkarte ist fast voll \(88\s%\)/);
  expect(noticeText({ told: null, text: "An old note." })).toBe("An old note.");
  expect(detailOf({ told: { code: "memory.unavailable", data: { detail: "no driver" } }, text: "" })).toBe("no driver");
  expect(detailOf({ told: { code: "audio.mono", data: {} }, text: "" })).toBeNull();
});

test("no text counts by brackets", () => {
  for (const text of Object.values(texts)) {
    for (const [key, value] of said(text)) expect(value, key).not.toMatch(/\(e?s\)/);
  }
});

test("a button's name for screen readers contains what the button says", () => {
  for (const text of [texts.es, texts.fr, texts.zh, texts.ja]) {
    for (const [name, seen] of [
      [text.presets.apply("x"), text.presets.use],
      [text.presets.applyToWaiting("x"), text.presets.waiting],
      [text.watched.stop("x"), text.watched.stopShort],
      [text.transcript.againAt("0:01", "0:02"), text.transcript.again],
    ] as const) {
      expect(name.toLowerCase()).toContain(seen.toLowerCase());
    }
  }
});

/** A class of characters. */
const JAPANESE = "[\\p{Script=Han}\\p{Script=Hira}\\p{Script=Kana}]";

describe("is set as the language sets it", () => {
  test.each([
    ["fr", "a narrow no-break space before : ; ! ?", /[^\u202f:/][:;!?](?=\s|$)/],
    ["fr", "curled apostrophes", /'/],
    ["es", "opened questions and exclamations", /^[^¿]*\?|^[^¡]*!/],
    ["zh", "full-width punctuation", /\p{Script=Han}\s?(?:[,:;!?()]|\.(?!\w))|[,:;!?]\s?\p{Script=Han}/u],
    ["zh", "a space between Han characters and others", /\p{Script=Han}[A-Za-z0-9]|[A-Za-z0-9]\p{Script=Han}/u],
    ["ja", "full-width punctuation", new RegExp(`${JAPANESE}[,.:;!?()]`, "u")],
    ["ja", "no space between Japanese and other characters", new RegExp(`${JAPANESE} [A-Za-z0-9]|[A-Za-z0-9] ${JAPANESE}`, "u")],
  ] as const)("%s: %s", (language, _, fault) => {
    const faulty = [...said(texts[language])].filter(([, value]) => fault.test(value));
    expect(faulty).toEqual([]);
  });
});

test.each([
  [["fr-CA", "en"], "fr", "fr-CA"],
  [["nl", "es-419"], "es", "es-419"],
  [["ja"], "ja", "ja"],
  [["zh-CN"], "zh-Hans", "zh-CN"],
  // Simplified characters with names of languages in traditional ones would be neither.
  [["zh-TW", "zh", "en"], "zh-Hans", "zh"],
  [["zh-Hant-HK"], "zh-Hans", "zh-Hans"],
  [["pt", "fil"], "en", "en"],
])("a system that speaks %j gets %s, with numbers of %s", (languages, page, numbers) => {
  vi.spyOn(navigator, "languages", "get").mockReturnValue(languages);
  speak(null);
  expect([document.documentElement.lang, locale()]).toEqual([page, numbers]);
});
