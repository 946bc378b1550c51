// The pages in Chromium, with the backend that only pretends.
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import { build, preview } from "vite";

const root = fileURLToPath(new URL("..", import.meta.url));

/** CHROMIUM, else where distributions put it; undefined where there is none. */
export const program = [process.env.CHROMIUM, "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(
  (path) => path && existsSync(path),
);

/** What the system is set to, beside what the window speaks. */
const LOCALES = { en: "en-GB", de: "de-DE", es: "es-ES", fr: "fr-FR", zh: "zh-CN", ja: "ja-JP" };

/** Until what was changed is drawn. */
const drawn = (page) => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));

/** A browser with the pages; `close` ends both. */
export async function open() {
  // In a few files: a hundred and more for each page take longer than all that is looked at.
  const outDir = mkdtempSync(join(tmpdir(), "steno-pages-"));
  process.env.NODE_ENV = "development"; // With what only pretends.
  const pages = { root, mode: "development", logLevel: "error", build: { outDir, minify: false } };
  await build(pages);
  const server = await preview({ ...pages, preview: { port: 0, host: "127.0.0.1" } });
  const address = server.resolvedUrls.local[0];
  // The pages are our own: without the sandbox it runs in a container too.
  const browser = await chromium.launch({ executablePath: program, args: ["--no-sandbox", "--force-color-profile=srgb"] });

  // Kept for all pages of one look: what it has fetched it need not fetch again.
  const contexts = new Map();
  function contextOf(options) {
    const key = JSON.stringify(options);
    if (!contexts.has(key)) contexts.set(key, browser.newContext(options));
    return contexts.get(key);
  }

  /** A page in that state, drawn and at rest. */
  async function show({ query, open }, { theme = "light", language, width = 1024, height = 700, moving = false } = {}) {
    const viewport = { width, height };
    const locale = LOCALES[language ?? "en"];
    const context = await contextOf({ viewport, colorScheme: theme === "dark" ? "dark" : "light", reducedMotion: "reduce", locale });
    const page = await context.newPage();
    const faults = [];
    await page.route("**/favicon.ico", (route) => route.fulfill({ status: 204 }));
    page.on("pageerror", (error) => faults.push(String(error)));
    page.on("console", (message) => message.type() === "error" && faults.push(message.text()));
    await page.goto(`${address}?${query}&theme=${theme}${language ? `&lang=${language}` : ""}${moving ? "" : "&still"}`);
    await page.locator("header h1").waitFor();
    await page.evaluate(() => document.fonts.ready);
    await page.waitForTimeout(150);
    await open?.(page);
    await page.waitForTimeout(250);
    return {
      page,
      faults,
      /** Everything that many times as large, as with the system's or the browser's zoom. */
      enlarge: async (times) => {
        await page.setViewportSize({ width: Math.round(width / times), height: Math.round(height / times) });
        await drawn(page);
      },
      /** Another language, as by the choice in the settings; not where `language` was given. */
      speak: async (language) => {
        await page.evaluate((language) => window.pretended.speak(language), language);
        await page.waitForFunction((language) => document.documentElement.lang.startsWith(language), language);
        await drawn(page);
      },
      close: () => page.close(),
    };
  }

  return {
    show,
    close: async () => {
      await browser.close();
      await server.close();
      rmSync(outDir, { recursive: true });
    },
  };
}
