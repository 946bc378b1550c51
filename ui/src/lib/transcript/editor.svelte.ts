import { asFailure, type Backend } from "../backend";
import { UNSURE, type Chapter, type Edit, type Edited, type Finding, type Passage, type Place, type Replaced, type Segment } from "../generated/contract";
import { places } from "../player/spoken";
import type { Steno } from "../steno.svelte";
import { t } from "../text";
import { list } from "../ui/format";
import type { Text } from "./text.svelte";

/** What is typed is written down this long after the last key, in milliseconds … */
const PAUSE = 400;
/** … and at the latest this long after the first: so much is lost when the program is killed. */
const LONGEST = 800;
/** Longest that one waits for the text that has an edit, in milliseconds: it may be that of a recording that is gone. */
const LONGEST_WAIT = 3000;

/** Names of transcripts in one message. */
const MOST_NAMES = 3;

/** The placeholder text of an added segment. */
const INSERTED = "…";

/** What is set below a segment. */
export type Panel = "speaker" | "times" | "sound";

/** Where in a text, in UTF-16 units. */
export interface Selection {
  from: number;
  to: number;
}

/** Where one writes on once segments are split or joined; what is selected there is written over. */
interface Landing extends Selection {
  segment: number;
}

/** Segments that the user ticks, to give them to a speaker. */
export interface Choosing {
  /** Only what this speaker says can be ticked; null: everything. */
  of: string | null;
  /** Ids of those that are ticked. */
  segments: ReadonlySet<number>;
}

/** A change of the segments themselves that is under way. */
interface Reshaping {
  /** What was written in when it began. */
  active: number | null;
  /** All whose text is not what it was once it ends. */
  segments: number[];
  before: string;
  /** With what was typed since: that goes where one writes on. */
  after: string;
}

/** Edits of one text. What is typed goes to the program as text; what is kept, undone and found comes from there. */
export class Editor {
  /** The id of the segment that is written in. */
  active = $state<number | null>(null);
  draft = $state("");
  panel = $state<Panel | null>(null);
  /** Null: no segments are being ticked. */
  choosing = $state.raw<Choosing | null>(null);
  /** Where the cursor is to be put once the segment is there. */
  selection = $state.raw<Selection | null>(null);
  /** Where the cursor stays where the text became another one under it. */
  caret = $state.raw<{ at: number } | null>(null);
  /** A segment's id to be shown once its text is there. */
  wanted = $state<number | null>(null);
  /** What is to be replaced in several transcripts, and how often it occurs: it waits for an answer. */
  replacing = $state.raw<{ finding: Finding; withText: string; found: Replaced } | null>(null);
  /** Words that were found in the history, to be marked in the text; empty once they are. */
  sought = $state("");
  /** What was said last, or is being said: the segment's id and the word's number in it. */
  place = $state.raw<{ segment: number; word: number | null } | null>(null);
  /** The passage that is looked at in the list of those to check. */
  listed = $state.raw<Passage | null>(null);
  /** How far it was listened to, in seconds, for the next player. */
  heard = 0;
  /** Plays a passage, from a little before it; null while there is no player. */
  hear = $state.raw<((start: number, end: number) => void) | null>(null);
  /** A part that is to be played once there is a player, in seconds. */
  toHear = $state.raw<{ start: number; end: number } | null>(null);
  /** The chapters are being found. */
  findsChapters = $state(false);
  /** A segment's number to be shown. */
  shown = $state.raw<{ number: number } | null>(null);

  /** The last text that the program has of the draft. */
  #sent = "";
  #timer: ReturnType<typeof setTimeout> | undefined;
  #firstKey: number | null = null;
  #revision = 0;
  #underWay = 0;
  #last: Promise<unknown> = Promise.resolve();
  /** Texts that were sent and do not stand in the text yet, by segment. */
  #onTheWay = new Map<number, string>();
  #reshaping: Reshaping | null = null;
  /** Until that has ended. */
  #reshaped: Promise<void> | null = null;
  #composing = false;
  #composed: (() => void) | null = null;

  constructor(
    readonly steno: Steno,
    readonly text: Text,
  ) {}

  get segment(): Segment | undefined {
    return this.active === null ? undefined : this.text.at(this.text.numberOf(this.active));
  }

  /** The text of a segment that could not be written down yet; it stands there in place of the one that is stored. */
  unwritten(id: number): string | undefined {
    return this.steno.unwritten.of(this.text.job, id);
  }

