import { asFailure, type Backend } from "../backend";
import type { Failure, PlaySource } from "../generated/contract";
import { t } from "../text";

export const SPEEDS = [0.5, 0.75, 1, 1.25, 1.5, 1.75, 2, 2.5, 3];

/** Milliseconds: what is said is not told more often, since every telling costs a drawing. A frame's turn would come twice as often,
 *  and never in a hidden window, where a passage has to end too. */
const FOLLOWED = 40;

/** Seconds from the place that was asked for; more was a seek. */
const MOVED_ON = 2;

/** Milliseconds from one look at the growing waveform to the next. */
const PEAKS_PAUSE = 1000;

/** Milliseconds from one look at whether there is sound to the next. */
const LOOK_PAUSE = 1000;
/** Looks without any until the player's process is asked whether it is there, and until it is taken to hang:
 *  to find a place can take a pass over a recording. */
const DOUBT = 2;
const PATIENCE = 20;

/** Milliseconds after a seek in which WebKit may rest of its own accord. */
const UNSETTLED = 1000;

/** What a waveform is drawn from: lowest and highest of equal stretches, in 128ths. */
export interface Peaks {
  /** Of a stretch. */
  seconds: number;
  done: boolean;
  values: number[];
}

/** Listening to one recording. */
export class Player {
  source = $state.raw<PlaySource | null>(null);
  peaks = $state.raw<Peaks | null>(null);
  failure = $state.raw<Failure | null>(null);
  /** Sound comes. */
  playing = $state(false);
  /** The user asked to hear it. */
  wanted = $state(false);
  position = $state(0);
  /** A place was chosen in it: what is said there is marked, also while it rests. */
  begun = $state(false);
  speed = $state(1);
  /** Of the recording, as far as it is known. */
  seconds = $derived(this.source?.seconds ?? 0);

  #audio = new Audio();
  #opening: Promise<boolean> | null = null;
  #gone = false;
  /** Where it is to rest, in seconds. */
  #until = Infinity;
  /** Where it is to go, once a seek that is under way is done. */
  #target: number | null = null;
  #seeked = -Infinity;
  /** It was told to rest so that it begins again. */
  #nudged = false;
  /** The player's process was asked again since sound last came. */
  #revived = false;
  #watching: ReturnType<typeof setInterval> | undefined;

