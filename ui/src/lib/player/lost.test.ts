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
    return { audio: `sound/${opened}`, peaks: "peaks", speed: "speed/", seconds: 60 };
  },
} as unknown as Backend;

/** An element that has loaded, and whose clock goes as `clock` says. */
function listening(clock: () => number): Player {
  const player = new Player(1, backend);
  let paused = true;
  Object.defineProperties(player.audio, {
    readyState: { get: () => 2 },
    paused: { get: () => paused },
    currentTime: { get: clock, set: () => {} },
    play: { value: async () => void (paused = false) },
    pause: { value: () => void (paused = true) },
  });
  return player;
}

test("without sound a player's process that is gone is asked for anew, at the same place", async () => {
  const player = listening(() => 0);
  await player.play(12.5, 20);
  await vi.advanceTimersByTimeAsync(5_000);
  expect(opened, "one that answers may be looking for the place").toBe(1);
  isAlive = false;
  await vi.advanceTimersByTimeAsync(1_500);
  expect(opened).toBe(2);
  expect(player.position).toBe(12.5);
  expect(player.failure).toBeNull();
  await vi.advanceTimersByTimeAsync(60_000);
  expect(opened, "once, then it is said").toBe(2);
  expect(player.failure?.message).toMatch(/No sound comes/);
  expect(player.audio.paused).toBe(true);
});

test("one that answers and sends nothing is not waited for without end", async () => {
  const player = listening(() => 0);
  await player.play(0);
  await vi.advanceTimersByTimeAsync(25_000);
  expect(opened).toBe(2);
  player.close();
});

test("sound that comes without being told of is followed, a seek alone is no sound", async () => {
  let seconds = 5;
  const player = listening(() => seconds);
  await player.play(5);
  const pass = (now: number) => {
    seconds = now;
    player.audio.dispatchEvent(new Event("timeupdate"));
  };
  pass(5);
  pass(40);
  expect(player.playing).toBe(false);
  pass(5.2);
  expect(player.playing).toBe(true);
  player.close();
});

test("what is heard, rests or was closed is left alone", async () => {
  let seconds = 0;
  const player = listening(() => (seconds += 0.1));
  await player.play(0);
  isAlive = false;
  await vi.advanceTimersByTimeAsync(60_000);
  player.pause();
  await vi.advanceTimersByTimeAsync(60_000);
  const other = listening(() => 0);
  await other.play(0);
  other.close();
  await vi.advanceTimersByTimeAsync(60_000);
  expect(opened).toBe(2);
  expect(player.failure).toBeNull();
});
