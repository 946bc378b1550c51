import { render, waitFor } from "@testing-library/svelte";
import { expect } from "vitest";
import App from "../App.svelte";
import { FakeBackend } from "./backend/fake";
import { Steno } from "./steno.svelte";

/** What jsdom lacks. */
export function fillIn(): void {
  HTMLDialogElement.prototype.showModal = () => {};
  HTMLDialogElement.prototype.close = () => {};
  HTMLElement.prototype.scrollIntoView = () => {};
}

/** The whole window with a finished transcript of the pretended backend, for tests. */
export async function opened(backend = new FakeBackend(1)): Promise<Steno> {
  backend.settings = { ...backend.settings, model: 1 };
  backend.show("finished");
  const steno = new Steno(backend);
  render(App, { steno });
  await waitFor(() => expect(steno.setup && steno.text?.editing).toBeTruthy(), { timeout: 5000 });
  return steno;
}
