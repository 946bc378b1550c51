import { fireEvent, screen, waitFor, within } from "@testing-library/svelte";
import { afterEach, beforeAll, expect, test, vi } from "vitest";
import { FakeBackend } from "../backend/fake";
import { fillIn, opened } from "../testing";
import { t } from "../text";
import { texts } from "../text/current.svelte";
import { actionOf, ACTIONS, chord, conflict, keysOf, useKeys, type Action } from "./keys.svelte";

// jsdom has no canvas: the chart is looked at in a real browser.
vi.mock("uplot", () => ({ default: class {} }));

beforeAll(fillIn);
afterEach(() => useKeys({}));

test.each<[KeyboardEventInit, string | null]>([
  [{ key: "F9", shiftKey: true }, "Shift+F9"],
  [{ key: "z", ctrlKey: true }, "Ctrl+Z"],
  [{ key: "Z", ctrlKey: true, shiftKey: true }, "Ctrl+Shift+Z"],
  [{ key: " ", code: "Space", metaKey: true }, "Ctrl+Space"],
  [{ key: "я", code: "KeyZ", ctrlKey: true }, "Ctrl+Z"],
  [{ key: "Я", code: "KeyZ", metaKey: true, shiftKey: true }, "Ctrl+Shift+Z"],
  [{ key: "ب", code: "KeyF", ctrlKey: true }, "Ctrl+F"],
  [{ key: "я", code: "KeyZ" }, "Я"],
  // Latin letters stay what they are, wherever they lie.
  [{ key: "z", code: "KeyY", ctrlKey: true }, "Ctrl+Z"],
  [{ key: "é", code: "KeyW", ctrlKey: true }, "Ctrl+É"],
  [{ key: "MediaPlayPause" }, "MediaPlayPause"],
  [{ key: "Control", ctrlKey: true }, null],
])("%j is called %s", (press, name) => {
  expect(chord(new KeyboardEvent("keydown", press))).toBe(name);
});

test("no key that comes with the program does two things at one place, and each is told in every language", () => {
  for (const action of ACTIONS) {
    for (const key of keysOf(action)) expect(conflict(action, key), `${key} for ${action}`).toBeNull();
    for (const text of Object.values(texts)) expect(text.keys.actions[action]).toBeTruthy();
  }
});

test("keys belong to what has the focus, or to the program", () => {
  const element = (html: string) => {
    const parent = document.createElement("div");
    parent.innerHTML = html;
    return parent.firstElementChild ?? parent;
  };
  const [body, button] = [document.body, element("<button></button>")];
  const [search, writing, speed] = [element("<input>"), element('<textarea data-testid="segment-text"></textarea>'), element('<input type="range">')];
  const cases: [Element, KeyboardEventInit, Action | null][] = [
    [body, { key: "Enter" }, "edit"],
    [button, { key: "Enter" }, null],
    [search, { key: "Enter" }, null],
    [writing, { key: "Enter" }, "split"],
    [writing, { key: "Enter", ctrlKey: true }, "accept"],
    [writing, { key: "F2" }, null],
    [search, { key: "F9" }, "nextUnsure"],
    [writing, { key: "z", ctrlKey: true }, "undo"],
    [search, { key: "z", ctrlKey: true }, null],
    [search, { key: "c", ctrlKey: true }, null],
    [writing, { key: "ArrowLeft", ctrlKey: true }, null],
    [speed, { key: "ArrowLeft", ctrlKey: true }, "back"],
    [body, { key: "j", ctrlKey: true }, null],
    [writing, { key: "j", ctrlKey: true }, "merge"],
    [writing, { key: "Enter", isComposing: true }, null],
  ];
  for (const [target, init, expected] of cases) {
    const event = new KeyboardEvent("keydown", init);
    Object.defineProperty(event, "target", { value: target });
    expect(actionOf(event), `${JSON.stringify(init)} on ${target.outerHTML.slice(0, 40)}`).toBe(expected);
  }
});

test("a key is added, told on the button, refused where it does something else, taken away and reset", async () => {
  const backend = new FakeBackend(1);
  await opened(backend);
  await fireEvent.click(screen.getByTestId("view-settings"));
  const row = async (action: Action) => within(await screen.findByTestId(`keys-${action}`));
  const add = async (action: Action, press: KeyboardEventInit) => {
    const button = (await row(action)).getByTestId("add-key");
    await fireEvent.click(button);
    await fireEvent.keyDown(button, press);
  };
  await add("accept", { key: "F7" });
  expect((await screen.findByTestId("key-taken")).textContent).toBe(t.keys.taken("F7", t.keys.actions.back));
  expect(backend.look.keys).toEqual({});
  await add("accept", { key: "F12" });
  await waitFor(() => expect(backend.look.keys).toEqual({ accept: ["Ctrl+Enter", "F10", "F12"] }));
  // Where one is written in a field the same key may do something else.
  await add("split", { key: "F2" });
  await waitFor(() => expect(keysOf("split")).toEqual(["Enter", "F2"]));
  await fireEvent.click((await row("back")).getAllByTestId("remove-key")[0] ?? document.body);
  await waitFor(() => expect(keysOf("back")).toEqual(["Ctrl+ArrowLeft", "MediaTrackPrevious"]));
  await add("accept", { key: "F7" });
  await waitFor(() => expect(keysOf("accept")).toContain("F7"));
  await fireEvent.click((await row("split")).getByTestId("reset-keys"));
  await waitFor(() => expect(keysOf("split")).toEqual(["Enter"]));

  await fireEvent.click(screen.getByTestId("view-recordings"));
  expect((await screen.findByTestId("play-back")).title).toBe(`${t.player.back} (Ctrl+←)`);
  await fireEvent.click(screen.getByTestId("tab-review"));
  const before = (await screen.findAllByTestId("passage")).length;
  await fireEvent.keyDown(window, { key: "F12" });
  await waitFor(() => expect(screen.getAllByTestId("passage").length).toBe(before - 1));
}, 30_000);
