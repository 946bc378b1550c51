// Pictures of every screen and state: `npm run pictures [-- FOLDER]`, docs/screenshots where none is named.
import { mkdirSync, rmSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { join } from "node:path";
import { open } from "./page.mjs";
import { scenes } from "./scenes.mjs";

const folder = process.argv[2] ?? fileURLToPath(new URL("../../docs/screenshots", import.meta.url));
rmSync(folder, { recursive: true, force: true });
mkdirSync(folder, { recursive: true });

const browser = await open();
try {
  for (const scene of scenes) {
    for (const theme of scene.dark ? ["light", "dark"] : ["light"]) {
      const { page, faults, close } = await browser.show(scene, { theme });
      await page.screenshot({ path: join(folder, `${scene.name}-${theme}.png`) });
      await close();
      if (faults.length > 0) throw new Error(`${scene.name}: ${faults.join("; ")}`);
    }
  }
} finally {
  await browser.close();
}
