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
