import type { Look } from "./generated/contract";
import { usableLanguage } from "./locale-guard";

/** What the window speaks. */
export type Language = NonNullable<Look["language"]>;

/** The tag that numbers and names of languages are written for. */
let tag = $state(usableLanguage(navigator.language));

export function locale(): string {
  return tag;
}

export function setLocale(wanted: string): void {
  tag = usableLanguage(wanted);
}
