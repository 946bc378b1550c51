import type { SearchFilter } from "../generated/contract";

/** What is chosen in the fields; an empty text admits everything. Days are written as in `2026-11-25`. */
export interface Chosen {
  speaker: string;
  language: string;
  since: string;
  until: string;
}

export const NO_FILTERS: Chosen = { speaker: "", language: "", since: "", until: "" };

/** Milliseconds since 1970 at which a day begins where the user is, or so many days later. */
function dayBegins(day: string, later: number): number | null {
  const [year, month, date] = day.split("-").map(Number);
  if (!year || !month || !date) return null;
  return new Date(year, month - 1, date + later).getTime();
}

/** What the program is asked for. `shown` is `tag:…`, `folder:…` or nothing. The last day counts as a whole. */
export function filterOf({ speaker, language, since, until }: Chosen, shown: string): SearchFilter {
  return {
    speaker: speaker || null,
    language: language || null,
    since: dayBegins(since, 0),
    until: dayBegins(until, 1),
    tag: shown.startsWith("tag:") ? shown.slice(4) : null,
    folder: shown.startsWith("folder:") ? shown.slice(7) : null,
  };
}
