import { fireEvent, screen, waitFor } from "@testing-library/svelte";
import { beforeEach, expect, test, vi } from "vitest";
import { FakeBackend } from "../backend/fake";
import type { Steno } from "../steno.svelte";
import { fillIn, opened } from "../testing";
import { t } from "../text";
import { clock } from "../ui/format";

// jsdom has no canvas.
vi.mock("uplot", () => ({
  default: class {
    setData() {}
    setSize() {}
    destroy() {}
  },
}));

let backend: FakeBackend;
let steno: Steno;

beforeEach(async () => {
  fillIn();
  globalThis.ResizeObserver = class {
    observe() {}
    unobserve() {}
    disconnect() {}
  };
  backend = new FakeBackend(1);
  steno = await opened(backend);
});

const click = async (id: string, index = 0) => fireEvent.click((await screen.findAllByTestId(id))[index] ?? document.body);
const headings = () => screen.queryAllByTestId("chapter-heading").map((heading) => heading.textContent);
const titles = () => screen.queryAllByTestId("chapter-title").map((field) => (field as HTMLInputElement).value);
const rename = async (index: number, value: string) => fireEvent.change((await screen.findAllByTestId("chapter-title"))[index] ?? document.body, { target: { value } });
const middle = () => Math.floor((steno.text?.length ?? 0) / 2);

async function find(): Promise<void> {
  backend.compares();
  await click("find-chapters");
  await waitFor(() => expect(headings()).toEqual(["Harbour, ferry", "Quay"]));
}

test("why no chapters were found is said with the recording's name, and no longer beside another one", async () => {
  const failure = { code: "recording_too_short", file: null, message: "It has three minutes.", remedy: null } as const;
  backend.findChapters = () => Promise.reject(failure);
  backend.drop(["/a/next.mp3"]);
  await waitFor(() => expect(steno.jobs).toHaveLength(2));
  await steno.editor?.findChapters();
  const name = steno.job?.name ?? "";
  await waitFor(() => expect(screen.getAllByTestId("toast").map((toast) => toast.textContent).join()).toContain(`${name}: ${t.errors.recording_too_short}`));
  steno.select(steno.jobs.find(({ id }) => id !== steno.selected)?.id ?? 0);
  await waitFor(() => expect(steno.toasts.map(({ text }) => text).join()).not.toContain(t.errors.recording_too_short));
});

test("without a model for meaning, what is missing is said", async () => {
  await click("find-chapters");
  await screen.findByText(`${steno.job?.name}: ${t.errors.no_embedding_model}`);
  expect(screen.getByText(t.told.remedies.no_embedding_model)).toBeTruthy();
  await waitFor(() => expect((screen.getByTestId("find-chapters") as HTMLButtonElement).disabled).toBe(false));
  expect(screen.queryByTestId("chapters")).toBeNull();
});

test("chapters stand above their segments and in a list that leads to them", async () => {
  await find();
  expect(screen.getByTestId("chapters").querySelector("summary")?.textContent).toBe(t.chapters.count(2));
  const heading = screen.getAllByTestId("chapter-heading")[1];
  const number = Number(heading?.closest("li")?.nextElementSibling?.getAttribute("data-index"));
  expect(number).toBe(middle());
  const times = screen.getAllByTestId("chapter");
  expect(times.map((one) => one.textContent)).toEqual([clock(0), clock(steno.text?.at(number)?.start ?? 0)]);
  const shown: number[] = [];
  HTMLElement.prototype.scrollIntoView = function () {
    shown.push(Number(this.getAttribute("data-index")));
  };
  times[0]?.focus();
  await fireEvent.keyDown(times[0] ?? document.body, { key: "ArrowDown" });
  expect(document.activeElement).toBe(times[1]);
  await fireEvent.click(times[1] ?? document.body);
  await waitFor(() => expect(shown).toContain(number));
  // There one writes on.
  await fireEvent.keyDown(screen.getByTestId("transcript"), { key: "F2" });
  expect(((await screen.findByTestId("segment-text")) as HTMLTextAreaElement).value).toBe(steno.text?.at(number)?.text);
});

test("chapters are renamed, removed and added, and each of that is undone", async () => {
  await find();
  await rename(1, "The quay at night");
  await waitFor(() => expect(headings()).toEqual(["Harbour, ferry", "The quay at night"]));
  await rename(1, "  ");
  expect(titles()).toEqual(["Harbour, ferry", "The quay at night"]);
  // What was said in the first belongs to the second.
  await click("remove-chapter");
  await waitFor(() => expect(headings()).toEqual(["The quay at night"]));
  expect(steno.text?.chapters[0]?.segment).toBe(steno.text?.at(0)?.id);
  await click("undo");
  await waitFor(() => expect(headings()).toEqual(["Harbour, ferry", "The quay at night"]));
  await click("undo");
  await waitFor(() => expect(headings()).toEqual(["Harbour, ferry", "Quay"]));
  await click("redo");
  await waitFor(() => expect(headings()).toEqual(["Harbour, ferry", "The quay at night"]));

  expect((screen.getByTestId("add-chapter") as HTMLButtonElement).disabled, "nothing is selected").toBe(true);
  steno.editor?.open(steno.text?.at(2)?.id ?? 0);
  await waitFor(() => expect((screen.getByTestId("add-chapter") as HTMLButtonElement).disabled).toBe(false));
  await click("add-chapter");
  await waitFor(() => expect(headings()).toHaveLength(3));
  expect(steno.text?.chapters[1]?.segment).toBe(steno.text?.at(2)?.id);
  expect(steno.text?.at(2)?.text).toContain(headings()[1] ?? "-");
  expect(screen.queryByTestId("begin-chapter"), "one begins here already").toBeNull();
  while (headings().length > 0) {
    const before = headings().length;
    await click("remove-chapter");
    await waitFor(() => expect(headings()).toHaveLength(before - 1));
  }
  expect(screen.queryByTestId("chapters")).toBeNull();
});

test("a chapter is begun by hand, without a model", async () => {
  steno.editor?.open(steno.text?.at(3)?.id ?? 0);
  await click("begin-chapter");
  await waitFor(() => expect(headings()).toHaveLength(2));
  expect(steno.text?.chapters.map(({ segment }) => segment)).toEqual([steno.text?.at(0)?.id, steno.text?.at(3)?.id]);
});
