import { fireEvent, screen, waitFor } from "@testing-library/svelte";
import { beforeAll, beforeEach, expect, test, vi } from "vitest";
import type { Steno } from "../steno.svelte";
import { fillIn, opened } from "../testing";

// jsdom has no canvas: the chart is looked at in a real browser.
vi.mock("uplot", () => ({ default: class {} }));

let steno: Steno;

beforeAll(fillIn);

beforeEach(async () => {
  steno = await opened();
});

const click = async (id: string) => fireEvent.click(await screen.findByTestId(id));
const field = () => screen.findByTestId("segment-text") as Promise<HTMLTextAreaElement>;
const texts = () => steno.text?.pages.flat().map((segment) => segment.text) ?? [];
const active = () => steno.text?.numberOf(steno.editor?.active ?? -1) ?? -1;

/** Writes in the second passage of the list; the number of its segment. */
async function edit(): Promise<number> {
  await click("tab-review");
  await screen.findAllByTestId("passage");
  await fireEvent.keyDown(window, { key: "F9" });
  await click("edit-passage");
  await field();
  return active();
}

test("what is written in is drawn, however far from the passage the arrow keys went", async () => {
  const from = await edit();
  const step = from > 5 ? -1 : 1;
  for (let gone = 1; gone <= 4; gone++) {
    const input = await field();
    const end = step === 1 ? input.value.length : 0;
    input.setSelectionRange(end, end);
    await fireEvent.keyDown(input, { key: step === 1 ? "ArrowDown" : "ArrowUp" });
    expect(active()).toBe(from + gone * step);
    expect((await field()).value).toBe(texts()[active()]);
  }
  await fireEvent.input(await field(), { target: { value: "Far away." } });
  await waitFor(() => expect(texts()[from + 4 * step]).toBe("Far away."));
});

test("a segment that is split twice is drawn whole, and one that is joined with the one before too", async () => {
  const from = await edit();
  const before = texts();
  for (let split = 1; split <= 2; split++) {
    const input = await field();
    const at = input.value.indexOf(" ");
    input.setSelectionRange(at, at);
    await fireEvent.keyDown(input, { key: "Enter" });
    await waitFor(() => expect(active()).toBe(from + split));
    await waitFor(async () => expect((await field()).value).toBe(texts()[from + split]));
  }
  for (let joined = 1; joined >= -1; joined--) {
    const input = await field();
    input.setSelectionRange(0, 0);
    await fireEvent.keyDown(input, { key: "Backspace" });
    await waitFor(() => expect(active()).toBe(from + joined));
    await waitFor(async () => expect((await field()).value).toBe(texts()[from + joined]));
  }
  expect(texts()[from - 1]).toBe(`${before[from - 1]} ${before[from]}`);
});

test("what was being written in elsewhere is written down and left", async () => {
  const row = (await screen.findAllByTestId("segment"))[1];
  await fireEvent.dblClick(row?.querySelector(".words") ?? document.body);
  await fireEvent.input(await field(), { target: { value: "Half a senten" } });
  await click("tab-review");
  await screen.findAllByTestId("passage");
  expect(steno.editor?.active).toBeNull();
  await waitFor(() => expect(texts()[1]).toBe("Half a senten"));
});

test("the arrow keys go on from a passage that was chosen or accepted by key", async () => {
  await click("tab-review");
  const current = () => screen.getAllByTestId("passage").findIndex((row) => row.getAttribute("aria-current"));
  const row = (await screen.findAllByTestId("passage"))[2]?.querySelector<HTMLElement>(".row");
  row?.focus();
  // What Enter does on a button.
  row?.click();
  await waitFor(() => expect(current()).toBe(2));
  expect(document.activeElement).toBe(screen.getByTestId("review"));
  await fireEvent.keyDown(document.activeElement ?? document.body, { key: "ArrowDown" });
  expect(current()).toBe(3);
  const passages = screen.getAllByTestId("passage").length;
  screen.getByTestId("accept-passage").focus();
  await click("accept-passage");
  await waitFor(() => expect(screen.getAllByTestId("passage").length).toBe(passages - 1));
  await waitFor(() => expect(document.activeElement).toBe(screen.getByTestId("review")));
});

test("what is said is set in its own direction, in the text and among the passages", async () => {
  const undirected = () => [...document.querySelectorAll(".text-scroller .words, .said")].filter((words) => !words.closest("[dir=auto]"));
  await screen.findAllByTestId("segment");
  expect(undirected()).toEqual([]);
  await click("tab-review");
  await screen.findAllByTestId("passage");
  expect(undirected()).toEqual([]);
});
