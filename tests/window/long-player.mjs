// usage: tests/window/with-display.sh node tests/window/long-player.mjs RECORDING [SECONDS]
// How soon a word late in a long recording is heard in the real window once it
// is clicked, and what the window's processes grow by while somebody listens.
// A measurement, no test.
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { by, discard, held, longHistory, open } from "./common.mjs";
import { until } from "./driver.mjs";

const [path, seconds = "9600"] = process.argv.slice(2);
/** Of each segment of the pretended transcript, in seconds. */
const LENGTH = 4;
const late = Number(seconds);

const folder = mkdtempSync(join(tmpdir(), "steno-long-"));
const segments = Math.ceil((late + 900) / LENGTH);
const window = await open({ env: await longHistory(folder, path, segments) });

/** All but the engine. */
const grown = () => held(window, (name) => !name.includes("steno-engine"));

/** Clicks the third word of the segment that is said at a time, and waits until it is heard. */
async function hear(time) {
  const number = Math.floor(time / LENGTH);
  await window.run(`document.querySelectorAll("[data-testid=transcript] ol")[Math.floor(arguments[0] / 40)].scrollIntoView()`, number);
  await until("the segment", () => window.find(`[data-index="${number}"] .words`));
  const heard = await window.runAsync(`
    const [number, done] = arguments;
    const words = document.querySelector('[data-index="' + number + '"] .words');
    words.scrollIntoView({ block: "center" });
    const place = document.createRange();
    const texts = document.createTreeWalker(words, NodeFilter.SHOW_TEXT);
    let text = texts.nextNode();
    while (!text.data.trim()) text = texts.nextNode();
    const third = [...words.textContent.matchAll(/\\S+/g)][2].index + 1;
    place.setStart(text, third);
    place.setEnd(text, third + 1);
    const { x, y, height } = place.getBoundingClientRect();
    const audio = document.querySelector("audio");
    const from = audio.currentTime;
    const began = performance.now();
    const look = () => {
      const now = audio.currentTime;
      if (!audio.paused && !audio.seeking && Math.abs(now - from) > 1 && now > number * ${LENGTH} && now < number * ${LENGTH} + 10) done({ took: performance.now() - began, at: now });
      else if (performance.now() - began > 60000) done({ took: NaN, at: now });
      else setTimeout(look, 1);
    };
    document.elementFromPoint(x, y + height / 2).dispatchEvent(new MouseEvent("click", { bubbles: true, detail: 1, clientX: x, clientY: y + height / 2 }));
    look();`, number);
  const word = number * LENGTH + 2 * 0.38;
  console.log(`a word at ${word.toFixed(2)} s: heard after ${heard.took.toFixed(0)} ms, ${((heard.at - word) * 1000).toFixed(0)} ms behind its beginning`);
}

try {
  await window.click(by("view-history"));
  await until("it opens", () => window.click(by("open-document")).then(() => true, () => false));
  await until("the player", () => window.find("audio"));
  const pages = () => window.run(`return document.querySelectorAll("[data-testid=transcript] ol").length`);
  await until("all of the text", async () => (await pages()) === Math.ceil(segments / 40));
  // What opening began is over: what follows is listening.
  await pause(4000);
  const before = grown();
  await hear(late);
  for (const time of [60, late - 1800, late + 300, 3600, late]) {
    await pause(3000);
    await hear(time);
  }
  for (let part = 0; part < 4; part++) {
    await pause(15_000);
    const now = grown();
    console.log(`grew by ${(now.sum - before.sum).toFixed(1)} MB: ${now.each.map(([name, size]) => `${name} ${size.toFixed(0)}`).join(", ")}`);
  }
} finally {
  await window.end();
  await discard(folder);
}