  /** Tries again to write that down. */
  async writeAgain(id: number, text: string): Promise<void> {
    if (this.#onTheWay.has(id)) return;
    if (id !== this.active) await this.#setText(id, text);
    // While characters are put together, the next key does it.
    else if (!this.#composing) await this.flush();
  }

  /** Writes in a segment from now on. */
  open(id: number, selection: Selection | null = null): void {
    const segment = this.text.at(this.text.numberOf(id));
    if (!this.text.editing || !segment) return;
    if (this.active !== id) {
      // What it will be is not known yet.
      if (this.#reshaping?.segments.includes(id)) return;
      void this.flush();
      const sent = this.#onTheWay.get(id);
      this.#begin(id, sent ?? segment.text, sent ?? this.unwritten(id));
    }
    this.caret = null;
    this.selection = selection ?? { from: this.draft.length, to: this.draft.length };
  }

  /** Writes where something was said last: before that word. */
  openPlace(): void {
    const { place } = this;
    const segment = place && this.text.at(this.text.numberOf(place.segment));
    if (!segment) return;
    const [at] = (place.word === null ? null : places(segment)[place.word]) ?? [0];
    this.open(segment.id, { from: at, to: at });
  }

  close(): void {
    void this.flush();
    this.active = null;
    this.panel = null;
    this.compose(false);
  }

  /** To the segment before or after. */
  move(step: 1 | -1): void {
    if (this.#reshaping) return;
    const number = this.active === null ? -1 : this.text.numberOf(this.active) + step;
    const next = this.text.at(number);
    if (!next) return;
    this.open(next.id, step === 1 ? { from: 0, to: 0 } : null);
    this.shown = { number };
  }

  type(draft: string): void {
    clearTimeout(this.#timer);
    this.draft = this.#composing ? draft : oneLine(draft);
    if (this.#reshaping && this.#isHeld) this.#reshaping.after = this.draft;
    if (this.#isHeld || this.#composing) return;
    this.#firstKey ??= Date.now();
    const left = LONGEST - (Date.now() - this.#firstKey);
    this.#timer = setTimeout(() => void this.flush(), Math.max(0, Math.min(PAUSE, left)));
  }

  /** Characters are being put together of several keys: until they are there the field is left alone. */
  compose(composing: boolean): void {
    this.#composing = composing;
    if (composing) return;
    this.#composed?.();
    this.#composed = null;
  }

  /** What was typed is written down when it answers, and what is under way has ended. */
  async flush(): Promise<void> {
    const written = this.#write();
    const settled = this.settled();
    if (!settled) return void (await written);
    await settled;
    await this.#write();
  }

  /** Once segments that are being split or joined have what was typed meanwhile; null where none are. */
  settled(): Promise<unknown> | null {
    return this.#reshaped && Promise.race([this.#reshaped, new Promise((go) => setTimeout(go, LONGEST_WAIT))]);
  }

  /** The text is another one, not by what is typed here: the draft follows. */
  follow(): void {
    const { segment } = this;
    if (this.#isHeld || this.#composing) return;
    if (this.active !== null && !segment) this.active = null;
    if (!segment || this.#underWay > 0 || this.draft !== this.#sent) return;
    if ((this.text.editing?.revision ?? 0) < this.#revision) return;
    // White space at the end is one's own until the next word.
    if (this.draft.trim() === segment.text) return;
    this.caret = { at: endOfChange(this.draft, segment.text) };
    this.draft = this.#sent = segment.text;
  }

  /** At the cursor, which is at the new segment's beginning then. */
  async split(cursor: number): Promise<void> {
    const { active, draft } = this;
    if (active === null) return;
    const lead = draft.length - draft.trimStart().length;
    const at = [...draft.slice(lead, Math.max(lead, cursor))].length;
    await this.#reshape([active], { kind: "split", segment: active, at }, () => {
      const next = this.text.at(this.text.numberOf(active) + 1);
      return next && { segment: next.id, from: 0, to: 0 };
    });
  }

  /** With the segment before, where the cursor stays between both. */
  async mergeBefore(): Promise<void> {
    const { active } = this;
    const before = active === null ? undefined : this.text.at(this.text.numberOf(active) - 1);
    if (active === null || !before) return;
    const rest = this.draft.trim().length;
    await this.#reshape([before.id, active], { kind: "merge", segment: before.id }, () => {
      const at = (this.#textOf(before.id)?.length ?? 0) - rest;
      return { segment: before.id, from: at, to: at };
    });
  }

  async mergeNext(): Promise<void> {
    const { active } = this;
    if (active === null) return;
    const next = this.text.at(this.text.numberOf(active) + 1);
    const at = this.draft.trimStart().length;
    await this.#reshape(next ? [active, next.id] : [active], { kind: "merge", segment: active }, () => ({ segment: active, from: at, to: at }));
  }

  async remove(): Promise<void> {
    const { active } = this;
    if (active === null) return;
    const number = this.text.numberOf(active);
    await this.#reshape([active], { kind: "delete", segments: [active] }, () => {
      const next = this.text.at(number) ?? this.text.at(number - 1);
      return next && { segment: next.id, from: 0, to: 0 };
    });
  }

  /** A new segment behind another one, to be written in; null: at the beginning. */
  async insert(after: number | null = this.active): Promise<void> {
    await this.#reshape([], { kind: "insert", after, text: INSERTED }, () => {
      const next = this.text.at(after === null ? 0 : this.text.numberOf(after) + 1);
      return next && { segment: next.id, from: 0, to: next.text.length };
    });
  }

  async retime(start: number, end: number): Promise<void> {
    if (this.active === null) return;
    await this.flush();
    await this.#do({ kind: "retime", segment: this.active, start, end });
  }

  /** In this segment, or as far as the same person speaks. */
  async setSpeaker(speaker: string, run: boolean): Promise<void> {
    if (this.active === null) return;
    const number = this.text.numberOf(this.active);
    const [from, to] = run ? this.#run(number) : [number, number + 1];
    const segments = Array.from({ length: to - from }, (_, index) => this.text.at(from + index)?.id ?? 0);
    await this.flush();
    await this.#do({ kind: "set_speaker", segments, speaker: speaker.trim() || null });
  }

  /** In the words of the segment that lie within this selection; the segment is split there. */
  async setSpeakerOfWords(speaker: string, selection: Selection): Promise<void> {
    const { active, draft } = this;
    if (active === null) return;
    const lead = draft.length - draft.trimStart().length;
    const count = (end: number) => [...draft.slice(lead, Math.max(lead, end))].length;
    const [from, to] = [count(selection.from), count(selection.to)];
    const before = this.text.length;
    const edit: Edit = { kind: "set_speaker_of_words", segment: active, from, to, speaker: speaker.trim() || null };
    await this.#reshape([active], edit, () => {
      // Behind what stays with the one who has it.
      const number = this.text.numberOf(active);
      const words = this.text.length > before && draft.slice(lead, selection.from).trim() !== "" ? this.text.at(number + 1) : this.text.at(number);
      return words && { segment: words.id, from: 0, to: 0 };
    });
  }

  /** Segments are ticked from now on: of one speaker, or of all. */
  choose(of: string | null): void {
    this.close();
    this.choosing = { of, segments: new Set() };
  }

  /** Where none that can be ticked is in view. */
  showFirstToTick(): void {
    const first = this.text.pages.flat().findIndex((segment) => this.canTick(segment));
    if (first >= 0) this.shown = { number: first };
  }

  canTick(segment: Segment): boolean {
    return this.choosing !== null && segment.id !== 0 && (this.choosing.of === null || this.choosing.of === segment.speaker);
  }

  tick(segment: number, on: boolean): void {
    if (!this.choosing) return;
    const segments = new Set(this.choosing.segments);
    if (on) segments.add(segment);
    else segments.delete(segment);
    this.choosing = { ...this.choosing, segments };
  }

  /** All behind the first that is ticked. */
  tickRest(): void {
    const { choosing } = this;
    if (!choosing) return;
    const all = this.text.pages.flat().filter((segment) => this.canTick(segment));
    const first = all.findIndex((segment) => choosing.segments.has(segment.id));
    if (first >= 0) this.choosing = { ...choosing, segments: new Set(all.slice(first).map((segment) => segment.id)) };
  }

  /** What is ticked is this speaker's, as one edit. */
  async giveChosen(speaker: string): Promise<void> {
    // A segment that was removed meanwhile has no speaker.
    const { choosing } = this;
    const segments = [...(choosing?.segments ?? [])].filter((id) => this.text.numberOf(id) >= 0);
    if (segments.length === 0 || !speaker.trim()) return;
    await this.flush();
    const done = await this.#do({ kind: "set_speaker", segments, speaker: speaker.trim() });
    // Others may be ticked by then.
    if (done && this.choosing === choosing) this.choosing = null;
  }

  /** A default name for a new speaker, as the engine gives it. */
  newSpeaker(): string {
    let number = 1;
    while (this.text.voices.has(`Speaker ${number}`)) number++;
    return `Speaker ${number}`;
  }

  async renameSpeaker(from: string, to: string): Promise<void> {
    await this.flush();
    await this.#do({ kind: "rename_speaker", from, to });
  }

  /** What was listened to is right; the next that is uncertain comes. */
  async accept(): Promise<void> {
    const segment = this.active ?? this.place?.segment ?? null;
    if (segment === null) return;
    const number = this.text.numberOf(segment);
    await this.flush();
    if (await this.#do({ kind: "accept", segments: [segment] })) this.nextUnsure(number + 1);
  }

  /** The same of a passage of the list; true once it is written down. */
  async acceptPassage({ segment, start, end }: Passage): Promise<boolean> {
    await this.flush();
    return this.#do(segment === null ? { kind: "accept_gap", gap: { start, end } } : { kind: "accept", segments: [segment] });
  }

  /** Finds the chapters; edits go on meanwhile. */
  async findChapters(): Promise<void> {
    if (this.findsChapters) return;
    this.findsChapters = true;
    await this.flush();
    try {
      const done = await this.steno.backend.findChapters(this.text.job);
      if (done) await this.text.seen(done.revision);
    } catch (error) {
      this.steno.failOf(this.text.job, asFailure(error));
    }
    this.findsChapters = false;
  }

  async renameChapter(index: number, title: string): Promise<void> {
    const chapter = this.text.chapters[index];
    if (chapter && chapter.title !== title) await this.#setChapters(this.text.chapters.with(index, { ...chapter, title }));
  }

  /** What was said in it belongs to the chapter before; of the first, to the next. */
  async removeChapter(index: number): Promise<void> {
    const [removed, next] = [this.text.chapters[index], this.text.chapters[index + 1]];
    const rest = this.text.chapters.toSpliced(index, 1);
    if (index === 0 && removed && next) rest[0] = { ...next, segment: removed.segment };
    await this.#setChapters(rest);
  }

  /** Where a chapter would be added: the segment that is written in, or that was heard last. */
  get #atChapter(): number | null {
    return this.active ?? this.place?.segment ?? null;
  }

  get canAddChapter(): boolean {
    return this.#atChapter !== null && !this.text.headings.has(this.#atChapter);
  }

  /** Its title is the beginning of its text, until the user changes it. */
  async addChapter(): Promise<void> {
    const segment = this.#atChapter;
    if (segment !== null && this.canAddChapter) await this.#setChapters([...this.text.chapters, { segment, start: 0, title: "" }]);
  }

  async #setChapters(chapters: Chapter[]): Promise<void> {
    await this.flush();
    await this.#do({ kind: "set_chapters", chapters });
  }

  undo = () => this.#step("undo");
  redo = () => this.#step("redo");

  async replaceAll(finding: Finding, withText: string, everywhere: boolean): Promise<void> {
    await this.flush();
    if (!everywhere) return this.#replace(finding, withText, false);
    const found = await this.steno.ask((backend) => backend.countPlaces(this.text.job, finding));
    if (!found) return;
    // In this transcript alone it is undone with a key.
    if (found.transcripts > 1) this.replacing = { finding, withText, found };
    else await this.#replace(finding, withText, true);
  }

  /** Replaces at one place; the place behind what took its place. */
  async replaceOne(finding: Finding, withText: string, place: Place): Promise<Place | null> {
    await this.flush();
    return this.steno.ask((backend) => backend.replaceOne(this.text.job, finding, withText, place));
  }

  /** The answer to whether `replacing` is wanted. */
  async answerReplacing(really: boolean): Promise<void> {
    const asked = this.replacing;
    this.replacing = null;
    if (asked && really) await this.#replace(asked.finding, asked.withText, true);
  }

  async #replace(finding: Finding, withText: string, everywhere: boolean): Promise<void> {
    const done = await this.steno.ask((backend) => backend.replaceAll(this.text.job, finding, withText, everywhere));
    if (!done) return;
    const told = t.editing.replaced(done.places, done.transcripts);
    if (done.transcripts > 1) this.steno.offer(told, { label: t.history.undo, run: () => void this.#undoReplacing() });
    else this.steno.toast(told);
  }

  async #undoReplacing(): Promise<void> {
    await this.flush();
    const done = await this.steno.ask((backend) => backend.undoReplacing());
    if (!done) return;
    if (done.left.length > 0) this.steno.warn(t.editing.undoneExcept(done.undone, someOf(done.left)));
    else this.steno.toast(t.editing.undone(done.undone));
  }

  /** To the next word that the model was unsure of, from the cursor, what was said last or a segment on. */
  nextUnsure(from: number | null = null): void {
    const [here, cursor] = from === null ? this.#cursor() : [from, 0];
    for (let number = here; number < this.text.length; number++) {
      const place = this.#unsure(number).find(({ from }) => number > here || from >= cursor);
      if (place) return this.#goTo(number, place);
    }
    this.steno.toast(t.editing.noneUnsure);
  }

  previousUnsure(): void {
    const [here, cursor] = this.#cursor(true);
    for (let number = here; number >= 0; number--) {
      const place = this.#unsure(number).findLast(({ to }) => number < here || to <= cursor);
      if (place) return this.#goTo(number, place);
    }
    this.steno.toast(t.editing.noneUnsureBefore);
  }

  #unsure(number: number): Selection[] {
    const segment = this.text.at(number);
    return segment ? unsurePlaces(segment) : [];
  }

