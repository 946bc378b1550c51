import { UNSURE, type Chapter, type Edit, type Editing, type Finding, type Gap, type Passage, type Place, type Review, type Segment, type Word } from "../generated/contract";

/** Words of equal length; some of them uncertain. */
export function words(text: string, start: number, end: number): Word[] {
  const said = text.split(/(?=\s)/).filter((word) => word.trim());
  const length = (end - start) / Math.max(1, said.length);
  return said.map((text, index) => ({
    text,
    start: start + index * length,
    end: start + (index + 1) * length,
    probability: text.length > 8 ? 0.4 : 0.95,
  }));
}

/** What undoing brings back. */
type Snapshot = [Segment[], Gap[], Chapter[]];

/** Pretends to edit one text, more simply than the program does. */
export class FakeText {
  revision = 0;
  chapters: Chapter[] = [];
  #before: Snapshot[] = [];
  #after: Snapshot[] = [];

  constructor(
    public segments: Segment[],
    public gaps: Gap[],
  ) {}

  get editing(): Editing {
    return { revision: this.revision, undo: this.#before.length > 0, redo: this.#after.length > 0 };
  }

  /** The first segment that changed; null where nothing did. */
  edit(edit: Edit): number | null {
    if (edit.kind === "set_chapters") return this.setChapters(edit.chapters);
    const now = changed(this.segments, edit);
    if (!now) return null;
    const gap = edit.kind === "accept_gap" ? edit.gap : null;
    return this.#do(now, this.gaps.filter(({ start }) => start !== gap?.start));
  }

  /** A title that is missing is the beginning of the text. */
  setChapters(chapters: Chapter[]): number | null {
    const numberOf = (id: number) => this.segments.findIndex((segment) => segment.id === id);
    if (chapters.some(({ segment }) => numberOf(segment) < 0)) return null;
    const first = this.segments[0]?.id ?? 0;
    const all = chapters.length === 0 || chapters.some(({ segment }) => segment === first) ? chapters : [{ segment: first, start: 0, title: "" }, ...chapters];
    const whole = all.toSorted((a, b) => numberOf(a.segment) - numberOf(b.segment)).map(({ segment, title }) => {
      const own = this.segments[numberOf(segment)];
      return { segment, start: own?.start ?? 0, title: title.trim() || (own?.text ?? "").replace(/[.!?].*/, "") };
    });
    return this.#do(this.segments, this.gaps, whole);
  }

  /** Puts what stands for a translation below each segment. */
  translate(): void {
    this.#do(this.segments.map((one) => ({ ...one, translation: `(English) ${one.text}` })), this.gaps);
  }

  /** What was found in a part takes the place of what stood there. */
  replace(part: Gap, found: Segment[]): void {
    const at = this.segments.findIndex(({ start, end }) => (start + end) / 2 >= part.start);
    const rest = this.segments.filter(({ start, end }) => (start + end) / 2 < part.start || (start + end) / 2 >= part.end);
    const id = Math.max(0, ...this.segments.map((segment) => segment.id)) + 1;
    const numbered = found.map((segment, index) => ({ ...segment, id: id + index }));
    this.#do(rest.toSpliced(at < 0 ? rest.length : at, 0, ...numbered), this.gaps.filter(({ start }) => start !== part.start));
  }

  /** In order of doubt, as far as that is easily said. */
  review(): Review {
    const doubt = ({ suspicions, words }: Segment) =>
      1 - words.reduce((right, { probability }) => (probability < UNSURE ? right * probability : right), suspicions.length > 0 ? 0.05 : 1);
    const passages: Passage[] = [
      ...this.gaps.map(({ start, end }) => ({ segment: null, start, end, suspicions: [], doubt: 1 })),
      ...this.segments.map((one) => ({ segment: one.id, start: one.start, end: one.end, suspicions: one.suspicions, doubt: doubt(one) })),
    ];
    const found = passages.filter(({ doubt }) => doubt > 0).sort((a, b) => b.doubt - a.doubt || a.start - b.start);
    return { count: found.length, passages: found.slice(0, 200) };
  }

  undo(): number | null {
    const now = this.#before.pop();
    if (!now) return null;
    this.#after.push([this.segments, this.gaps, this.chapters]);
    return this.#show(...now);
  }

  redo(): number | null {
    const now = this.#after.pop();
    if (!now) return null;
    this.#before.push([this.segments, this.gaps, this.chapters]);
    return this.#show(...now);
  }

  places(finding: Finding): Place[] {
    const expression = expressionOf(finding);
    return this.segments.flatMap(({ text }, segment) =>
      [...text.matchAll(expression)].map((found) => ({ segment, start: found.index, end: found.index + found[0].length })),
    );
  }

  replaceOne(finding: Finding, by: string, { segment, start, end }: Place): Place | null {
    const found = this.places(finding).some((place) => place.segment === segment && place.start === start);
    const old = this.segments[segment];
    if (!found || !old) return null;
    const inPlace = replaced(old.text.slice(start, end), finding, by);
    const text = old.text.slice(0, start) + inPlace + old.text.slice(end);
    this.#do(this.segments.map((one) => (one === old ? said(old, text) : one)), this.gaps);
    return { segment, start: start + inPlace.length, end: start + inPlace.length };
  }

  replaceAll(finding: Finding, by: string): number {
    const pattern = expressionOf(finding);
    let places = 0;
    const now = this.segments.map((segment) => {
      const found = segment.text.match(pattern)?.length ?? 0;
      places += found;
      return found ? said(segment, replaced(segment.text, finding, by)) : segment;
    });
    if (places > 0) this.#do(now, this.gaps);
    return places;
  }

  #do(segments: Segment[], gaps: Gap[], chapters = this.chapters): number {
    this.#before.push([this.segments, this.gaps, this.chapters]);
    this.#after = [];
    return this.#show(segments, gaps, chapters);
  }

