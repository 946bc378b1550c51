import { afterEach, describe, expect, test, vi } from "vitest";
import type { Job, Progress, Suspicion } from "../generated/contract";
import { locale, type Language } from "../locale.svelte";
import { speak, texts } from "./current.svelte";
import { de } from "./de";
import { en, type Text } from "./en";
import { es } from "./es";
import { fr } from "./fr";

/** Texts that are as in English on purpose: a name, or the same word. */
const SAME: Record<Exclude<Language, "en">, string[]> = {
  de: ["app", "voices.name"],
  es: ["app", "transfers.speed", "memory.ours", "preferences.switches.false", "preferences.priorities.normal"],
  fr: ["app", "editing.chosen", "transfers.speed", "memory.ours", "memory.parts.caches", "memory.parts.activations", "memory.stages.transcribe"],
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

/** Every text as it reads, the ones that functions make too. */
function said(text: Text): Map<string, string> {
  const fixed = leaves(text).flatMap(([key, value]): [string, string][] => {
    if (typeof value === "string") return [[key, value]];
    if (typeof value !== "function" || SPECIAL.includes(key)) return [];
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
  return new Map([...fixed, ...states, ...stages, ["doubtful", text.transcript.doubtful(Object.keys(en.suspicion) as Suspicion[])]]);
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
