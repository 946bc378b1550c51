import { fireEvent, render, screen, waitFor } from "@testing-library/svelte";
import { expect, test } from "vitest";
import { FakeBackend } from "../backend/fake";
import { Steno } from "../steno.svelte";
import { t } from "../text";
import HistoryPage from "./HistoryPage.svelte";

test("how much was found is told, the passages are not read aloud", async () => {
  const backend = new FakeBackend(1);
  backend.settings = { ...backend.settings, model: 1 };
  backend.show("history");
  render(HistoryPage, { steno: new Steno(backend) });
  const status = screen.getByRole("status");
  expect(status.textContent).toBe("");
  const type = (value: string) => fireEvent.input(screen.getByTestId("history-search"), { target: { value } });
  await type("harbour");
  const hits = await screen.findAllByTestId("hit");
  expect(status.textContent).toBe(t.history.hits(hits.length));
  for (const hit of hits) expect(hit.closest("[aria-live], [role=status]")).toBeNull();
  await type("no such words");
  await waitFor(() => expect(status.textContent).toBe(t.history.nothing));
  await type("");
  await waitFor(() => expect(status.textContent).toBe(""));
  expect(screen.getByRole("status"), "one and the same").toBe(status);
});

test("the lists for tags, folders and order stay above what was found", async () => {
  const backend = new FakeBackend(1);
  backend.settings = { ...backend.settings, model: 1 };
  backend.show("history");
  render(HistoryPage, { steno: new Steno(backend) });
  await fireEvent.input(screen.getByTestId("history-search"), { target: { value: "harbour" } });
  const [hit] = await screen.findAllByTestId("hit");
  for (const list of ["history-shown", "history-order"]) {
    const place = screen.getByTestId(list).compareDocumentPosition(hit as Node);
    expect(place & Node.DOCUMENT_POSITION_FOLLOWING, list).toBeTruthy();
  }
});

test("all hits of a transcript can be listed, what is left out is said, and the search is there on return", async () => {
  const backend = new FakeBackend(1);
  backend.settings = { ...backend.settings, model: 1 };
  backend.show("history");
  const steno = new Steno(backend);
  const { unmount } = render(HistoryPage, { steno });
  await fireEvent.input(screen.getByTestId("history-search"), { target: { value: "the" } });
  const more = (await screen.findAllByTestId("all-hits"))[0];
  const group = more?.closest<HTMLElement>("[data-testid=hits-of]");
  const listed = () => group?.querySelectorAll("[data-testid=hit]").length;
  expect(listed()).toBe(5);
  await fireEvent.click(more ?? document.body);
  await waitFor(() => expect(listed()).toBeGreaterThan(5));
  // Several places in one text are several.
  const places = [...document.querySelectorAll("mark")].length;
  const rest = [...document.querySelectorAll("[data-testid=all-hits]")].length;
  if (rest === 0) expect(screen.getByRole("status").textContent).toBe(t.history.hits(places));
  unmount();
  backend.moreFound = true;
  render(HistoryPage, { steno });
  expect(screen.getByTestId<HTMLInputElement>("history-search").value).toBe("the");
  await screen.findAllByTestId("hit");
  expect(screen.getByRole("status").textContent).toMatch(/there are more/);
});

test("what was found in the history is marked and in view when it is opened", async () => {
  const backend = new FakeBackend(1);
  backend.settings = { ...backend.settings, model: 1 };
  backend.show("history");
  const steno = new Steno(backend);
  render(HistoryPage, { steno });
  await fireEvent.input(screen.getByTestId("history-search"), { target: { value: "harbour" } });
  await fireEvent.click((await screen.findAllByTestId("hit"))[0] ?? document.body);
  await waitFor(() => expect(steno.editor?.sought).toBe("harbour"));
  expect(steno.editor?.wanted).not.toBeNull();
});

