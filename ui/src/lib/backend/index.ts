import type { EngineInfo, Failure, Format, Place, Settings, Setup, TextUpdate, WindowEvent } from "../generated/contract";

/**
 * What the page asks of the program. There are two: the shell's, and one that
 * only pretends, for browsers. Whatever fails rejects with a `Failure`.
 */
export interface Backend {
  /** Called once, first; `onEvent` hears of everything from then on. */
  attach(onEvent: (event: WindowEvent) => void): Promise<Setup>;
  describe(): Promise<EngineInfo>;
  chooseFiles(): Promise<void>;
  addSample(): Promise<void>;
  chooseModel(): Promise<void>;
  changeSettings(settings: Settings): Promise<void>;
  startAnyway(): Promise<void>;
  /** Whole text first, then what changes, until another job is watched. */
  watch(job: number, onUpdate: (update: TextUpdate) => void): Promise<void>;
  cancel(job: number): Promise<void>;
  retry(job: number): Promise<void>;
  remove(job: number): Promise<void>;
  /** The file written; null where the user closed the dialog. */
  save(job: number, format: Format, place: Place): Promise<string | null>;
  close(really: boolean): Promise<void>;
}

/** The shell's; in a browser during development the pretended one, which no release contains. */
export async function backend(): Promise<Backend> {
  if (import.meta.env.DEV && !("__TAURI_INTERNALS__" in window)) {
    return (await import("./fake")).fakeBackend(new URLSearchParams(location.search));
  }
  return new (await import("./tauri")).TauriBackend();
}

/** Errors from elsewhere (a bug, a broken connection) take the same form. */
export function asFailure(error: unknown): Failure {
  if (typeof error === "object" && error !== null && "code" in error && "message" in error) return error as Failure;
  return { code: "internal", file: null, message: String(error), remedy: null };
}
