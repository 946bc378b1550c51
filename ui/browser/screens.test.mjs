// Every screen and state in Chromium: what axe finds, what is cut off, and how
// quick it stays. In the real window some of it is looked at again, see tests/window.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { after, before, test } from "node:test";
import { open, program } from "./page.mjs";
import { by, scenes } from "./scenes.mjs";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const options = { skip: program ? false : "skipped: there is no Chromium (set CHROMIUM)" };

let browser;
before(async () => {
  if (program) browser = await open();
});
after(() => browser?.close());

async function violations(page) {
  await page.evaluate(axe);
  const { violations, passes } = await page.evaluate(() => axe.run(document, { resultTypes: ["violations"] }));
  assert.ok(passes.length > 10);
  return violations.map(({ id, nodes }) => [id, ...nodes.map((node) => node.target.join(" "))]);
}

/** Elements whose text runs out of the window to the side, where nothing scrolls. */
function cutOff(page) {
  return page.evaluate(() =>
    [...document.querySelectorAll("button, h1, h2, h3, label, p, th, td")]
      .filter((element) => element.checkVisibility() && !element.closest(".hidden, .scroll, [popover]:not(:popover-open)"))
      .filter((element) => element.getBoundingClientRect().right > innerWidth + 1)
      .map((element) => element.outerHTML.slice(0, 120)),
  );
}

/** Parts of a recording's view that are squeezed to nothing or lie over each other. */
function squeezed(page) {
  return page.evaluate(() => {
    const panel = document.querySelector("[role=tabpanel]");
    const view = document.querySelector(".desk > main");
    if (!panel || !view) return [];
    const [inner, outer] = [panel.getBoundingClientRect(), view.getBoundingClientRect()];
    const faults = [];
    if (inner.height < 120) faults.push(`the panel has ${inner.height} pixels`);
    if (inner.bottom > outer.bottom + 1) faults.push("the panel runs out of its view");
    return faults;
  });
}

const looks = [
  ["light", { theme: "light" }],
  ["dark", { theme: "dark" }],
  ["German, twice as large", { theme: "light", language: "de", zoom: 2 }],
];

for (const [name, look] of looks) {
  for (const scene of scenes) {
    test(`${scene.name}, ${name}: accessible, nothing cut off`, options, async () => {
      const { page, faults, close } = await browser.show(scene, look);
      try {
        assert.deepEqual(await violations(page), []);
        assert.deepEqual(await cutOff(page), []);
        assert.deepEqual(await squeezed(page), []);
        assert.deepEqual(faults, []);
      } finally {
        await close();
      }
    });
  }
}

test("the keyboard alone reaches everything, and the focus is seen", options, async () => {
  const { page, close } = await browser.show({ query: "scene=finished&real" });
  try {
    const visited = [];
    for (let step = 0; step < 30 && visited.at(-1) !== "transcript"; step++) {
      await page.keyboard.press("Tab");
      const [id, outline] = await page.evaluate(() => [document.activeElement?.dataset.testid, getComputedStyle(document.activeElement).outlineStyle]);
      if (id) visited.push(id);
      assert.equal(outline, "solid", id);
    }
    for (const wanted of ["view-models", "view-settings", "engine", "model", "add", "copy", "save-as", "save", "tab-text", "search", "transcript"]) {
      assert.ok(visited.includes(wanted), `${wanted} in ${visited}`);
    }
    await page.focus(by("tab-text"));
    await page.keyboard.press("ArrowRight");
    await page.locator(by("chart")).focus();
    const line = () => page.locator(by("checkpoint")).textContent();
    const latest = await line();
    await page.keyboard.press("ArrowLeft");
    assert.notEqual(await line(), latest);
    assert.match(await line(), /^\[GPU Memory\] /);
  } finally {
    await close();
  }
});

