import type { NoticeMessage } from "../generated/contract";
import { t } from "./current.svelte";

interface Told {
  told: NoticeMessage | null;
  /** In English. */
  text: string;
}

/** A notice in the user’s language; in English where another version saved it without figures. */
export function noticeText({ told, text }: Told): string {
  if (told === null) return text;
  const say = t.told.notices[told.code] as (data: NoticeMessage["data"]) => string;
  return say(told.data);
}

/** What exactly happened, technical and in English; null where the notice says it all. */
export function detailOf({ told }: Told): string | null {
  return told !== null && "detail" in told.data ? (told.data.detail as string | null) : null;
}
