import { locale } from "../locale.svelte";

const two = (number: number) => String(number).padStart(2, "0");

/** A place in a recording: 0:07, 12:34, 1:02:03. Rounded down, as clocks do. */
export function clock(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds));
  const [hours, minutes] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60];
  return hours > 0 ? `${hours}:${two(minutes)}:${two(whole % 60)}` : `${minutes}:${two(whole % 60)}`;
}

/** A moment in a job: 0.4 s, 12 s, 3:07. */
export function seconds(value: number): string {
  if (value >= 60) return clock(value);
  const digits = value < 10 && value % 1 !== 0 ? 1 : 0;
  return `${new Intl.NumberFormat(locale(), { minimumFractionDigits: digits, maximumFractionDigits: digits }).format(value)} s`;
}

/** How long something takes, no more exact than anybody can know: 20 s, 4 min, 1 h 20 min. */
export function span(seconds: number, language: "en" | "de"): string {
  const hour = language === "de" ? "Std." : "h";
  if (seconds < 55) return `${Math.max(5, Math.ceil(seconds / 5) * 5)} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  const rest = Math.round((minutes % 60) / 5) * 5;
  const hours = Math.floor(minutes / 60) + (rest === 60 ? 1 : 0);
  return rest % 60 === 0 ? `${hours} ${hour}` : `${hours} ${hour} ${rest} min`;
}

export function gigabytes(bytes: number): string {
  return `${(bytes / 2 ** 30).toFixed(1)} GB`;
}

/** The size of a file, in the user's language. */
export function fileSize(bytes: number): string {
  const [unit, factor] = bytes < 1e6 ? ["kilobyte", 1e3] : bytes < 1e9 ? ["megabyte", 1e6] : ["gigabyte", 1e9];
  const value = bytes / (factor as number);
  const digits = value < 10 ? 1 : 0;
  return new Intl.NumberFormat(locale(), {
    style: "unit",
    unit: unit as string,
    maximumFractionDigits: digits,
  }).format(value);
}

/** A language's name in the user's language; its code where nobody knows one. */
export function languageName(code: string): string {
  try {
    return new Intl.DisplayNames([locale()], { type: "language" }).of(code) ?? code;
  } catch {
    return code;
  }
}

/** An amount of memory in binary units, as the command line writes it: 640 MB, 1.5 GB. */
export function memorySize(bytes: number): string {
  const mega = bytes / 2 ** 20;
  const [value, unit] = mega < 1000 ? [mega, "MB"] : [mega / 1024, "GB"];
  const digits = unit === "GB" ? 1 : 0;
  const number = new Intl.NumberFormat(locale(), { minimumFractionDigits: digits, maximumFractionDigits: digits });
  return `${number.format(value)} ${unit}`;
}

export function percent(share: number, digits = 0): string {
  const format = { style: "percent", minimumFractionDigits: digits, maximumFractionDigits: digits } as const;
  return new Intl.NumberFormat(locale(), format).format(share);
}

/** How many numbers a network has: 39 M, 1.5 B. */
export function parameters(count: number): string {
  return new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 2 }).format(count);
}