test("a row is dragged to another place", options, async () => {
  const { page, close } = await browser.show({ query: "scene=running&real" });
  try {
    const names = () => page.locator(".name").allTextContents();
    const [first, second, third, fourth] = await names();
    const from = await page.locator(by("grip")).last().boundingBox();
    const to = await page.locator(by("grip")).first().boundingBox();
    await page.mouse.move(from.x + 8, from.y + 8);
    await page.mouse.down();
    await page.mouse.move(to.x + 8, to.y - 8, { steps: 5 });
    await page.mouse.up();
    assert.deepEqual(await names(), [first, fourth, second, third]);
  } finally {
    await close();
  }
});

test("the chart draws both, its bands and its limits", options, async () => {
  const { page, close } = await browser.show({ query: "scene=finished&real", open: (page) => page.click(by("tab-memory")) });
  try {
    const colours = await page.evaluate(() => {
      const canvas = document.querySelector(".memory canvas");
      const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      const seen = new Map();
      for (let at = 0; at < data.length; at += 4) {
        if (data[at + 3] < 250) continue;
        const colour = "#" + [0, 1, 2].map((part) => data[at + part].toString(16).padStart(2, "0")).join("");
        seen.set(colour, (seen.get(colour) ?? 0) + 1);
      }
      const named = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
      const names = ["--accent", "--stage-1", "--stage-2", "--stage-3", "--warn", "--bad"];
      return Object.fromEntries(names.map((name) => [name, seen.get(named(name)) ?? 0]));
    });
    for (const [name, pixels] of Object.entries(colours)) assert.ok(pixels > 50, `${name}: ${pixels} pixels`);
  } finally {
    await close();
  }
});

test("a thousand files and ten thousand events leave the page quick", options, async () => {
  const { page, close } = await browser.show({ query: "scene=many&real" });
  try {
    assert.equal(await page.locator(by("job")).count(), 1000);
    const took = await page.evaluate(async () => {
      const { backend, steno } = window.pretended;
      const frames = [];
      let last = performance.now();
      let on = true;
      const frame = (now) => {
        frames.push(now - last);
        last = now;
        if (on) requestAnimationFrame(frame);
      };
      requestAnimationFrame(frame);
      const job = steno.jobs[0];
      // As the shell does: twenty messages a second, here five hundred times as many in one.
      const begun = performance.now();
      for (let event = 0; event < 10_000; event++) {
        const progress = { stage: "transcribe", position: event, duration: 10_000, speed: 3, left: 10 };
        backend.emit({ kind: "jobs", changed: [{ ...job, state: "running", progress }], removed: [], order: null });
        if (event % 100 === 99) await new Promise((done) => requestAnimationFrame(done));
      }
      const events = performance.now() - begun;
      const scroller = document.querySelector("[data-testid=queue]");
      const scrolled = performance.now();
      for (let step = 0; step < 60; step++) {
        scroller.scrollTop = (scroller.scrollHeight / 60) * step;
        await new Promise((done) => requestAnimationFrame(done));
      }
      on = false;
      return { events, scroll: (performance.now() - scrolled) / 60, worst: Math.max(...frames.slice(1)) };
    });
    console.log(`10,000 events: ${took.events.toFixed(0)} ms; a frame of scrolling: ${took.scroll.toFixed(1)} ms; longest frame: ${took.worst.toFixed(0)} ms`);
    assert.ok(took.events / 10_000 < 1.5, `${took.events} ms for 10,000 events`);
    assert.ok(took.scroll < 100, `${took.scroll} ms for a frame`);
  } finally {
    await close();
  }
});

test("a transcript of ten hours scrolls", options, async () => {
  const { page, close } = await browser.show({ query: "scene=long&real" });
  try {
    const { count, frame } = await page.evaluate(async () => {
      const scroller = document.querySelector("[data-testid=transcript]");
      const begun = performance.now();
      for (let step = 0; step < 60; step++) {
        scroller.scrollTop = (scroller.scrollHeight / 60) * step;
        await new Promise((done) => requestAnimationFrame(done));
      }
      return { count: document.querySelectorAll("[data-testid=segment]").length, frame: (performance.now() - begun) / 60 };
    });
    console.log(`${count} segments: ${frame.toFixed(1)} ms for a frame of scrolling`);
    assert.equal(count, 9000);
    assert.ok(frame < 100, `${frame} ms`);
  } finally {
    await close();
  }
});
