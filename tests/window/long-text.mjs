// usage: tests/window/with-display.sh node tests/window/long-text.mjs [SEGMENTS]
// Milliseconds that each action takes in the real window on a long transcript,
// from the key or click until what came of it is drawn. A measurement, no test.
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { by, discard, longHistory, open } from "./common.mjs";
import { until } from "./driver.mjs";

const segments = Number(process.argv[2] ?? 20_000);
const ROUNDS = 5;
const folder = mkdtempSync(join(tmpdir(), "steno-long-"));

/** What the scripts in the page have in common. */
const PAGE = `
  const by = (id) => document.querySelector('[data-testid="' + id + '"]');
  const row = (number) => document.querySelector('[data-index="' + number + '"]');
  const said = (number) => row(number)?.querySelector("textarea")?.value ?? row(number)?.querySelector(".words")?.textContent ?? null;
  const write = (id, value) => { const field = by(id); field.value = value; field.dispatchEvent(new Event("input", { bubbles: true })); };
  const press = (id, key) => by(id).dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
  const invoke = (command, values) => window.__TAURI_INTERNALS__.invoke(command, values);
  const pages = () => document.querySelectorAll("[data-testid=transcript] ol").length;
  const whole = Math.ceil(${segments} / 40);
  /** Until it is so and drawn, since the work began. */
  const timed = (work, isSo) => new Promise((resolve, reject) => {
    const begun = performance.now();
    const look = () => {
      if (performance.now() - begun > 8000) reject(new Error(work + " came to nothing: " + [...document.querySelectorAll("[data-testid=toast]")].map((one) => one.textContent).join()));
      else if (isSo()) requestAnimationFrame(() => setTimeout(() => resolve(performance.now() - begun)));
      else setTimeout(look, 1);
    };
    work();
    look();
  });
  const rest = () => new Promise((done) => setTimeout(done, 700));`;

const window = await open({ env: await longHistory(folder, "/recordings/long.wav", segments) });
const figures = new Map();
const keep = (what, ms) => figures.set(what, [...(figures.get(what) ?? []), ms]);

/** Runs a script that gives names and milliseconds. */
async function measure(script, ...values) {
  const found = await window.runAsync(`const done = arguments[arguments.length - 1]; ${PAGE} (async (...values) => { ${script} })(...arguments).then(done, (error) => done({ error: String(error) }));`, ...values);
  if (found.error) throw new Error(found.error);
  for (const [what, ms] of Object.entries(found)) keep(what, ms);
}

try {
  await until("the page", () => window.find(by("view-history")));
  for (let round = 0; round < ROUNDS; round++) {
    await window.click(by("view-history"));
    await until("the list", async () => (await window.texts(by("document"))).length === 1);
    await measure(`
      // As long as what was replaced and taken back is indexed beside.
      await new Promise((done) => setTimeout(done, 3000));
      const open = await timed(() => by("open-document").click(), () => row(0));
      const all = await timed(() => {}, () => pages() === whole);
      await rest();
      const scroller = by("transcript");
      const end = await timed(() => (scroller.scrollTop = scroller.scrollHeight), () => {
        const last = row(${segments - 1});
        if (!last) scroller.scrollTop = scroller.scrollHeight;
        return last && last.getBoundingClientRect().top < scroller.getBoundingClientRect().bottom;
      });
      let longest = 0;
      const scrolled = performance.now();
      for (let step = 0; step < 30; step++) {
        const before = performance.now();
        scroller.scrollTop -= scroller.clientHeight / 1.5;
        await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
        longest = Math.max(longest, performance.now() - before);
      }
      return { open, "all of it there": open + all, "scroll to the end": end, "scroll, a frame": (performance.now() - scrolled) / 30, "scroll, longest frame": longest };`);
    await measure(`
      const found = () => by("matches")?.textContent ?? "";
      const first = await timed(() => write("search", "harbour q"), () => found() && document.querySelector("mark"));
      const before = found();
      const again = await timed(() => write("search", "harbour quay"), () => found() !== before && document.querySelector("mark"));
      const once = found();
      const next = await timed(() => press("search", "Enter"), () => found() !== once);
      write("search", "");
      return { "search": first, "search, another letter": again, "next place": next };`);
    await measure(`
      const scroller = by("transcript");
      scroller.scrollTop = scroller.scrollHeight / 2;
      await rest();
      const there = [...scroller.querySelectorAll("[data-segment]")].find((one) => one.getBoundingClientRect().top > scroller.getBoundingClientRect().top + 100);
      const number = Number(there.dataset.index);
      const click = (element) => element.dispatchEvent(new MouseEvent("dblclick", { bubbles: true, clientX: element.getBoundingClientRect().x + 20, clientY: element.getBoundingClientRect().y + 8 }));
      const edit = await timed(() => click(there.querySelector(".words")), () => by("segment-text"));
      const text = "Other words ${round} that are said here.";
      const type = await timed(() => write("segment-text", text), () => by("segment-text").parentElement.querySelector(".words").textContent.startsWith(text));
      await rest();
      by("segment-text").setSelectionRange(11, 11);
      const split = await timed(() => press("segment-text", "Enter"), () => said(number) === "Other words" && by("segment-text").value.startsWith("${round} that"));
      await rest();
      const merge = await timed(() => { by("segment-text").setSelectionRange(0, 0); press("segment-text", "Backspace"); }, () => said(number) === text);
      await rest();
      const undone = await timed(() => by("undo").click(), () => said(number) === "Other words");
      await rest();
      const redone = await timed(() => by("redo").click(), () => said(number) === text);
      await rest();
      press("segment-text", "Escape");
      return { "begin to edit": edit, "type a text": type, split, merge, "undo it": undone, "redo it": redone };`);
    // A word in half of all segments, and two that follow each other in some hundreds.
    for (const [words, where] of [["ferry", "everywhere"], ["ferry quay", "in some"]]) await measure(`
      const [words, where] = values;
      write("search", words);
      await rest();
      // What is found is marked wherever it is shown.
      const isThere = () => document.querySelector("mark") !== null;
      if (!by("replacement")) by("replacing").click();
      await rest();
      write("replacement", "boat");
      await rest();
      const all = await timed(() => by("replace-all").click(), () => !isThere());
      await rest();
      const undone = await timed(() => by("undo").click(), isThere);
      await rest();
      const redone = await timed(() => by("redo").click(), () => !isThere());
      await rest();
      await timed(() => by("undo").click(), isThere);
      write("search", "");
      await rest();
      by("replacing").click();
      return { ["replace all " + where]: all, ["undo it " + where]: undone, ["redo it " + where]: redone };`, words, where);
    // Taken off the list, so that it is opened from the disk again.
    await window.runAsync(`const done = arguments[arguments.length - 1]; ${PAGE} invoke("execute_blocking", { command: { type: "remove", job: ${round + 1} } }).then(done, done);`);
    await until("an empty list", async () => (await window.texts(by("job"))).length === 0);
  }
} finally {
  console.log(`${segments} segments, ${ROUNDS} rounds: median and longest, ms`);
  for (const [what, all] of figures) {
    all.sort((a, b) => a - b);
    const longest = all.at(-1);
    console.log(`${what.padEnd(24)}${all[all.length >> 1].toFixed(0).padStart(7)}${longest.toFixed(0).padStart(7)}${longest > 100 && !what.startsWith("all of") ? "  over 100" : ""}`);
  }
  await window.end();
  await discard(folder);
}
