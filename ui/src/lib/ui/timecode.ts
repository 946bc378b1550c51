const digits = (number: number, length: number) => String(number).padStart(length, "0");

/** A time of a segment as it is written in a field: 0:00:12.345, 1:02:03.000. */
export function timecode(seconds: number): string {
  const all = Math.max(0, Math.round(seconds * 1000));
  const whole = Math.floor(all / 1000);
  const minutes = Math.floor(whole / 60);
  return `${Math.floor(minutes / 60)}:${digits(minutes % 60, 2)}:${digits(whole % 60, 2)}.${digits(all % 1000, 3)}`;
}

/** Hours and minutes may be left out; what stands behind a colon is less than 60. */
const TIME = /^(?:(?:(\d+):)?(\d+):)?(\d+(?:[.,]\d+)?)$/;

/** In seconds, whole milliseconds as the program has them; null: no time. */
export function fromTimecode(text: string): number | null {
  // Full-width digits and colons are what a Japanese or Chinese keyboard writes.
  const found = TIME.exec(text.normalize("NFKC").trim());
  if (!found) return null;
  const [hours, minutes] = [Number(found[1] ?? 0), Number(found[2] ?? 0)];
  const seconds = Number((found[3] ?? "").replace(",", "."));
  if ((found[1] !== undefined && minutes >= 60) || (found[2] !== undefined && seconds >= 60)) return null;
  return Math.round((hours * 3600 + minutes * 60 + seconds) * 1000) / 1000;
}
