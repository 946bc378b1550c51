import { locale } from "../locale.svelte";
import { languageName } from "../ui/format";

/** ISO 639 codes of the languages that multilingual Whisper models know. */
const CODES =
  "af am ar as az ba be bg bn bo br bs ca cs cy da de el en es et eu fa fi fo fr gl gu ha haw he hi hr ht hu hy id is it ja jw ka kk km kn ko la lb ln lo lt lv mg mi mk ml mn mr ms mt my ne nl nn no oc pa pl ps pt ro ru sa sd si sk sl sn so sq sr su sv sw ta te tg th tk tl tr tt uk ur uz vi yi yo yue zh".split(
    " ",
  );

interface Language {
  code: string;
  name: string;
}

/** By the window's language: names and their order take as long to find as all of a page to draw. */
const known = new Map<string, Language[]>();

/** In the order of their names, as the user reads them. */
export function languages(): Language[] {
  const shown = locale();
  const found = known.get(shown);
  if (found) return found;
  const { compare } = new Intl.Collator(shown);
  // Whisper's "jw" is Javanese, which everybody else calls "jv".
  const named = CODES.map((code) => ({ code, name: languageName(code === "jw" ? "jv" : code) }));
  named.sort((a, b) => compare(a.name, b.name));
  known.set(shown, named);
  return named;
}
