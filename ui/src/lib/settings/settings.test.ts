import { fireEvent, render, screen, waitFor, within } from "@testing-library/svelte";
import { afterEach, beforeEach, expect, test } from "vitest";
import { FakeBackend } from "../backend/fake";
import { Steno } from "../steno.svelte";
import { speak, t } from "../text";
import ModelsPage from "../models/ModelsPage.svelte";
import SettingsPage from "./SettingsPage.svelte";

let backend: FakeBackend;

beforeEach(() => {
  backend = new FakeBackend(1);
});
afterEach(() => speak(null));

const found = (id: string) => screen.findByTestId(id);

test("the language and the theme change at once and everywhere", async () => {
  render(SettingsPage, { steno: new Steno(backend) });
  expect(screen.getByRole("heading", { level: 2 }).textContent).toBe("Settings");
  await fireEvent.change(await found("interface-language"), { target: { value: "de" } });
  await waitFor(() => expect(screen.getByRole("heading", { level: 2 }).textContent).toBe("Einstellungen"));
  expect(document.documentElement.lang).toBe("de");
  await fireEvent.change(await found("theme"), { target: { value: "dark" } });
  await waitFor(() => expect(document.documentElement.dataset["theme"]).toBe("dark"));
  expect(backend.look).toMatchObject({ theme: "dark", language: "de" });
});

test("each language is offered in its own name, and the page says which it is in", async () => {
  render(SettingsPage, { steno: new Steno(backend) });
  const choice = await found("interface-language");
  const offered = [...choice.querySelectorAll("option")].map((option) => option.textContent);
  expect(offered.slice(1)).toEqual(["English", "Deutsch", "Español", "Français", "简体中文", "日本語"]);
  for (const [language, title, lang] of [
    ["es", "Ajustes", "es"],
    ["fr", "Réglages", "fr"],
    ["zh", "设置", "zh-Hans"],
    ["ja", "設定", "ja"],
  ]) {
    await fireEvent.change(choice, { target: { value: language } });
    await waitFor(() => expect(screen.getByRole("heading", { level: 2 }).textContent).toBe(title));
    expect(document.documentElement.lang).toBe(lang);
  }
});

test("a setting is written to the file, a wrong one is refused where it stands", async () => {
  render(SettingsPage, { steno: new Steno(backend) });
  const batch = await found("preference-batch_size");
  expect(batch.textContent).toContain(t.preferences.overruled("4"));
  const input = within(batch).getByRole("textbox");
  await fireEvent.change(input, { target: { value: "many" } });
  await waitFor(() => expect(within(batch).getByRole("alert").textContent).toContain("it takes a number from 1"));
  const reason = () => [...within(batch).getByRole("alert").querySelectorAll("p")].filter((line) => !line.closest("details")).map((line) => line.textContent);
  expect(reason()).toEqual([t.preferences.takes.count]);
  await fireEvent.change(input, { target: { value: "6" } });
  await waitFor(() => expect(within(batch).queryByRole("alert")).toBeNull());
  expect(backend.settingsOfFile.find((one) => one.name === "batch_size")?.value).toBe("6");
  await fireEvent.click(within(await found("preference-keep")).getByLabelText(t.preferences.kept.gpu));
  await waitFor(() => expect(backend.settingsOfFile.find((one) => one.name === "keep")?.value).toBe("model,gpu"));
});

test("every model says whether it fits, and one that can’t be read says why", async () => {
  render(ModelsPage, { steno: new Steno(backend) });
  await screen.findByText(t.models.recommended);
  const models = screen.getAllByTestId("model-choice");
  expect(models.map((model) => model.dataset["fit"])).toEqual(["comfortable", "comfortable", "tight", "does_not_fit", undefined]);
  expect(models[1]?.textContent).toContain(t.models.recommended);
  expect(models[2]?.textContent, "no language is chosen").not.toContain(t.models.unsuited);
  expect(models[2]?.textContent).toContain(t.models.english);
  await backend.changeSettings({ ...backend.settings, language: "de" });
  await waitFor(() => expect(models[2]?.textContent).toContain(t.models.unsuited));
  await backend.changeSettings({ ...backend.settings, language: null });
  expect(models[3]?.textContent).toContain("3.6 GB short");
  expect(models[4]?.textContent).toContain("its header is cut off");
  expect((await found("why-cpu")).textContent).toContain("There is no NVIDIA driver");
  await fireEvent.click(within(models[1] as HTMLElement).getByRole("radio"));
  await waitFor(() => expect(backend.settings.model).toBe(1));
});

test("of several cards the one to compute on is chosen by its name; with one card there is nothing to choose", async () => {
  const { unmount } = render(SettingsPage, { steno: new Steno(backend) });
  await found("preference-threads");
  expect(screen.queryByTestId("preference-device")).toBeNull();
  unmount();
  backend.settingsOfFile = backend.settingsOfFile.map((one) => (one.name === "device" ? { ...one, options: ["cuda:0", "cuda:1"], labels: ["Small Card", "Large Card"] } : one));
  render(SettingsPage, { steno: new Steno(backend) });
  const field = await found("preference-device");
  expect([...field.querySelectorAll("option")].map((option) => option.textContent)).toEqual([t.preferences.unset, "Small Card", "Large Card"]);
  await fireEvent.change(within(field).getByRole("combobox"), { target: { value: "cuda:1" } });
  await waitFor(() => expect(backend.settingsOfFile.find((one) => one.name === "device")?.value).toBe("cuda:1"));
});
test("what fits is asked anew when a setting of the memory changes", async () => {
  const steno = new Steno(backend);
  render(SettingsPage, { steno });
  const field = await found("preference-threads");
  await waitFor(() => expect(steno.fits).not.toBeNull());
  backend.fits = { ...backend.fits, device: { kind: "gpu", name: "Large Card", free: 2 ** 30, total: 2 ** 33 } };
  await fireEvent.change(within(field).getByRole("textbox"), { target: { value: "2" } });
  await waitFor(() => expect(steno.fits?.device?.name).toBe("Large Card"));
});

