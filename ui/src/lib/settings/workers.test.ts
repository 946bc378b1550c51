import { fireEvent, render, screen, waitFor } from "@testing-library/svelte";
import { beforeEach, expect, test } from "vitest";
import { FakeBackend } from "../backend/fake";
import { Steno } from "../steno.svelte";
import { t } from "../text";
import { factor } from "../ui/format";
import SettingsPage from "./SettingsPage.svelte";

let backend: FakeBackend;

beforeEach(() => {
  backend = new FakeBackend(1);
  render(SettingsPage, { steno: new Steno(backend) });
});

async function look(): Promise<void> {
  await fireEvent.change(await screen.findByTestId("workers-address"), { target: { value: "nats://head:4222" } });
  const details = (await screen.findByTestId("workers-show")) as HTMLDetailsElement;
  expect(backend.looks).toBe(0);
  details.open = true;
  await fireEvent(details, new Event("toggle"));
}

test("workers, the queue, rates and what no worker takes are shown, and looked at again", async () => {
  await look();
  await waitFor(() => expect(screen.getByTestId("workers-counts").textContent).toBe(t.workers.counts(12, 1, 340, 2)));
  expect(screen.getByTestId("workers-rate").textContent).toContain(t.workers.rate(factor(3.5), factor(21)));
  expect(screen.getByTestId("workers-unplaced").textContent).toContain("whisper-large-v3");
  const rows = screen.getAllByTestId("worker").map((row) => row.textContent);
  expect(rows).toHaveLength(2);
  expect(rows[0]).toContain("tape 7.wav");
  expect(rows[1]).toContain(t.workers.idle);
  await waitFor(() => expect(backend.looks).toBeGreaterThan(1), { timeout: 5000 });
});

test("why the queue can’t be looked at is said", async () => {
  backend.workersNow = { code: "network_failed", file: null, message: "NATS at head can’t be reached.", remedy: null };
  await look();
  await waitFor(() => expect(screen.getByTestId("workers-failure").textContent).toContain(t.errors.network_failed));
});
