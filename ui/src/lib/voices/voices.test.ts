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

test("a voice that is remembered from a transcript while the page is open is there", async () => {
  const backend = new FakeBackend(1);
  const steno = new Steno(backend);
  render(VoicesPage, { steno });
  await screen.findByTestId("no-voices");
  await steno.rememberSpeaker(1, "Anna");
  await waitFor(() => expect((screen.getByTestId("rename-voice") as HTMLInputElement).value).toBe("Anna"));
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

test("a voice from the microphone is recorded for ten seconds, listened to, and added", async () => {
  const backend = new FakeBackend(1);
  const steno = new Steno(backend);
  const { unmount } = render(VoicesPage, { steno });
  const record = (await screen.findByTestId("record-voice")) as HTMLButtonElement;
  expect(record.disabled, "a voice has a name").toBe(true);
  await fireEvent.input(screen.getByTestId("voice-name"), { target: { value: "Anna" } });
  await waitFor(() => expect(record.disabled).toBe(false));
  await fireEvent.click(record);
  const stop = (await screen.findByTestId("stop-recording")) as HTMLButtonElement;
  expect(stop.disabled, "that is too short").toBe(true);
  const level = () => (screen.getByTestId("level") as HTMLMeterElement).value;
  const first = level();
  await waitFor(() => expect(level()).not.toBe(first));
  backend.microphoneState = { ...backend.microphoneState, seconds: 12 };
  await waitFor(() => expect(stop.disabled).toBe(false));
  await fireEvent.click(stop);
  expect((await screen.findByTestId("listen")).getAttribute("src")).toBeTruthy();
  expect(backend.knownVoices, "nothing is added before").toEqual([]);
  await fireEvent.click(screen.getByTestId("keep-recording"));
  await waitFor(() => expect(backend.knownVoices.map(({ name }) => name)).toEqual(["Anna"]));
  await screen.findByTestId("record-voice");

  // Another view: what was being recorded is forgotten.
  await fireEvent.input(screen.getByTestId("voice-name"), { target: { value: "Anna" } });
  await fireEvent.click(screen.getByTestId("record-voice"));
  await screen.findByTestId("recording");
  unmount();
  await waitFor(() => expect(backend.microphoneState.seconds).toBeNull());
});

test("where nothing can be recorded it is said why", async () => {
  const backend = new FakeBackend(1);
  backend.microphoneState = { ...backend.microphoneState, available: false };
  const steno = new Steno(backend);
  const { unmount } = render(VoicesPage, { steno });
  expect((await screen.findByTestId("no-microphone")).textContent).toBe(t.voices.noMicrophone);
  await fireEvent.input(screen.getByTestId("voice-name"), { target: { value: "Anna" } });
  expect((screen.getByTestId("record-voice") as HTMLButtonElement).disabled).toBe(true);
  unmount();

  // There is a program, and no device.
  backend.microphoneState = { ...backend.microphoneState, available: true };
  render(VoicesPage, { steno });
  await fireEvent.input(await screen.findByTestId("voice-name"), { target: { value: "Anna" } });
  const failure = { code: "no_microphone", file: null, message: "No such device.", remedy: null } as const;
  backend.microphone = async () => ({ available: true, seconds: null, level: 0, failure });
  await fireEvent.click(await screen.findByTestId("record-voice"));
  await waitFor(() => expect(steno.toasts[0]?.failure?.message).toBe("No such device."));
});
