import type { Text } from "./en";
import { de } from "./de";
import { en } from "./en";
import { setLocale } from "../locale.svelte";

const texts = { en, de };
export type Language = keyof typeof texts;

/** In a browser, for whoever works on the page: `?lang=de`. */
const forced = import.meta.env.DEV ? new URLSearchParams(location.search).get("lang") : null;

/** The first of the user's languages that there is. */
function ofTheSystem(): Language {
  const wanted = [forced, ...navigator.languages].map((tag) => tag?.slice(0, 2) ?? "");
  return wanted.find((tag): tag is Language => tag in texts) ?? "en";
}

let current = $state<Language>(ofTheSystem());

/** Null: what the system says. */
export function speak(wanted: Language | null): void {
  current = forced ? ofTheSystem() : (wanted ?? ofTheSystem());
  // Names of languages and numbers follow; a region of the same language is kept.
  const tag = navigator.languages.find((tag) => tag.startsWith(current)) ?? current;
  setLocale(tag);
  document.documentElement.lang = current;
}

/** Everything the window says, in the language in force; follows when that changes. */
export const t: Text = new Proxy(en, { get: (_, key) => Reflect.get(texts[current], key) as unknown });
