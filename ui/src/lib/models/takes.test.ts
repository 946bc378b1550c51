import { render, screen, waitFor } from "@testing-library/svelte";
import { beforeAll, expect, test, vi } from "vitest";
import App from "../../App.svelte";
import { FakeBackend } from "../backend/fake";
import type { ModelFacts, Settings } from "../generated/contract";
import { Steno } from "../steno.svelte";
import { fillIn } from "../testing";
import { t } from "../text";

// jsdom has no canvas: the chart is looked at in a real browser.
vi.mock("uplot", () => ({ default: class {} }));

beforeAll(fillIn);

const NOTHING = { takes_language: false, finds_language: false, takes_translation: false, takes_prompt: false, takes_beams: false };

/** The window with a model that can be asked for no more than that. */
async function window(limits: Partial<ModelFacts> = NOTHING, asked: Partial<Settings> = { language: "de", translate: true }): Promise<Steno> {
  const backend = new FakeBackend(1);
  backend.languageOf = "de";
  const models = backend.fits.models.map((fit) => (fit.model === 1 && fit.facts ? { ...fit, facts: { ...fit.facts, ...limits } } : fit));
  backend.fits = { ...backend.fits, models };
  backend.settings = { ...backend.settings, model: 1, ...asked };
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
  for (const [id, reason] of [["all-beams", t.settings.cant.beams], ["all-prompt", t.settings.cant.prompt]] as const) {
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

test("a model that finds no language asks for one, and is told it", async () => {
  const steno = await window({ finds_language: false });
  const language = (): HTMLSelectElement => screen.getByTestId("language");
  await waitFor(() => expect(language().closest("label")?.title).toBe(t.settings.cant.detection));
  expect([language().disabled, language().value]).toEqual([false, "de"]);
  const first = (): string | null | undefined => language().options[0]?.textContent;
  expect(first()).toBe(t.settings.chooseLanguage);
  const several = screen.getByTestId<HTMLInputElement>("all-several");
  expect([several.disabled, several.closest("label")?.title]).toEqual([true, t.settings.cant.detection]);

  await steno.changeSettings({ model: 0 });
  await waitFor(() => expect(first()).toBe(t.settings.detect));
  expect([several.disabled, language().closest("label")?.title]).toEqual([false, ""]);
});

test("where no language is chosen, a model that finds none says so, and is not called English", async () => {
  await window({ finds_language: false, suits: false }, { language: null, translate: false });
  const row = (): string | null | undefined => screen.getAllByTestId("model-choice")[1]?.textContent;
  await waitFor(() => expect(row()).toContain(t.settings.cant.detection));
  expect(row()).not.toContain(t.models.english);
});
