import { locale, type Language } from "../locale.svelte";

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
  return `${decimal(value, digits)} s`;
}

/** How many times as fast as something else: 3.2, 14. */
export function factor(value: number): string {
  return decimal(value, value < 10 ? 1 : 0);
}

/** A number without digits after the point. */
export function round(value: number): string {
  return decimal(value, 0);
}

/** What follows the numbers of hours, minutes and seconds, and what stands between two of them. */
const UNITS: Record<Language, [hour: string, minute: string, second: string, between: string]> = {
  en: [" h", " min", " s", " "],
  de: [" Std.", " min", " s", " "],
  es: [" h", " min", " s", " "],
  fr: [" h", " min", " s", " "],
  zh: [" 小时", " 分钟", " 秒", " "],
  ja: ["時間", "分", "秒", ""],
};

/** How long something takes, no more exact than it can be known: 20 s, 4 min, 1 h 20 min. */
export function span(seconds: number, language: Language): string {
  const [hour, minute, second, between] = UNITS[language];
  if (seconds < 55) return `${Math.max(5, Math.ceil(seconds / 5) * 5)}${second}`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 60) return `${minutes}${minute}`;
  const rest = Math.round((minutes % 60) / 5) * 5;
  const hours = Math.floor(minutes / 60) + (rest === 60 ? 1 : 0);
  return rest % 60 === 0 ? `${hours}${hour}` : `${hours}${hour}${between}${rest}${minute}`;
}

/** The size of a file, in the user's language. */
export function fileSize(bytes: number): string {
  const [unit, scale] = bytes < 1e6 ? ["kilobyte", 1e3] : bytes < 1e9 ? ["megabyte", 1e6] : ["gigabyte", 1e9];
  const value = bytes / (scale as number);
  return new Intl.NumberFormat(locale(), { style: "unit", unit: unit as string, maximumFractionDigits: value < 10 ? 1 : 0 }).format(value);
}

/** By the window's language: to make one takes longer than to ask it. */
const languageNames = new Map<string, Intl.DisplayNames>();

/** A language's name in the user's language; its code where it has none. */
export function languageName(code: string): string {
  const shown = locale();
  try {
    const names = languageNames.get(shown) ?? new Intl.DisplayNames([shown], { type: "language" });
    languageNames.set(shown, names);
    return names.of(code) ?? code;
  } catch {
    return code;
  }
}

/** An amount of memory in binary units, as the command line counts it: 640 MB, 1.5 GB. */
export function memorySize(bytes: number): string {
  const mega = bytes / 2 ** 20;
  return mega < 1000 ? decimal(mega, 0, "megabyte") : decimal(mega / 1024, 1, "gigabyte");
}

/** With just so many digits after the point, and a unit that `Intl` knows. */
export function decimal(value: number, digits: number, unit?: "megabyte" | "gigabyte"): string {
  const style = unit ? ({ style: "unit", unit } as const) : {};
  return new Intl.NumberFormat(locale(), { minimumFractionDigits: digits, maximumFractionDigits: digits, ...style }).format(value);
}

/** Words one after the other; Chinese and Japanese have a comma of their own for that. */
export function list(words: string[]): string {
  return words.join(/^(zh|ja)\b/.test(locale()) ? "、" : ", ");
}

/** Between a name and what it stands for; as French, Chinese and Japanese set it. */
export function colon(): string {
  return { fr: "\u202f: ", zh: "：", ja: "：" }[locale().slice(0, 2)] ?? ": ";
}

export function percent(share: number, digits = 0): string {
  const format = { style: "percent", minimumFractionDigits: digits, maximumFractionDigits: digits } as const;
  return new Intl.NumberFormat(locale(), format).format(share);
}

/** How many numbers a network has: 39M, 1.5B, in German 39 Mio. */
export function parameters(count: number): string {
  return new Intl.NumberFormat(locale(), { notation: "compact", maximumSignificantDigits: 2 }).format(count);
}

const ARROWS: Record<string, string> = { ArrowLeft: "←", ArrowRight: "→", ArrowUp: "↑", ArrowDown: "↓" };

/** A key with those that are held, as they are called in `names`, else as in English. */
export function keyName(key: string, names: Record<string, string>): string {
  // What is pressed at last may be a plus.
  const parts = String(key).split(/\+(?=.)/);
  return parts.map((part) => names[part] ?? ARROWS[part] ?? part).join("+");
}