  constructor(
    readonly job: number,
    readonly backend: Backend,
  ) {
    const audio = this.#audio;
    audio.preload = "metadata";
    audio.preservesPitch = true;
    audio.addEventListener("playing", () => this.#sounds());
    audio.addEventListener("pause", () => this.#rested());
    audio.addEventListener("ended", () => {
      this.#unwanted();
      this.#rest();
    });
    audio.addEventListener("timeupdate", () => {
      // After a rest in the middle of a seek WebKit plays and never says so.
      const since = audio.currentTime - this.position;
      if (!audio.paused && !audio.seeking && since > 0 && since < MOVED_ON) this.#sounds();
      // Also where no frames are drawn.
      this.#stop();
    });
    audio.addEventListener("seeked", () => {
      this.#seeked = performance.now();
      if (this.#target === null) this.position = audio.currentTime;
      // Gone to its end it would begin anew.
      if (audio.ended) this.#unwanted();
      else this.#settle();
    });
    audio.addEventListener("loadedmetadata", () => this.#settle());
    audio.addEventListener("play", () => this.#begun());
    audio.addEventListener("error", () => void this.#lost());
  }

  /** The element that plays: it has nothing to show. */
  get audio(): HTMLAudioElement {
    return this.#audio;
  }

  /** Prepares it before the user wants to listen; says nothing where that fails. */
  async prepare(): Promise<void> {
    if (this.wanted || this.failure) return;
    await this.#open();
    if (!this.wanted) this.failure = null;
  }

  async toggle(): Promise<void> {
    if (this.wanted) this.pause();
    else await this.play(this.seconds > 0 && this.position >= this.seconds - 0.05 ? 0 : this.position);
  }

  /** Plays from a place, in seconds, as far as another. */
  async play(from: number, until = Infinity): Promise<void> {
    this.position = Math.max(0, from);
    this.begun = true;
    this.#until = until;
    this.#target = this.position;
    this.wanted = true;
    this.#watch();
    if (await this.#open()) this.#settle();
    else this.#unwanted();
  }

  /** Where it was heard last, before sound is asked for. */
  restAt(position: number): void {
    this.position = position;
    this.begun = true;
  }

  pause(): void {
    this.#unwanted();
    this.#settle();
  }

  seek(to: number): void {
    this.begun = true;
    this.#until = Infinity;
    this.position = Math.max(0, Math.min(to, this.seconds || Infinity));
    this.#target = this.position;
    this.#settle();
  }

  skip(seconds: number): void {
    this.seek(this.position + seconds);
  }

  setSpeed(speed: number): void {
    this.speed = speed;
    this.#audio.defaultPlaybackRate = speed;
    this.#audio.playbackRate = speed;
    void this.#answers();
  }

  /** One step slower or faster. */
  shift(steps: number): void {
    const at = SPEEDS.indexOf(this.speed) + steps;
    this.setSpeed(SPEEDS[Math.max(0, Math.min(at, SPEEDS.length - 1))] ?? 1);
  }

  close(): void {
    this.#gone = true;
    this.#unwanted();
    this.#audio.pause();
    this.#audio.removeAttribute("src");
    this.#audio.load();
    this.#audio.remove();
  }

  /** Brings the element to where it is to be. One thing at a time: WebKit, told to play or rest while it
   *  seeks, may do the opposite afterwards, or neither. */
  #settle(): void {
    const audio = this.#audio;
    if (!this.source || this.#gone || audio.readyState === 0 || audio.seeking) return;
    const target = this.#target;
    this.#target = null;
    // Where it is already a seek would only interrupt it.
    if (target !== null && Math.abs(audio.currentTime - target) > 0.01) audio.currentTime = target;
    else if (this.wanted && audio.paused) void this.#begin();
    else if (!this.wanted && !audio.paused) audio.pause();
  }

  async #begin(): Promise<void> {
    try {
      await this.#audio.play();
    } catch (error) {
      // Something else was asked for meanwhile; what is lost is told by its own event.
      if (this.#audio.error === null && !(error instanceof DOMException && error.name === "AbortError")) {
        this.#unwanted();
        this.failure = asFailure(error);
      }
    }
  }

  #begun(): void {
    const audio = this.#audio;
    const isSettled = this.#target === null && !audio.seeking && performance.now() - this.#seeked >= UNSETTLED;
    if (!this.wanted && !audio.paused && isSettled) {
      // A key of the desktop.
      [this.wanted, this.begun, this.#until] = [true, true, Infinity];
      this.#watch();
    }
    this.#settle();
  }

  #rested(): void {
    const [audio, nudged] = [this.#audio, this.#nudged];
    this.#nudged = false;
    if (!audio.paused) return;
    if (this.#target === null) this.position = audio.currentTime;
    this.#rest();
    if (!this.wanted || audio.ended) return;
    // Keys of the desktop have it rest too: that is what the user wants.
    if (nudged || performance.now() - this.#seeked < UNSETTLED) this.#settle();
    else this.#unwanted();
  }

  /** True once there is something to play. */
  #open(): Promise<boolean> {
    if (this.source) return Promise.resolve(true);
    this.#opening ??= this.#ask().finally(() => (this.#opening = null));
    return this.#opening;
  }

  async #ask(): Promise<boolean> {
    try {
      this.failure = null;
      const source = await this.backend.playSource(this.job);
      if (this.#gone) return false;
      this.source = source;
      this.#audio.src = source.audio;
      this.setSpeed(this.speed);
      void this.#draw(source);
      return true;
    } catch (error) {
      this.failure = asFailure(error);
      return false;
    }
  }

  /** Fetches the waveform until all of it is there. */
  async #draw(source: PlaySource): Promise<void> {
    try {
      while (!this.#gone && this.source === source) {
        const peaks = (await (await fetch(source.peaks)).json()) as Peaks;
        this.peaks = peaks;
        if (peaks.done) return;
        await new Promise((resolve) => setTimeout(resolve, PEAKS_PAUSE));
      }
    } catch {
      // Without a waveform it plays all the same.
    }
  }

  /** Tells the player's process how fast sound is heard: without that it stutters at worst.
   *  False where there is no listener. */
  #answers(): Promise<boolean> {
    if (!this.source) return Promise.resolve(false);
    return fetch(this.source.speed + String(this.speed)).then(
      () => true,
      () => false,
    );
  }

  #unwanted(): void {
    this.wanted = false;
    clearInterval(this.#watching);
  }

  /** An element whose connection broke while it rested may wait for ever and tell of no error. */
  #watch(): void {
    clearInterval(this.#watching);
    let [at, silent] = [this.#audio.currentTime, 0];
    const look = async () => {
      const [{ source }, audio] = [this, this.#audio];
      const rests = audio.paused && !audio.seeking && audio.readyState > 0;
      if (!source || rests || audio.currentTime !== at) {
        [at, silent] = [audio.currentTime, 0];
        return;
      }
      silent += 1;
      // All is there and nothing moves.
      if (silent === DOUBT && audio.readyState > HTMLMediaElement.HAVE_CURRENT_DATA && !audio.seeking) {
        this.#nudged = true;
        audio.pause();
      }
      const isLost = silent >= PATIENCE || (silent >= DOUBT && !(await this.#answers()));
      if (isLost && this.source === source && this.wanted) await this.#lost();
    };
    this.#watching = setInterval(() => void look(), LOOK_PAUSE);
  }

  /** The process that serves the sound may be gone: another is asked for, once. */
  async #lost(): Promise<void> {
    // Told of by the element and found by looking, it is lost once.
    if (!this.source) return;
    const [position, until, { error }] = [this.position, this.#until, this.#audio];
    this.#rest();
    this.source = null;
    if (this.#gone || !this.wanted) return;
    if (this.#revived) {
      this.#unwanted();
      this.#audio.pause();
      this.failure = { code: "player_failed", file: null, message: error?.message || t.player.silent, remedy: null };
      return;
    }
    this.#revived = true;
    await this.play(position, until);
  }

  #sounds(): void {
    this.#revived = false;
    if (this.playing) return;
    this.playing = true;
    this.#follow();
  }

  #stop(): void {
    // On its way elsewhere it is where it was to rest before.
    const arrived = this.#target === null && !this.#audio.seeking;
    if (this.playing && arrived && this.#audio.currentTime >= this.#until) this.pause();
  }

  #rest(): void {
    this.playing = false;
  }

  #follow(): void {
    if (!this.playing) return;
    const now = this.#audio.currentTime;
    if (this.#target === null) this.position = now;
    this.#stop();
    setTimeout(() => this.#follow(), FOLLOWED);
  }
}
