import type { AudioTrack, Job } from "../generated/contract";
import { t } from "../text";
import { languageName, list } from "../ui/format";

/** What is known of an audio track, beginning with its number, which people count from 1: "1: German, Interpreter, aac, stereo". */
export function trackName({ number, language, title, codec, channels }: AudioTrack): string {
  const facts = [language && languageName(language), title, codec, channels === null ? null : t.part.channels(channels)];
  return `${number + 1}: ${list(facts.flatMap((fact) => fact || []))}`;
}

/** Of a file with several, the one that is transcribed. */
export function takenTrack({ tracks, part }: Job): AudioTrack | undefined {
  return tracks.find((track) => (part.track === null ? track.default : track.number === part.track));
}