  #show(now: Segment[], gaps: Gap[], chapters: Chapter[]): number {
    this.gaps = gaps;
    this.chapters = chapters.filter(({ segment }) => now.some(({ id }) => id === segment));
    const first = now.findIndex((segment, index) => segment !== this.segments[index]);
    this.segments = now;
    this.revision++;
    return first < 0 ? Math.max(0, now.length - 1) : first;
  }
}

function expressionOf({ text, case: exact, whole_words, regular_expression }: Finding): RegExp {
  const source = regular_expression ? text : text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  try {
    return new RegExp(whole_words ? `(?<![\\p{L}\\p{N}])(?:${source})(?![\\p{L}\\p{N}])` : source, exact ? "gu" : "giu");
  } catch {
    throw { code: "bad_settings", message: "This is not a regular expression: unclosed group.", remedy: "Correct it, or search for plain text." };
  }
}

function replaced(text: string, finding: Finding, by: string): string {
  const expression = expressionOf(finding);
  return finding.regular_expression ? text.replace(expression, by) : text.replace(expression, () => by);
}

function said(segment: Segment, text: string): Segment {
  return { ...segment, text: text.trim(), words: words(text.trim(), segment.start, segment.end) };
}

function changed(segments: Segment[], edit: Edit): Segment[] | null {
  const id = Math.max(0, ...segments.map((segment) => segment.id)) + 1;
  const named = "segment" in edit ? segments.findIndex((segment) => segment.id === edit.segment) : -1;
  const segment = segments[named];
  const next = segments[named + 1];
  if ("segment" in edit && !segment) return null;
  const all = (wanted: number[], change: (segment: Segment) => Segment) =>
    segments.map((one) => (wanted.includes(one.id) ? change(one) : one));
  switch (edit.kind) {
    case "accept_gap":
    case "set_chapters":
      return segments;
    case "set_text":
      return segment ? segments.with(named, said(segment, edit.text)) : null;
    case "split": {
      if (!segment) return null;
      const characters = [...segment.text];
      const [left, right] = [characters.slice(0, edit.at).join(""), characters.slice(edit.at).join("")];
      if (!left.trim() || !right.trim()) return null;
      const middle = segment.start + ((segment.end - segment.start) * left.length) / segment.text.length;
      return segments.toSpliced(named, 1, said({ ...segment, end: middle }, left), said({ ...segment, id, start: middle }, right));
    }
    case "merge":
      if (!segment || !next) return null;
      return segments.toSpliced(named, 2, said({ ...segment, end: next.end }, `${segment.text} ${next.text}`));
    case "delete":
      return segments.filter((one) => !edit.segments.includes(one.id));
    case "insert": {
      const at = segments.findIndex((one) => one.id === edit.after) + 1;
      const time = segments[at - 1]?.end ?? 0;
      const empty = { language: null, speaker: null, channel: null, translation: null, suspicions: [] };
      return segments.toSpliced(at, 0, { id, start: time, end: time, text: edit.text, words: words(edit.text, time, time), ...empty });
    }
    case "retime":
      return segment ? segments.with(named, { ...segment, start: edit.start, end: edit.end }) : null;
    case "set_speaker":
      return all(edit.segments, (one) => ({ ...one, speaker: edit.speaker }));
    case "set_speaker_of_words": {
      if (!segment) return null;
      const characters = [...segment.text];
      let [from, to] = [edit.from, edit.to];
      if (!characters.slice(from, to).join("").trim()) return null;
      while (from > 0 && characters[from - 1]?.trim()) from--;
      while (to < characters.length && characters[to]?.trim()) to++;
      const at = (place: number) => segment.start + ((segment.end - segment.start) * place) / characters.length;
      const part = (begin: number, end: number, id: number, speaker: string | null): Segment =>
        said({ ...segment, id, speaker, start: at(begin), end: at(end) }, characters.slice(begin, end).join(""));
      const first = characters.slice(0, from).join("").trim() ? [part(0, from, segment.id, segment.speaker)] : [];
      const last = characters.slice(to).join("").trim() ? [part(to, characters.length, id + 1, segment.speaker)] : [];
      return segments.toSpliced(named, 1, ...first, part(from, to, first.length > 0 ? id : segment.id, edit.speaker), ...last);
    }
    case "rename_speaker":
      return segments.map((one) => (one.speaker === edit.from ? { ...one, speaker: edit.to } : one));
    case "accept":
      return all(edit.segments, (one) => ({
        ...one,
        suspicions: [],
        words: one.words.map((word) => ({ ...word, probability: 1 })),
      }));
  }
}