test("transcripts are tagged, shown by tag or folder, found by tag, and sorted", async () => {
  const backend = new FakeBackend(1);
  backend.settings = { ...backend.settings, model: 1 };
  backend.show("history");
  const steno = new Steno(backend);
  const { unmount } = render(HistoryPage, { steno });
  const titles = () => screen.queryAllByTestId("open-document").map((one) => one.querySelector("strong")?.textContent);
  await screen.findAllByTestId("document");
  const all = titles();
  expect(all.length).toBeGreaterThan(1);
  const row = (title: string | null | undefined) =>
    screen.getAllByTestId("document").find((one) => one.querySelector("strong")?.textContent === title) ?? document.body;
  const inRow = (title: string | null | undefined, id: string) => row(title).querySelector(`[data-testid=${id}]`) ?? document.body;
  const tagsOf = (title: string | null | undefined) => [...row(title).querySelectorAll("[data-testid=tag]")].map((one) => one.textContent);

  await fireEvent.click(inRow(all[1], "edit-tags"));
  await fireEvent.input(screen.getByTestId("tags"), { target: { value: "court,  Ähre, court" } });
  await fireEvent.keyDown(screen.getByTestId("tags"), { key: "Enter" });
  await waitFor(() => expect(tagsOf(all[1])).toEqual(["court", "Ähre"]));
  // Escape leaves them as they were.
  await fireEvent.click(inRow(all[1], "edit-tags"));
  await fireEvent.input(screen.getByTestId("tags"), { target: { value: "gone" } });
  await fireEvent.keyDown(screen.getByTestId("tags"), { key: "Escape" });
  await waitFor(() => expect(tagsOf(all[1])).toEqual(["court", "Ähre"]));

  await fireEvent.click(inRow(all[1], "tag"));
  await waitFor(() => expect(titles()).toEqual([all[1]]));
  expect(screen.getByTestId<HTMLSelectElement>("history-shown").value).toBe("tag:court");
  await fireEvent.change(screen.getByTestId("history-shown"), { target: { value: "" } });
  await waitFor(() => expect(titles()).toEqual(all));
  await fireEvent.input(screen.getByTestId("history-search"), { target: { value: "URT" } });
  await waitFor(() => expect(titles()).toEqual([all[1]]));
  await fireEvent.input(screen.getByTestId("history-search"), { target: { value: "" } });

  const folders = [...screen.getByTestId("history-shown").querySelectorAll("option")].filter(({ value }) => value.startsWith("folder:"));
  expect(folders.length).toBeGreaterThan(0);
  await fireEvent.change(screen.getByTestId("history-order"), { target: { value: "title" } });
  const sorted = [...all].sort((a, b) => (a ?? "").localeCompare(b ?? "", "en", { numeric: true }));
  await waitFor(() => expect(titles()).toEqual(sorted));
  // The order is there on return.
  unmount();
  render(HistoryPage, { steno });
  await waitFor(() => expect(titles()).toEqual(sorted));

  // Of a tag that nothing has any more, everything is shown.
  await fireEvent.click(inRow(all[1], "tag"));
  await waitFor(() => expect(titles()).toEqual([all[1]]));
  await fireEvent.click(inRow(all[1], "edit-tags"));
  await fireEvent.input(screen.getByTestId("tags"), { target: { value: "" } });
  await fireEvent.keyDown(screen.getByTestId("tags"), { key: "Enter" });
  await waitFor(() => expect(titles()).toEqual(sorted));
});

test("the folder that tells recordings of one name apart stands apart from what follows", async () => {
  const backend = new FakeBackend(1);
  const [first] = [{ id: 1, title: "talk.mp3", folder: "/home/me", created: 0, changed: 0, duration: 8, language: "en", model: "small", tags: [] }];
  backend.documents = async () => [first, { ...first, id: 2, folder: "/home/you" }];
  render(HistoryPage, { steno: new Steno(backend) });
  const rows = await screen.findAllByTestId("open-document");
  expect(rows[1]?.textContent).toContain("/home/you · 0:08 · ");
});
