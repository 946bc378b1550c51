import type { Takes } from "../steno.svelte";
import { t } from "../text";

/** Whether a model can be told the language and does not find it. */
export function mustChoose(takes: Takes): boolean {
  return takes.language && !takes.detection;
}

/** Why a language can't be chosen, or must be; undefined where it may be. */
export function languageReason(takes: Takes): string | undefined {
  if (!takes.language) return t.settings.cant.language;
  return takes.detection ? undefined : t.settings.cant.detection;
}