  #goTo(number: number, place: Selection): void {
    this.open(this.text.at(number)?.id ?? 0, place);
    this.shown = { number };
  }

  /** The segment's number and the place in it from which to look on, or back. */
  #cursor(back = false): [number, number] {
    if (this.active !== null) return [this.text.numberOf(this.active), (back ? this.selection?.from : this.selection?.to) ?? 0];
    const number = this.place ? this.text.numberOf(this.place.segment) : -1;
    const segment = this.text.at(number);
    if (!segment) return [back ? this.text.length - 1 : 0, back ? Infinity : 0];
    const [start, end] = (this.place?.word === null ? null : places(segment)[this.place?.word ?? 0]) ?? [0, 0];
    return [number, back ? start : end];
  }

  /** The numbers of the first segment of a run of one speaker, and of the first behind it. */
  #run(number: number): [number, number] {
    const speaker = this.text.at(number)?.speaker;
    let [from, to] = [number, number + 1];
    while (from > 0 && this.text.at(from - 1)?.speaker === speaker) from--;
    while (to < this.text.length && this.text.at(to)?.speaker === speaker) to++;
    return [from, to];
  }

  #textOf(id: number): string | undefined {
    return this.text.at(this.text.numberOf(id))?.text;
  }

  /** Its text is what was sent last, or is there; `draft` what is shown of it. */
  #begin(id: number, sent: string, draft = sent): void {
    if (this.active !== id) {
      this.panel = null;
      this.compose(false);
    }
    this.active = id;
    this.#sent = sent;
    this.draft = draft;
  }

  /** What is written in is being split or joined: what is typed is only kept. */
  get #isHeld(): boolean {
    return this.#reshaping !== null && this.#reshaping.active === this.active;
  }

  /** One such change at a time: with each the place of every key becomes another one. */
  async #reshape(segments: number[], edit: Edit, land: () => Landing | undefined): Promise<void> {
    if (this.#reshaping) return;
    const { active, draft } = this;
    const written = this.#write();
    this.#reshaping = { active, segments, before: draft, after: draft };
    this.#reshaped = this.#carryOut(this.#reshaping, written, edit, land);
    await this.#reshaped;
  }

  async #carryOut(reshaping: Reshaping, written: Promise<boolean>, edit: Edit, land: () => Landing | undefined): Promise<void> {
    const done = (await written) && (await this.#do(edit));
    if (this.#isHeld && this.#composing) await new Promise<void>((go) => (this.#composed = go));
    const isHere = this.#isHeld;
    this.#reshaping = this.#reshaped = null;
    const { active, before, after } = reshaping;
    if (!done) {
      if (isHere) this.follow();
      if (before === after || active === null) return;
      // All is as it was, and so is what was typed.
      if (isHere) this.type(after);
      else await this.#setText(active, after);
      return;
    }
    const place = land();
    const text = place && this.#textOf(place.segment);
    if (text === undefined || !place) {
      if (isHere) this.active = null;
      return;
    }
    const typed = inserted(before, after);
    const now = typed && text.slice(0, place.from) + typed + text.slice(place.to);
    // The user goes on with the segment that was added, wherever the view was meanwhile.
    if (!isHere && edit.kind === "insert") void this.#write();
    else if (!isHere) {
      if (now) await this.#setText(place.segment, now);
      return;
    }
    this.#begin(place.segment, text);
    if (now) this.type(now);
    this.caret = null;
    this.selection = now ? { from: place.from + typed.length, to: place.from + typed.length } : place;
  }

  async #step(way: "undo" | "redo"): Promise<void> {
    await this.flush();
    const done = await this.#order((backend) => backend[way](this.text.job));
    if (!done) return;
    await this.text.seen(done.revision);
    this.follow();
    this.shown = { number: done.segment };
  }

  /** False where the draft could not be written down. */
  async #write(): Promise<boolean> {
    clearTimeout(this.#timer);
    this.#firstKey = null;
    const { active, draft } = this;
    if (active !== null && draft !== this.#sent && !this.#isHeld) {
      this.#sent = draft;
      return this.#setText(active, draft);
    }
    // The user undid by hand what could not be saved.
    if (active !== null && !this.#isHeld && !this.#onTheWay.has(active)) this.steno.dropUnwritten(this.text.job, active);
    await this.#last;
    return active === null || this.unwritten(active) === undefined;
  }

  async #setText(segment: number, text: string): Promise<boolean> {
    this.#onTheWay.set(segment, text);
    const done = await this.#send({ kind: "set_text", segment, text });
    const isNewest = () => this.#onTheWay.get(segment) === text;
    if (typeof done === "object") {
      if (isNewest()) this.steno.dropUnwritten(this.text.job, segment);
      void this.text.seen(done.revision).then(() => isNewest() && this.#onTheWay.delete(segment));
      return true;
    }
    const isGone = this.text.numberOf(segment) < 0;
    if (isGone) this.steno.warn(t.editing.refused);
    if (!isNewest()) return false;
    this.#onTheWay.delete(segment);
    if (done === "refused" && isGone) this.steno.dropUnwritten(this.text.job, segment);
    else this.steno.unwritten.keep(this.text.job, segment, text);
    // With the next key it is tried again, and after a while.
    if (this.active === segment) this.#sent = this.segment?.text ?? this.#sent;
    return false;
  }

  /** True once the text is there that has it. */
  async #do(edit: Edit): Promise<boolean> {
    const done = await this.#send(edit);
    if (typeof done === "object") await this.text.seen(done.revision);
    else if (done === "refused") this.steno.warn(t.editing.refused);
    return typeof done === "object";
  }

  /** Where it can't be stored that is told: once, however often it is tried. */
  async #send(edit: Edit): Promise<Edited | "refused" | "failed"> {
    let failed = false;
    const send = async (backend: Backend) => {
      try {
        return await backend.edit(this.text.job, edit);
      } catch (error) {
        failed = true;
        this.steno.tellNotWritten(asFailure(error), edit.kind === "set_text");
        return null;
      }
    };
    return (await this.#order(send)) ?? (failed ? "failed" : "refused");
  }

  /** One after the other, as they were asked for. */
  #order(work: (backend: Backend) => Promise<Edited | null>): Promise<Edited | null> {
    this.#underWay++;
    const mine = this.#last.then(async () => {
      const done = await this.steno.ask(work);
      this.#underWay--;
      if (done) this.#revision = done.revision;
      return done;
    });
    this.#last = mine;
    return mine;
  }
}

