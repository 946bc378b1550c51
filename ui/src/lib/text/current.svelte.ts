import type { Text } from "./en";
import { de } from "./de";
import { en } from "./en";
import { es } from "./es";
import { fr } from "./fr";
import { ja } from "./ja";
import { zh } from "./zh";
import { setLocale, type Language } from "../locale.svelte";

export type { Language };

export const texts: Record<Language, Text> = { en, de, es, fr, zh, ja };

/** In a browser, for developers of the page: `?lang=de`. */
const forced = import.meta.env.DEV ? new URLSearchParams(location.search).get("lang") : null;

const languageOf = (tag: string): string => tag.split("-")[0] ?? "";

/** The first of the user's languages that there is. */
function ofTheSystem(): Language {
  const wanted = [forced ?? "", ...navigator.languages].map(languageOf);
  return wanted.find((language): language is Language => language in texts) ?? "en";
}

let current = $state<Language>(ofTheSystem());

/** Null: what the system says. */
export function speak(wanted: Language | null): void {
  current = forced ? ofTheSystem() : (wanted ?? ofTheSystem());
  // Han characters are drawn as the language has them; of the Chinese ones the texts have the simplified.
  const written = current === "zh" ? "zh-Hans" : current;
  // Names of languages and numbers follow; a region of the same language is kept.
  setLocale(navigator.languages.find((tag) => languageOf(tag) === current && isWrittenAs(tag, written)) ?? written);
  document.documentElement.lang = written;
}

function isWrittenAs(tag: string, written: string): boolean {
  try {
    return new Intl.Locale(tag).maximize().script === new Intl.Locale(written).maximize().script;
  } catch {
    return false;
  }
}

/** Everything the window says, in the language in force; follows when that changes. */
export const t: Text = new Proxy(en, { get: (_, key) => Reflect.get(texts[current], key) as unknown });
