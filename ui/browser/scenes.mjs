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
  { name: "stopped", query: "scene=stopped&real" },
  { name: "export", query: "scene=finished&real", open: (page) => page.click(by("save-as")) },
  { name: "search", query: "scene=finished&real", open: (page) => page.fill(by("search"), "harbour") },
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
    query: "scene=shelf&real",
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
    query: "scene=shelf&real",
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
  { name: "device", query: "scene=empty", open: (page) => page.click(by("engine")) },
];

export const by = (id) => `[data-testid="${id}"]`;