/** The first names of a list, and how many more there are. */
function someOf(names: string[]): string {
  const more = names.length - MOST_NAMES;
  return list(more > 0 ? [...names.slice(0, MOST_NAMES), t.closing.more(more)] : names);
}

/** A segment has no lines. */
export const oneLine = (text: string): string => text.replace(/\s*[\r\n]+\s*/g, " ");

/** Where in a text that ends which it has otherwise than before. */
function endOfChange(before: string, now: string): number {
  const most = Math.min(before.length, now.length);
  let same = 0;
  while (same < most && before.at(-1 - same) === now.at(-1 - same)) same++;
  return now.length - same;
}

/** What a text has more than before, in one place. */
function inserted(before: string, now: string): string {
  const end = endOfChange(before, now);
  const most = Math.min(end, before.length - (now.length - end));
  let same = 0;
  while (same < most && before[same] === now[same]) same++;
  return now.slice(same, end);
}

/** The uncertain words of a segment; of one that is doubtful for another reason, all of it. */
export function unsurePlaces(segment: Segment): Selection[] {
  const all: Selection[] = [];
  let at = 0;
  for (const [index, word] of segment.words.entries()) {
    const text = index === 0 ? word.text.trimStart() : word.text;
    const from = at + text.length - text.trimStart().length;
    at += text.length;
    if (word.probability < UNSURE) all.push({ from, to: at });
  }
  return all.length === 0 && segment.suspicions.length > 0 ? [{ from: 0, to: segment.text.length }] : all;
}
