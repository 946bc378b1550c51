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
