import { fireEvent, screen, waitFor } from "@testing-library/svelte";
import { beforeAll, beforeEach, expect, test, vi } from "vitest";
import { FakeBackend } from "../backend/fake";
import { fillIn, opened } from "../testing";
import { t } from "../text";
import { Player } from "./player.svelte";

// jsdom has no canvas: the chart is looked at in a real browser.
vi.mock("uplot", () => ({ default: class {} }));

const play = vi.spyOn(Player.prototype, "play").mockResolvedValue();

beforeAll(fillIn);
beforeEach(() => play.mockClear());

/** As a browser does: where nothing can be selected it takes the first text that can. */
function takeTheFirst(): void {
  const words = document.querySelector("[data-index] .words");
  if (!words) throw new Error("there is no text");
  const walker = document.createTreeWalker(words, NodeFilter.SHOW_TEXT);
  let first = walker.nextNode() as Text;
  while (first.length === 0) first = walker.nextNode() as Text;
  document.caretRangeFromPoint = () => {
    const range = document.createRange();
    range.setStart(first, 1);
    return range;
  };
}

async function withPanels(): Promise<void> {
  const backend = new FakeBackend(1);
  const { text } = await opened(backend);
  await backend.edit(1, { kind: "set_speaker", segments: [1, 2, 3], speaker: "Speaker 1" });
  await backend.edit(1, { kind: "set_speaker", segments: [4], speaker: "Speaker 2" });
  text?.apply({
    job: 1, from: text.length, segments: [], changes: [], editing: text.editing, chapters: [], live_text: null, ending: text.ending && { ...text.ending, gaps: [{ start: 1, end: 2 }] },
    notices: [{ code: "audio.mono", severity: "degraded", at: null, told: null, text: "A notice." }],
  });
  await screen.findByTestId("speakers");
  await screen.findByText("A notice.");
  takeTheFirst();
}

test("only a click on the text is heard", async () => {
  await withPanels();
  const speakers = screen.getByTestId("speakers");
  const places = {
    "what opens the speakers": speakers.querySelector("summary"),
    "the speakers' names there": speakers.querySelector("summary bdi"),
    "their hint": screen.getByText(t.editing.joinHint),
    "their shares": speakers.querySelector(".time"),
    "their bar": speakers,
    "the notices": screen.getByText("A notice."),
    "the gaps": screen.getByTestId("gaps"),
    "the room around the text": screen.getByTestId("transcript"),
    "the search bar": document.querySelector(".bars"),
    "the tabs' panel": document.querySelector("[role=tabpanel]"),
  };
  for (const [what, place] of Object.entries(places)) {
    if (!place) throw new Error(`${what} is not there`);
    await fireEvent.click(place);
    expect(play, what).not.toHaveBeenCalled();
  }
  const words = document.querySelector("[data-index] .words");
  await fireEvent.click(words as Element);
  expect(play).toHaveBeenCalledOnce();
});

test("what is edited is left alone", async () => {
  await withPanels();
  await fireEvent.dblClick(document.querySelector("[data-index] .words") as Element);
  const edited = await waitFor(() => document.querySelector(".edited") ?? Promise.reject(new Error("it is not edited")));
  play.mockClear();
  for (const place of [edited, ...edited.querySelectorAll("*")]) await fireEvent.click(place, { detail: 1, bubbles: true });
  expect(play).not.toHaveBeenCalled();
});
