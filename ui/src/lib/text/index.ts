import type { Text } from "./en";
import { de } from "./de";
import { en } from "./en";

const texts: Record<string, Text> = { en, de };

/** In a browser, for whoever works on the page: `?lang=de`. */
const forced = import.meta.env.DEV ? new URLSearchParams(location.search).get("lang") : null;

/** The first of the user's languages that there is. */
export const language =
  [forced, ...navigator.languages].map((tag) => tag?.slice(0, 2) ?? "").find((tag) => tag in texts) ?? "en";

export const t: Text = texts[language] ?? en;
