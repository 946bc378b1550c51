import type { Text } from "./en";
import { de } from "./de";
import { en } from "./en";

const texts: Record<string, Text> = { en, de };

/** The first of the user's languages that there is. */
export const language = navigator.languages.map((tag) => tag.slice(0, 2)).find((tag) => tag in texts) ?? "en";

export const t: Text = texts[language] ?? en;
