import type { Look } from "../generated/contract";
import { t } from "../text";

/** Every action that has a key. */
export type Action = keyof typeof DEFAULTS;

/** Where a key means it: outside text fields, also while a segment is edited, only there, or only elsewhere. */
type Where = "anywhere" | "writing" | "reading";

/** Seconds that a step back or forward is. */
export const STEP = 3;

/** Every key, as transcribers' pedals and programs have them; what the user changes is kept with the window's look. */
const DEFAULTS = {
  toggle: ["Space", "Ctrl+Space", "F4", "MediaPlayPause"],
  back: ["F7", "Ctrl+ArrowLeft", "MediaTrackPrevious"],
  forward: ["F8", "Ctrl+ArrowRight", "MediaTrackNext"],
  slower: ["F5"],
  faster: ["F6"],
  passage: ["F3"],
  edit: ["F2", "Enter"],
  nextUnsure: ["F9"],
  previousUnsure: ["Shift+F9"],
  accept: ["Ctrl+Enter", "F10"],
  review: ["Ctrl+U"],
  split: ["Enter"],
  merge: ["Ctrl+J"],
  speaker: ["Ctrl+P"],
  undo: ["Ctrl+Z"],
  redo: ["Ctrl+Shift+Z", "Ctrl+Y"],
  pause: ["Ctrl+Shift+P"],
  search: ["Ctrl+F"],
  searchAll: ["Ctrl+Shift+F"],
  replace: ["Ctrl+H"],
  save: ["Ctrl+S"],
};

const WHERE: Partial<Record<Action, Where>> = { edit: "reading", split: "writing", merge: "writing", speaker: "writing" };
const where = (action: Action): Where => WHERE[action] ?? "anywhere";

export const ACTIONS = Object.keys(DEFAULTS) as Action[];

let chosen = $state.raw<Look["keys"]>({});

/** Those that the user chose, from now on. */
export function useKeys(keys: Look["keys"]): void {
  chosen = keys;
}

export const keysOf = (action: Action): string[] => chosen[action] ?? DEFAULTS[action];

/** All that the user chose, with those of one action changed; null: those it comes with. */
export function withKeys(action: Action, keys: string[] | null): Look["keys"] {
  const { [action]: _before, ...others } = chosen;
  return keys === null || keys.join() === DEFAULTS[action].join() ? others : { ...others, [action]: keys };
}

export const isChanged = (action: Action): boolean => chosen[action] !== undefined;

/** What else a key does where it would do this. */
export function conflict(action: Action, key: string): Action | null {
  const meet = (other: Action) => where(other) === where(action) || where(other) === "anywhere" || where(action) === "anywhere";
  return ACTIONS.find((other) => other !== action && meet(other) && keysOf(other).includes(key)) ?? null;
}

/** What a key press is called in the table; null for a modifier alone. */
export function chord(event: KeyboardEvent): string | null {
  if (["Control", "Shift", "Alt", "Meta", "AltGraph", "CapsLock", "Unidentified", "Dead", "Process"].includes(event.key)) return null;
  const held = [event.ctrlKey || event.metaKey ? "Ctrl+" : "", event.altKey ? "Alt+" : "", event.shiftKey ? "Shift+" : ""];
  const pressed = event.ctrlKey || event.metaKey ? latin(event) : event.key;
  const key = event.code === "Space" || pressed === " " ? "Space" : pressed.length === 1 ? pressed.toUpperCase() : pressed;
  return held.join("") + key;
}

/** With another script's letter on the key, the Latin one: Ctrl+Z is where я is. */
function latin({ key, code }: KeyboardEvent): string {
  const isForeign = /^[\p{L}\p{M}]$/u.test(key) && !/\p{Script=Latin}/u.test(key);
  return (isForeign && /^Key([A-Z])$/.exec(code)?.[1]) || key;
}

/** Without a modifier it writes or moves something in a text field. */
const TYPED = /^(Shift\+)?(.|Space|Enter|Escape|Tab|Backspace|Delete|Home|End|PageUp|PageDown|Arrow\w+)$/u;
/** What belongs to any field. */
const OF_FIELDS = /^Ctrl\+(Shift\+)?(Arrow\w+|Home|End|Backspace|Delete|[ACVX])$/;
/** What belongs to a field of one line; of the transcript the program itself undoes. */
const OF_LINES = /^Ctrl\+(Shift\+)?[ZY]$/;

/** Whether a press belongs to what has the focus. */
function isTaken(name: string, action: Action, target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return where(action) === "writing";
  const writing = target.matches("[data-testid=segment-text]");
  if (where(action) === "writing") return !writing;
  if (writing || target.isContentEditable || target.matches("textarea, input:not([type=range]):not([type=checkbox])")) {
    return TYPED.test(name) || OF_FIELDS.test(name) || (where(action) === "reading" && writing) || (!writing && OF_LINES.test(name));
  }
  return (name === "Space" || name === "Enter") && target.matches("button, select, summary, a, input:not([type=range]), [role=tab]");
}

/** What a press asks for; null where it means something else. */
export function actionOf(event: KeyboardEvent): Action | null {
  const name = chord(event);
  if (name === null || event.isComposing || event.defaultPrevented || document.querySelector("dialog[open]")) return null;
  return ACTIONS.find((action) => keysOf(action).includes(name) && !isTaken(name, action, event.target)) ?? null;
}

/** Whether a press would write something. */
export const isTyped = (event: KeyboardEvent): boolean =>
  !event.ctrlKey && !event.metaKey && !event.altKey && ((event.key.length === 1 && event.key !== " ") || event.key === "Process");

/** Keys as they are written on a keyboard. */
export const named = (keys: string[]): string => keys.map((key) => t.keys.named(key)).join(", ");

/** What a button does, with the keys that do it too. */
export function hint(label: string, action: Action): string {
  const keys = keysOf(action).filter((key) => !key.startsWith("Media"));
  return keys.length === 0 ? label : t.keys.hinted(label, named(keys));
}
