import { fireEvent, screen, waitFor, within } from "@testing-library/svelte";
import { beforeAll, expect, test, vi } from "vitest";
import { FakeBackend } from "../backend/fake";
import { t } from "../text";
import { fillIn, opened } from "../testing";

vi.mock("uplot", () => ({ default: class { setData() {} setSize() {} destroy() {} } }));

beforeAll(fillIn);

const corrected = [
  { word: "metoprolol", heard: ["met a pro law"], times: 4 },
  { word: "Aarhus", heard: ["R who's", "our house"], times: 2 },
];

async function show(words: string[]): Promise<FakeBackend> {
  const backend = new FakeBackend(1);
  backend.settings = { ...backend.settings, words };
  await opened(backend);
  backend.corrected = corrected;
  const menu = document.getElementById("more-settings") as HTMLElement;
  await fireEvent(menu, Object.assign(new Event("beforetoggle"), { newState: "open" }));
  return backend;
}

test("words that are corrected again and again are offered, and are expected once they were added", async () => {
  const backend = await show(["Grace"]);
  const offered = within(await screen.findByTestId("all-suggested"));
  expect(offered.getByTitle(t.decoding.corrected(2, "R who's, our house")).textContent?.trim()).toBe("Aarhus");
  await fireEvent.click(offered.getByText("metoprolol"));
  await waitFor(() => expect(backend.settings.words).toEqual(["Grace", "metoprolol"]));
  await waitFor(() => expect(screen.getByTestId<HTMLInputElement>("all-words").value).toBe("Grace, metoprolol"));
  expect(within(screen.getByTestId("all-suggested")).queryByText("metoprolol")).toBeNull();
});

test("a word that is ignored is offered no longer, until that is undone", async () => {
  const backend = await show([]);
  await fireEvent.click(await screen.findByLabelText(t.decoding.ignore("Aarhus")));
  const offered = () => within(screen.getByTestId("all-suggested")).getByRole("list", { hidden: true }).textContent;
  await waitFor(() => expect(offered()).not.toContain("Aarhus"));
  expect(offered()).toContain("metoprolol");
  expect(backend.settings.words).toEqual([]);
  await screen.findByText(t.decoding.ignored("Aarhus"));
  const undo = screen.getByTestId("all-offer-again");
  await waitFor(() => expect(document.activeElement).toBe(undo));
  await fireEvent.click(undo);
  await waitFor(() => expect(offered()).toContain("Aarhus"));
  expect(screen.queryByText(t.decoding.ignored("Aarhus"))).toBeNull();
});

test("a word that could not be ignored stays, and the reason is told", async () => {
  const backend = await show([]);
  backend.ignoreWord = () => Promise.reject({ code: "output_unwritable", message: "The disk is full.", remedy: null, file: null });
  await fireEvent.click(await screen.findByLabelText(t.decoding.ignore("Aarhus")));
  await screen.findByText(t.errors.output_unwritable);
  expect(screen.getByTestId("all-suggested").textContent).toContain("Aarhus");
  expect(screen.queryByText(t.decoding.ignored("Aarhus"))).toBeNull();
});

test("all are added at once", async () => {
  const backend = await show([]);
  await fireEvent.click(await screen.findByTestId("all-expect-all"));
  await waitFor(() => expect(backend.settings.words).toEqual(["metoprolol", "Aarhus"]));
  await waitFor(() => expect(screen.queryByTestId("all-suggested")).toBeNull());
});

test("nothing is offered that is expected already", async () => {
  await show(["aarhus"]);
  expect(within(await screen.findByTestId("all-suggested")).queryByText("Aarhus")).toBeNull();
  expect(screen.queryByTestId("all-expect-all"), "one alone has a button of its own").toBeNull();
});

test("a list of words is added from a file, each once, and saved as one", async () => {
  const backend = await show(["Grace", "naproxen"]);
  backend.wordList = ["Ada Lovelace", "Naproxen", "Bell, Gray", "Ada Lovelace"];
  await fireEvent.click(await screen.findByTestId("all-read-words"));
  const expected = ["Grace", "naproxen", "Ada Lovelace", "Bell", "Gray"];
  await waitFor(() => expect(backend.settings.words).toEqual(expected));
  await fireEvent.click(screen.getByTestId("all-save-words"));
  await waitFor(() => expect(backend.savedWords).toEqual([expected]));
  await screen.findByText(t.save.done("/home/me/words.txt"));
});

test("a file that is no list changes nothing and is named", async () => {
  const backend = await show([]);
  expect(screen.queryByTestId("all-save-words"), "there is nothing to save").toBeNull();
  backend.wordList = null;
  await fireEvent.click(await screen.findByTestId("all-read-words"));
  backend.readWordLists = () => Promise.reject({ code: "file_unreadable", message: "It is no text.", remedy: null, file: "/home/me/words.odt" });
  await fireEvent.click(screen.getByTestId("all-read-words"));
  await screen.findByText(t.errors.file_unreadable);
  expect(backend.settings.words).toEqual([]);
});
