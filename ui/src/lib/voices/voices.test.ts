import { fireEvent, render, screen, waitFor, within } from "@testing-library/svelte";
import { beforeAll, expect, test } from "vitest";
import { FakeBackend } from "../backend/fake";
import { Steno } from "../steno.svelte";
import { t } from "../text";
import VoicesPage from "./VoicesPage.svelte";

beforeAll(() => {
  // What jsdom lacks.
  HTMLDialogElement.prototype.showModal = () => {};
  HTMLDialogElement.prototype.close = () => {};
});

test("a voice is added, told to be a bad one, renamed, and removed for good", async () => {
  const backend = new FakeBackend(1);
  const steno = new Steno(backend);
  render(VoicesPage, { steno });
  await screen.findByTestId("no-voices");
  const add = screen.getByTestId("add-voice") as HTMLButtonElement;
  expect(add.disabled, "a voice has a name").toBe(true);
  await fireEvent.input(screen.getByTestId("voice-name"), { target: { value: " Anna " } });
  expect(add.disabled).toBe(false);
  await fireEvent.click(add);
  expect((await screen.findByTestId("flaw")).textContent).toBe(t.voices.flaws.short);
  expect(screen.queryByTestId("remove-sample"), "the last sample is the voice").toBeNull();
  await waitFor(() => expect(steno.toasts.map(({ text }) => text)).toContain(t.voices.added("Anna")));

  await fireEvent.input(screen.getByTestId("voice-name"), { target: { value: "Anna" } });
  await fireEvent.click(add);
  await waitFor(() => expect(screen.getAllByTestId("voice-sample").length).toBe(2));
  await fireEvent.click(screen.getAllByTestId("remove-sample")[0] ?? add);
  await waitFor(() => expect(screen.getAllByTestId("voice-sample").length).toBe(1));

  await fireEvent.change(screen.getByTestId("rename-voice"), { target: { value: "Änne" } });
  await waitFor(() => expect(backend.knownVoices.map(({ name }) => name)).toEqual(["Änne"]));

  // The answer that loses nothing is the first.
  await fireEvent.click(await screen.findByTestId("remove-voice"));
  const dialog = within(screen.getByTestId("remove-voice-question"));
  await fireEvent.click(dialog.getByTestId("remove-voice-question-no"));
  expect(backend.knownVoices.length).toBe(1);
  await fireEvent.click(screen.getByTestId("remove-voice"));
  await fireEvent.click(dialog.getByTestId("remove-voice-question-yes"));
  await screen.findByTestId("no-voices");
});

test("a failure is told, and the list stays as it was", async () => {
  const backend = new FakeBackend(1);
  await backend.addVoice("Anna");
  const steno = new Steno(backend);
  backend.renameVoice = () => Promise.reject({ code: "output_exists", file: null, message: "Taken.", remedy: null });
  render(VoicesPage, { steno });
  const field = (await screen.findByTestId("rename-voice")) as HTMLInputElement;
  await fireEvent.change(field, { target: { value: "Ben" } });
  await waitFor(() => expect(steno.toasts[0]?.failure?.message).toBe("Taken."));
  expect(field.value).toBe("Anna");
});
