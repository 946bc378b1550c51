// A player whose process is gone while the element tells of no error. The
// element and the process are pretended: jsdom plays nothing.
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Backend } from "../backend";
import { Player } from "./player.svelte";

let opened: number, isAlive: boolean;

beforeEach(() => {
  vi.useFakeTimers();
  [opened, isAlive] = [0, true];
  vi.stubGlobal("fetch", (address: string) => {
    if (!isAlive) return Promise.reject(new TypeError("nobody answers"));
    return Promise.resolve(Response.json(address.endsWith("peaks") ? { seconds: 1, done: true, values: [] } : null));
  });
});
afterEach(() => {
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

const backend = {
  async playSource() {
    opened += 1;
    return { audio: `sound/${opened}`, peaks: "peaks", pictures: "pictures", speed: "speed/", seconds: 60 };
  },
} as unknown as Backend;

/** An element that has loaded, with a clock that somebody else moves. */
function listening(): { player: Player; element: { at: number; seeks: boolean; paused: boolean; is: (event: string) => void } } {
  const player = new Player(1, backend);
  const is = (event: string) => void player.audio.dispatchEvent(new Event(event));
  const element = { at: 0, seeks: false, paused: true, is };
  Object.defineProperties(player.audio, {
    readyState: { get: () => 2 },
    paused: { get: () => element.paused },
    seeking: { get: () => element.seeks },
    currentTime: { get: () => element.at, set: (at: number) => ([element.at, element.seeks] = [at, true]) },
    play: { value: async () => void (element.paused = false) },
    pause: { value: () => void (element.paused = true) },
  });
  return { player, element };
}

type Element = ReturnType<typeof listening>["element"];

function arrive(element: Element): void {
  element.seeks = false;
  element.is("seeked");
}

test("without sound a player's process that is gone is asked for anew, at the same place", async () => {
  const { player, element } = listening();
  await player.play(12.5, 20);
  arrive(element);
  expect(element.paused).toBe(false);
  await vi.advanceTimersByTimeAsync(5_000);
  expect(opened, "one that answers may be looking for the place").toBe(1);
  isAlive = false;
  await vi.advanceTimersByTimeAsync(1_500);
  expect(opened).toBe(2);
  expect(player.position).toBe(12.5);
  expect(player.failure).toBeNull();
  await vi.advanceTimersByTimeAsync(60_000);
  expect(opened, "once, then it is said").toBe(2);
  expect(player.failure?.message).toMatch(/Playback stopped/);
  expect([element.paused, player.wanted]).toEqual([true, false]);
});

test("one that answers and sends nothing is not waited for without end", async () => {
  const { player, element } = listening();
  await player.play(0);
  await vi.advanceTimersByTimeAsync(25_000);
  expect(opened).toBe(2);
  expect(element.paused).toBe(false);
  player.close();
});

test("while it seeks it is told nothing, and then what was wanted last", async () => {
  const { player, element } = listening();
  await player.play(10);
  expect(element).toMatchObject({ at: 10, paused: true });
  player.seek(20);
  player.seek(30);
  expect(element.at).toBe(10);
  arrive(element);
  expect(element).toMatchObject({ at: 30, paused: true });
  arrive(element);
  expect(element.paused).toBe(false);
  player.seek(5);
  player.pause();
  expect(element.paused).toBe(false);
  arrive(element);
  expect(element).toMatchObject({ at: 5, paused: true });
  // What plays or rests after a seek without being told to is put right …
  element.paused = false;
  element.is("play");
  expect(element.paused).toBe(true);
  await player.toggle();
  element.paused = true;
  element.is("pause");
  expect([element.paused, player.wanted]).toEqual([false, true]);
  // … and later it is a key of the desktop.
  vi.advanceTimersByTime(1_500);
  element.paused = true;
  element.is("pause");
  expect([element.paused, player.wanted]).toEqual([true, false]);
  element.paused = false;
  element.is("play");
  expect([element.paused, player.wanted]).toEqual([false, true]);
  player.close();
});

test("on its way to a passage before, it does not rest where that ends", async () => {
  const { player, element } = listening();
  await player.play(50, 60);
  arrive(element);
  element.is("playing");
  void player.play(100, 110);
  void player.play(10, 20);
  element.is("timeupdate");
  arrive(element);
  arrive(element);
  expect(element).toMatchObject({ at: 10, paused: false });
  element.at = 20.1;
  element.is("timeupdate");
  expect([element.paused, player.wanted]).toEqual([true, false]);
});

test("sound that comes without being told of is followed, a seek alone is no sound", async () => {
  const { player, element } = listening();
  await player.play(5);
  arrive(element);
  const pass = (now: number) => {
    element.at = now;
    element.is("timeupdate");
  };
  pass(5);
  pass(40);
  expect(player.playing).toBe(false);
  pass(5.2);
  expect(player.playing).toBe(true);
  player.close();
});

test("what is heard, rests or was closed is left alone", async () => {
  const { player, element } = listening();
  await player.play(0);
  isAlive = false;
  for (let second = 0; second < 60; second++) {
    element.at += 1;
    await vi.advanceTimersByTimeAsync(1_000);
  }
  player.pause();
  await vi.advanceTimersByTimeAsync(60_000);
  const other = listening();
  await other.player.play(0);
  other.player.close();
  await vi.advanceTimersByTimeAsync(60_000);
  expect(opened).toBe(2);
  expect(player.failure).toBeNull();
});
