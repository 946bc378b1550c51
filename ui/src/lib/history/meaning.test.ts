import { fireEvent, render, screen, waitFor } from "@testing-library/svelte";
import { expect, test } from "vitest";
import { FakeBackend } from "../backend/fake";
import { Steno } from "../steno.svelte";
import { t } from "../text";
import { filterOf, NO_FILTERS } from "./filters";
import HistoryPage from "./HistoryPage.svelte";

/** A page with a history, and a model that compares meanings where that is wanted. */
async function page(compares = true): Promise<{ backend: FakeBackend; steno: Steno; unmount: () => void }> {
  const backend = new FakeBackend(1);
  backend.settings = { ...backend.settings, model: 1 };
  backend.show("history");
  if (compares) backend.compares();
  const steno = new Steno(backend);
  await waitFor(() => expect(steno.index.model === null).toBe(!compares));
  const { unmount } = render(HistoryPage, { steno });
  await screen.findAllByTestId("document");
  return { backend, steno, unmount };
}

const type = (value: string) => fireEvent.input(screen.getByTestId("history-search"), { target: { value } });
const hits = () => screen.findAllByTestId("hit");
const passages = () => screen.queryAllByTestId("found-passage");

test("without a model for meaning the search is as it was, and says what a model would add", async () => {
  const { steno } = await page(false);
  expect(screen.getByTestId("needs-model").textContent).toContain(t.history.needsModel);
  expect(screen.queryByTestId("exact-words")).toBeNull();
  await type("harbour");
  await hits();
  expect(screen.queryAllByTestId("hits-of").length).toBeGreaterThan(0);
  expect(passages()).toEqual([]);
  await fireEvent.click(screen.getByTestId("get-model"));
  expect(steno.view).toBe("models");
});

test("passages say what matched, are opened and played at their place, and lead to others like them", async () => {
  const { steno } = await page();
  expect(screen.queryByTestId("needs-model")).toBeNull();
  await type("harbour master");
  await waitFor(() => expect(passages().some((one) => one.textContent?.includes(t.history.byMeaning))).toBe(true));
  expect(screen.getByRole("status").textContent).toBe(t.history.best(passages().length));
  const [first] = passages();
  expect(first?.textContent).toContain(t.history.byBoth);
  expect([...(first?.querySelectorAll("mark") ?? [])].some((one) => /harbour/i.test(one.textContent ?? ""))).toBe(true);

  await fireEvent.click(first?.querySelector("[data-testid=more-like-this]") ?? document.body);
  await screen.findByTestId("like-what");
  expect(passages()).toHaveLength(3);
  await fireEvent.click(screen.getByTestId("back-to-search"));
  await waitFor(() => expect(screen.queryByTestId("like-what")).toBeNull());

  await fireEvent.click(screen.getAllByTestId("play-passage")[0] ?? document.body);
  await waitFor(() => expect(steno.view).toBe("recordings"));
  expect(steno.editor?.wanted).not.toBeNull();
  expect(steno.editor?.toHear).toMatchObject({ start: expect.any(Number), end: expect.any(Number) });
});

test("letters are searched exactly where that is chosen, also on return", async () => {
  const { steno, unmount } = await page();
  await type("harbour");
  await waitFor(() => expect(passages().length).toBeGreaterThan(0));
  await fireEvent.click(screen.getByTestId("exact-words"));
  await waitFor(() => expect(passages()).toEqual([]));
  expect(screen.queryAllByTestId("hits-of").length).toBeGreaterThan(0);
  unmount();
  render(HistoryPage, { steno });
  expect(screen.getByTestId<HTMLInputElement>("exact-words").checked).toBe(true);
  await waitFor(() => expect(screen.queryAllByTestId("hits-of").length).toBeGreaterThan(0));
});

test("filters reach every search and can be reset", async () => {
  const { backend } = await page();
  await type("harbour");
  await waitFor(() => expect(passages().length).toBeGreaterThan(0));
  const all = passages().length;
  await screen.findByTestId("filter-speaker");
  const change = (id: string, value: string) => fireEvent.change(screen.getByTestId(id), { target: { value } });
  await change("filter-speaker", "Ada");
  await waitFor(() => expect(passages().every((one) => one.textContent?.includes("Ada"))).toBe(true));
  await change("filter-language", "de");
  await waitFor(() => expect(passages()).toEqual([]));
  expect(screen.getByRole("status").textContent).toBe(t.history.nothing);
  await change("filter-since", "2026-11-01");
  await change("filter-until", "2026-11-02");
  expect(backend.filters.at(-1)).toEqual(filterOf({ speaker: "Ada", language: "de", since: "2026-11-01", until: "2026-11-02" }, ""));
  await fireEvent.click(screen.getByTestId("filter-reset"));
  await waitFor(() => expect(passages()).toHaveLength(all));
  // Of a tag or a folder too, and in a search for letters.
  const folder = [...screen.getByTestId("history-shown").querySelectorAll("option")].find(({ value }) => value.startsWith("folder:"));
  await change("history-shown", folder?.value ?? "");
  await fireEvent.click(screen.getByTestId("exact-words"));
  await waitFor(() => expect(backend.filters.at(-1)).toEqual(filterOf(NO_FILTERS, folder?.value ?? "")));
});

test("a day begins where the user is, and the last one counts as a whole", () => {
  const filter = filterOf({ ...NO_FILTERS, since: "2026-11-01", until: "2026-11-30" }, "tag:court");
  expect(filter).toEqual({
    speaker: null, language: null, folder: null, tag: "court",
    since: new Date(2026, 10, 1).getTime(), until: new Date(2026, 11, 1).getTime(),
  });
});

test("the arrows walk from the search along what was found, and Escape returns", async () => {
  await page();
  const field = screen.getByTestId("history-search");
  await type("harbour");
  await waitFor(() => expect(passages().length).toBeGreaterThan(1));
  field.focus();
  const press = (key: string) => fireEvent.keyDown(document.activeElement ?? document.body, { key });
  const found = await hits();
  for (const expected of [found[0], found[1]]) {
    await press("ArrowDown");
    expect(document.activeElement).toBe(expected);
  }
  await press("ArrowUp");
  expect(document.activeElement).toBe(found[0]);
  await press("ArrowUp");
  expect(document.activeElement).toBe(field);
  await press("ArrowDown");
  await press("Escape");
  expect(document.activeElement).toBe(field);
});

test("how far the index is, and why it can't be made, is told", async () => {
  const { backend } = await page();
  backend.compares({ done: 1240, total: 5210, speed: 31 });
  const told = await screen.findByTestId("indexing");
  expect(told.textContent).toContain(t.history.indexing("1,240", "5,210", "31"));
  backend.compares({ speed: null, failure: { code: "out_of_memory", file: null, message: "There is not enough memory.", remedy: null } });
  expect((await screen.findByTestId("index-failure")).textContent).toBe(t.history.indexFailed(t.errors.out_of_memory));
  // What was searched without a model is searched again with it.
  backend.compares({ model: null, failure: null });
  await type("harbour");
  await waitFor(() => expect(screen.queryAllByTestId("hits-of").length).toBeGreaterThan(0));
  backend.compares();
  await waitFor(() => expect(passages().length).toBeGreaterThan(0));
  // So is what was asked before all meanings were computed.
  const searches = backend.filters.length;
  backend.compares({ revision: 1 });
  await waitFor(() => expect(backend.filters.length).toBeGreaterThan(searches));
});
