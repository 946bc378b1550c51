import { svelte } from "@sveltejs/vite-plugin-svelte";
import { svelteTesting } from "@testing-library/svelte/vite";
import { defineConfig } from "vitest/config";

export default defineConfig({
  plugins: [svelte(), svelteTesting()],
  build: {
    target: "es2022",
    // Nothing inline: the content security policy allows files of our own only.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
  // The icon is drawn once, for the bundles and for the page.
  server: { port: 5173, strictPort: true, fs: { allow: [".."] } },
  // A busy machine is ten times slower than an idle one. Files share a window and what they import, which halves the time:
  // what a test changes of either it, or the next one's preparation, sets back.
  test: { environment: "jsdom", isolate: false, pool: "threads", setupFiles: ["src/lib/testing-setup.ts"], include: ["src/**/*.test.ts"], testTimeout: 60_000 },
});
