import { render, screen, waitFor } from "@testing-library/svelte";
import { beforeAll, expect, test, vi } from "vitest";
import App from "../../App.svelte";
import { FakeBackend } from "../backend/fake";
import { Steno } from "../steno.svelte";
import { fillIn } from "../testing";
import { t } from "../text";

// jsdom has no canvas: the chart is looked at in a real browser.
vi.mock("uplot", () => ({ default: class {} }));

beforeAll(fillIn);

/** The window with a model that can be asked for no more than the text. */
async function window(): Promise<Steno> {
  const backend = new FakeBackend(1);
  backend.languageOf = "de";
  const limits = { takes_language: false, takes_translation: false, takes_prompt: false, takes_search: false };
  const models = backend.fits.models.map((fit) => (fit.model === 1 && fit.facts ? { ...fit, facts: { ...fit.facts, ...limits } } : fit));
  backend.fits = { ...backend.fits, models };
  backend.settings = { ...backend.settings, model: 1, language: "de", translate: true };
  const steno = new Steno(backend);
  render(App, { steno });
  await waitFor(() => expect(steno.setup && steno.fits).toBeTruthy(), { timeout: 5000 });
  return steno;
}

test("what the model can’t be asked for is disabled, with the reason, and comes back with another model", async () => {
  const steno = await window();
  const language = (): HTMLSelectElement => screen.getByTestId("language");
  const translate = (): HTMLInputElement => screen.getByTestId("translate");
  await waitFor(() => expect(language().disabled).toBe(true));
  expect(language().value).toBe("");
  expect(language().closest("label")?.title).toBe(t.settings.cant.language);
  expect([translate().disabled, translate().checked]).toEqual([true, false]);
  expect(translate().closest("label")?.title).toBe(t.settings.cant.translation);
  for (const [id, reason] of [["all-beams", t.settings.cant.search], ["all-prompt", t.settings.cant.prompt]] as const) {
    const field = screen.getByTestId<HTMLInputElement>(id);
    expect([field.disabled, field.labels?.[0]?.textContent?.includes(reason)], id).toEqual([true, true]);
  }

  // Words to expect are for every model.
  const words = screen.getByTestId<HTMLInputElement>("all-words");
  expect([words.disabled, words.labels?.[0]?.textContent?.includes(t.decoding.wordsHint)]).toEqual([false, true]);

  // Nor can it be asked for afterwards.
  await steno.addSample();
  const again = await screen.findByTestId<HTMLButtonElement>("translate-text", {}, { timeout: 15_000 });
  expect([again.disabled, again.title]).toEqual([true, t.settings.cant.translation]);

  // What was set stays set for a model that takes it.
  await steno.changeSettings({ model: 0 });
  await waitFor(() => expect(language().disabled).toBe(false));
  expect([language().value, translate().checked, translate().disabled]).toEqual(["de", true, false]);
});
