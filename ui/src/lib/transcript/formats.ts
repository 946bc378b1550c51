import type { Format } from "../generated/contract";

/** Every export format, in the order in which they are offered. */
export const FORMATS = ["txt", "srt", "vtt", "ass", "lrc", "md", "docx", "pdf", "html", "csv", "tsv", "json", "whisperx", "rttm", "chapters", "chapters-vtt"] as const satisfies readonly Format[];

// Fails to compile where a format is missing above.
type Missing = Exclude<Format, (typeof FORMATS)[number]>;
true satisfies [Missing] extends [never] ? true : false;

/** Those that can be written as soon as a transcript is finished: chapters are found, or set, later. */
export const FORMATS_WHEN_FINISHED = FORMATS.filter((format) => format !== "chapters" && format !== "chapters-vtt");

/** What a format is called in lists. */
export function formatName(format: Format): string {
  const others: Partial<Record<Format, string>> = { whisperx: "WhisperX", chapters: ".chapters.txt", "chapters-vtt": ".chapters.vtt" };
  return others[format] ?? `.${format}`;
}
