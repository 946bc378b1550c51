// Every screen and state of the window that there is a pretended one of:
// what the pictures show and what axe looks at.

/** `query` is for the pretended backend; `open` brings the page where it can't be started; `dark`: pictured dark too. */
export const scenes = [
  { name: "home", dark: true, query: "scene=empty" },
  { name: "home-no-engine", query: "scene=no_engine" },
  { name: "drop", query: "scene=drag" },
  { name: "demonstration", dark: true, query: "scene=held" },
  { name: "running", dark: true, query: "scene=running&real" },
  { name: "finished", dark: true, query: "scene=finished&real" },
  { name: "demonstration-banner", query: "scene=finished" },
  { name: "failed", query: "scene=failed&real", open: (page) => page.click('[data-state="failed"] .row') },
  { name: "tracks", query: "scene=tracks&real" },
  { name: "output", query: "scene=output&real", open: (page) => page.click(by("more-settings")) },
  { name: "paused", query: "scene=paused&real" },
  { name: "stopped", query: "scene=stopped&real" },
  { name: "translated", query: "scene=finished&real", open: async (page) => {
    await page.evaluate(() => window.pretended.backend.translated(1));
    await page.locator(by("translation")).first().waitFor();
  } },
  { name: "export", query: "scene=finished&real", open: (page) => page.click(by("save-as")) },
  { name: "search", query: "scene=finished&real", open: (page) => page.fill(by("search"), "harbour") },
  { name: "editing", dark: true, query: "scene=finished&real", open: (page) => edit(page, 3) },
  {
    name: "speaker",
    query: "scene=finished&real",
    open: async (page) => {
      await edit(page, 1);
      await page.click(by("speaker"));
      await page.fill(by("speaker-name"), "Ada");
      await page.click(by("assign"));
      await page.locator(by("rename-speaker")).waitFor();
    },
  },
  { name: "split-speaker", query: "scene=finished&real", open: async (page) => {
    await page.evaluate(() => window.pretended.backend.edit(1, { kind: "set_speaker", segments: [1, 2, 3, 4, 5], speaker: "Speaker 1" }));
    await page.click(`${by("speakers")} summary`);
    await page.click(by("split-speaker"));
    await page.click(`:nth-match(${by("tick")}, 2)`);
    await page.click(by("choose-rest"));
  } },
  { name: "times", query: "scene=finished&real", open: async (page) => {
    await edit(page, 1);
    await page.click(by("times"));
  } },
  { name: "replace", query: "scene=finished&real", open: async (page) => {
    await page.fill(by("search"), "harbour");
    await page.click(by("replacing"));
  } },
  { name: "review", dark: true, query: "scene=finished&real", open: async (page) => {
    await page.click(by("tab-review"));
    await page.click(`:nth-match(${by("passage")}, 2) .row`);
  } },
  { name: "review-editing", query: "scene=finished&real", open: async (page) => {
    await page.click(by("tab-review"));
    await page.keyboard.press("F9");
    await page.click(by("edit-passage"));
  } },
  { name: "attempt", query: "scene=finished&real", open: async (page) => {
    await edit(page, 3);
    await page.click(by("attempt"));
  } },
  { name: "comparison", dark: true, query: "scene=finished&real", open: async (page) => {
    await edit(page, 3);
    await page.click(by("attempt"));
    await page.click(by("attempt-go"));
    await page.evaluate(() => window.pretended.backend.foundAgain(1));
    await page.locator(by("new-text")).waitFor();
  } },
  { name: "keys", query: "scene=finished&real", open: async (page) => {
    await page.click(by("view-settings"));
    await page.locator(by("keys")).scrollIntoViewIfNeeded();
    await page.locator(`${by("keys-slower")} ${by("add-key")}`).click();
    await page.keyboard.press("F9");
    await page.locator(by("key-taken")).waitFor();
  } },
  { name: "history", dark: true, query: "scene=history&real", open: (page) => page.click(by("view-history")) },
  { name: "history-search", query: "scene=history&real", open: async (page) => {
    await page.click(by("view-history"));
    await page.fill(by("history-search"), "harbour");
    await page.locator(by("hit")).first().waitFor();
  } },
  { name: "history-meaning", query: "scene=meaning&real", open: async (page) => {
    await page.click(by("view-history"));
    await page.fill(by("history-search"), "harbour master");
    await page.locator(by("found-passage")).first().waitFor();
  } },
  { name: "history-indexing", query: "scene=indexing&real", open: (page) => page.click(by("view-history")) },
  { name: "history-empty", query: "scene=empty", open: (page) => page.click(by("view-history")) },
  { name: "voices", dark: true, query: "scene=finished&real", open: async (page) => {
    await page.evaluate(async () => {
      for (const name of ["Anna", "Anna", "Ben"]) await window.pretended.backend.addVoice(name);
    });
    await page.click(by("view-voices"));
    await page.locator(by("voice")).first().waitFor();
  } },
  { name: "voices-empty", query: "scene=empty", open: (page) => page.click(by("view-voices")) },
  { name: "missing", query: "scene=missing&real" },
  { name: "memory", query: "scene=finished&real", open: (page) => page.click(by("tab-memory")) },
  { name: "memory-short", dark: true, query: "scene=squeezed&real", open: (page) => page.click(by("tab-memory")) },
  { name: "models", dark: true, query: "scene=finished&real", open: (page) => page.click(by("view-models")) },
  { name: "settings", dark: true, query: "scene=finished&real", open: (page) => page.click(by("view-settings")) },
  { name: "first-drop", dark: true, query: "scene=only_demonstration" },
  { name: "first-download", query: "scene=downloading" },
  { name: "first-drop-offline", query: "scene=offline_held" },
  {
    name: "downloads",
    dark: true,
    query: "scene=catalog&real",
    open: async (page) => {
      await page.click(by("view-models"));
      await page.locator("#begun-title").evaluate((title) => title.scrollIntoView());
    },
  },
  {
    name: "models-offline",
    query: "scene=offline&real",
    open: async (page) => {
      await page.click(by("view-models"));
      await page.locator("#offers-title").evaluate((title) => title.scrollIntoView());
    },
  },
  {
    name: "remove-model",
    query: "scene=catalog&real",
    open: async (page) => {
      await page.click(by("view-models"));
      await page.click(by("remove-installed"));
    },
  },
  {
    name: "connections",
    query: "scene=finished&real",
    open: async (page) => {
      await page.click(by("view-settings"));
      await page.click(`${by("connections")} summary`);
      await page.locator(by("connection")).last().scrollIntoViewIfNeeded();
    },
  },
  { name: "watched", dark: true, query: "scene=watched&real", open: (page) => page.click('[data-job="4"] .row') },
  { name: "watched-folders", query: "scene=watched&real", open: async (page) => {
    await page.click(by("view-settings"));
    await page.locator(by("watched-folders")).scrollIntoViewIfNeeded();
  } },
  { name: "presets", dark: true, query: "scene=watched&real", open: (page) => page.click(by("more-settings")) },
  { name: "queue", query: "scene=many" },
  { name: "closing", query: "scene=closing&real" },
  ...["card_without_engine", "old_card", "two_cards", "card_in_use"].map((machine) => ({
    name: machine.replaceAll("_", "-"),
    query: `scene=${machine}&real`,
    open: (page) => page.click(by("view-models")),
  })),
  { name: "device", query: "scene=empty", open: (page) => page.click(by("engine")) },
];

/** Writes in a segment, by its number. */
export async function edit(page, number) {
  await page.dblclick(`[data-index="${number}"] .words`);
  await page.locator(by("segment-text")).waitFor();
}

export const by = (id) => `[data-testid="${id}"]`;
