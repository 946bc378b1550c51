import { fireEvent, render, screen } from "@testing-library/svelte";
import { beforeAll, expect, test, vi } from "vitest";
import { Text } from "../transcript/text.svelte";
import type { Player } from "./player.svelte";
import Waveform from "./Waveform.svelte";

// jsdom has no canvas: what is drawn is looked at in a real browser.
beforeAll(() => void vi.spyOn(HTMLCanvasElement.prototype, "getContext").mockReturnValue(null));

const HOUR = 3600;
/** First and last second that can be seen. */
const shown = () => {
  const { min, max } = screen.getByTestId<HTMLInputElement>("play-position");
  return [Math.round(Number(min)), Math.round(Number(max))];
};

function listenTo(seconds: number, position: number): void {
  const player = { seconds, position, playing: false, peaks: null, source: {}, seek: () => {} } as unknown as Player;
  render(Waveform, { player, text: new Text(1) });
}

test("a long waveform is stretched around the place that is heard, to ten seconds at most, and shrinks again", async () => {
  listenTo(HOUR, 1800);
  expect(shown()).toEqual([0, HOUR]);
  await fireEvent.click(screen.getByTestId("zoom-in"));
  expect(shown()).toEqual([900, 2700]);
  for (let step = 0; step < 12; step++) await fireEvent.click(screen.getByTestId("zoom-in"));
  expect(shown()).toEqual([1795, 1805]);
  expect(screen.getByTestId<HTMLButtonElement>("zoom-in").disabled).toBe(true);
  for (let step = 0; step < 12; step++) await fireEvent.click(screen.getByTestId("zoom-out"));
  expect(shown()).toEqual([0, HOUR]);
});

test("the wheel stretches the waveform, and scrolls it with the shift key, never beyond the recording", async () => {
  listenTo(HOUR, 0);
  const wave = screen.getByTestId("waveform").parentElement ?? document.body;
  for (let step = 0; step < 4; step++) await fireEvent.wheel(wave, { deltaY: -100 });
  const [first, last] = shown() as [number, number];
  expect([first, last]).toEqual([0, Math.round(HOUR / 1.5 ** 4)]);
  await fireEvent.wheel(wave, { deltaY: 250, shiftKey: true });
  expect(shown()).toEqual([Math.round(last / 2), Math.round(last * 1.5)]);
  for (let step = 0; step < 20; step++) await fireEvent.wheel(wave, { deltaY: 500, shiftKey: true });
  expect(shown()).toEqual([HOUR - last, HOUR]);
});

test("a short waveform needs no stretching", () => {
  listenTo(59, 0);
  expect(screen.queryByTestId("zoom-in")).toBeNull();
});
