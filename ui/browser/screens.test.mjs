// Every screen and state in Chromium: what axe finds, what is cut off, and how
// quick it stays. In the real window some of it is looked at again, see tests/window.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { after, before, describe, test } from "node:test";
import { open, program } from "./page.mjs";
import { by, scenes } from "./scenes.mjs";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const options = { skip: program ? false : "skipped: there is no Chromium (set CHROMIUM)" };

let browser;
before(async () => {
  if (program) browser = await open();
});
after(() => browser?.close());

/** What axe finds, of all its rules or of some; of rows that are alike it looks at the first. */
async function violations(page, ...rules) {
  if (!(await page.evaluate(() => "axe" in window))) await page.evaluate(axe);
  const { violations, passes } = await page.evaluate((rules) => {
    // A thousand take it half a minute.
    for (const row of [...document.querySelectorAll('[data-testid="job"]')].slice(20)) row.remove();
    return axe.run(document, { resultTypes: ["violations"], ...(rules.length > 0 && { runOnly: rules }) });
  }, rules);
  assert.ok(rules.length > 0 ? passes.length === rules.length : passes.length > 10, `${passes.length} rules apply`);
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

/** What is wrong with the page as it is drawn, beside what axe finds. */
async function assertWhole(page, faults) {
  assert.deepEqual(await cutOff(page), []);
  assert.deepEqual(await squeezed(page), []);
  assert.deepEqual(faults, []);
}

// Two at a time: one waits while the other is drawn.
describe("every screen", { ...options, concurrency: 2 }, () => {
  for (const scene of scenes) {
    // What axe looks for is the same in every language; how long the words are is not. Of the languages beside
    // German those screens that are pictured twice will do.
    const languages = scene.dark ? ["de", "es", "fr", "zh", "ja"] : ["de"];
    test(`${scene.name}: accessible in both themes, nothing cut off, twice as large in ${languages} neither`, async () => {
      const { page, faults, enlarge, speak, close } = await browser.show(scene, { theme: "system" });
      try {
        assert.deepEqual(await violations(page), []);
        const ink = await page.evaluate(() => getComputedStyle(document.body).color);
        await page.emulateMedia({ colorScheme: "dark" });
        await page.waitForFunction((before) => getComputedStyle(document.body).color !== before, ink);
        // The dark theme has other colours and nothing else.
        assert.deepEqual(await violations(page, "color-contrast"), []);
        await assertWhole(page, faults);
        await enlarge(2);
        for (const language of languages) {
          await speak(language);
          await assertWhole(page, faults);
        }
      } finally {
        await close();
      }
    });
  }
});

test("the keyboard alone reaches everything, and the focus is seen", options, async () => {
  const { page, close } = await browser.show({ query: "scene=finished&real" });
  try {
    const visited = [];
    for (let step = 0; step < 36 && visited.at(-1) !== "transcript"; step++) {
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
    await page.locator(by("review")).waitFor();
    await page.keyboard.press("ArrowRight");
    await page.locator(by("chart")).focus();
    const line = () => page.locator(by("checkpoint")).textContent();
    const latest = await line();
    await page.keyboard.press("ArrowLeft");
    assert.notEqual(await line(), latest);
    assert.match(await line(), / · Steno: .* GB · /);
  } finally {
    await close();
  }
});

test("in a small window in German the text has room and the player is whole", options, async () => {
  const { page, close } = await browser.show({ query: "scene=finished&real" }, { language: "de", width: 800, height: 600 });
  try {
    const [speed, scroller] = await Promise.all([page.locator(by("play-speed")).boundingBox(), page.locator(by("transcript")).boundingBox()]);
    assert.ok(speed.x + speed.width <= 800 && speed.y + speed.height <= 600, JSON.stringify(speed));
    const lines = await page.locator(".text-scroller [data-segment]").evaluateAll((rows, { top, bottom }) => {
      const seen = rows.map((row) => row.getBoundingClientRect()).filter((box) => box.top >= top - 1 && box.bottom <= bottom + 1);
      return seen.length;
    }, { top: scroller.y, bottom: scroller.y + scroller.height });
    assert.ok(lines >= 3, `${lines} lines`);
  } finally {
    await close();
  }
});

for (const [width, height] of [[800, 600], [1024, 700]]) {
  test(`at ${width}x${height} the text keeps three lines below the list of speakers, Replace and "Split in two"`, options, async () => {
    const { page, close } = await browser.show({ query: "scene=finished&real" }, { width, height });
    try {
      const names = ["Ada", "Ben", "Cleo", "Dora", "Emil", "Fay"];
      await page.evaluate(async (names) => {
        for (const [index, speaker] of names.entries()) await window.pretended.backend.edit(1, { kind: "set_speaker", segments: [index + 1], speaker });
      }, names);
      await page.click(`${by("speakers")} summary`);
      await page.click(by("replacing"));
      const check = async (last) => {
        await page.locator(last).first().scrollIntoViewIfNeeded();
        const [bars, text, line, button] = await page.evaluate((last) => {
          const box = (selector) => document.querySelector(selector).getBoundingClientRect();
          return [box(".bars"), box(".text-scroller"), box(".text-scroller [data-segment] p"), box(last)].map(({ top, bottom, height }) => ({ top, bottom, height }));
        }, last);
        assert.ok(text.height >= 3 * 24 && line.height > 0, `the text has ${text.height} pixels`);
        assert.ok(text.bottom <= height && bars.bottom <= text.top + 1, "what is above lies over it");
        assert.ok(button.top >= bars.top - 1 && button.bottom <= bars.bottom + 1, `${last} is out of reach`);
      };
      await check(by("add-speaker"));
      await page.locator(by("split-speaker")).first().click();
      await check(by("chosen-name"));
      assert.deepEqual(await squeezed(page), []);
    } finally {
      await close();
    }
  });
}

test("what languages are detected as is whole in the list of languages", options, async () => {
  for (const language of ["en", "de", "es", "fr", "zh", "ja"]) {
    for (const [width, height] of [[1024, 700], [800, 600]]) {
      const { page, close } = await browser.show({ query: "scene=finished&real" }, { language, width, height });
      try {
        const [needed, room] = await page.locator(by("language")).evaluate((list) => {
          const { font, paddingLeft, paddingRight } = getComputedStyle(list);
          const drawing = document.createElement("canvas").getContext("2d");
          drawing.font = font;
          // The arrow takes about as much as a letter is high.
          return [drawing.measureText(list.selectedOptions[0].textContent.trim()).width, list.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight) - 16];
        });
        assert.ok(needed <= room, `${language} at ${width}: ${needed} pixels of text in ${room}`);
      } finally {
        await close();
      }
    }
  }
});

test("the names of formats leave their descriptions free", options, async () => {
  const { page, close } = await browser.show({ query: "scene=finished&real", open: (page) => page.click(by("save-as")) });
  try {
    const over = await page.evaluate(() =>
      [...document.querySelectorAll("#save-as strong")].filter((name) => name.scrollWidth > name.clientWidth + 1 || name.getBoundingClientRect().right > name.nextElementSibling.getBoundingClientRect().left).map((name) => name.textContent),
    );
    assert.deepEqual(over, []);
  } finally {
    await close();
  }
});

test("a running text is followed to its end, and the way back to it covers nothing of the player", options, async () => {
  const { page, close } = await browser.show({ query: "scene=running&real" });
  try {
    const end = () => page.locator(by("transcript")).evaluate((it) => it.scrollHeight - it.scrollTop - it.clientHeight);
    assert.ok((await end()) < 2, `${await end()} pixels are below`);
    assert.equal(await page.locator(by("newest")).count(), 0);
    const panel = await page.locator("[role=tabpanel]").evaluate((it) => getComputedStyle(it).borderTopWidth);
    assert.equal(panel, "0px", "it is no card");
    await page.locator(by("transcript")).hover();
    await page.mouse.wheel(0, -200);
    await page.locator(by("newest")).waitFor();
    const [newest, player] = [await page.locator(by("newest")).boundingBox(), await page.locator(by("player")).boundingBox()];
    assert.ok(newest.y + newest.height <= player.y, JSON.stringify({ newest, player }));
    await page.click(by("newest"));
    await page.locator(by("newest")).waitFor({ state: "detached" });
    assert.ok((await end()) < 2);
  } finally {
    await close();
  }
});

test("lines that come and go above the text leave what is read where it is", options, async () => {
  const { page, close } = await browser.show({ query: "scene=finished&real" });
  try {
    const transcript = page.locator(by("transcript"));
    const row = page.locator(`${by("segment")}[data-index="8"]`);
    const top = async () => (await row.boundingBox()).y;
    await page.locator(by("segment")).first().waitFor();
    const first = await page.locator(by("segment")).first().boundingBox();
    await page.click(by("replacing"));
    await page.locator(by("replacement")).waitFor();
    assert.ok((await page.locator(by("segment")).first().boundingBox()).y > first.y, "at its beginning the text makes room");
    await page.click(by("replacing"));
    await transcript.evaluate((it) => (it.scrollTop = 150));
    await page.waitForTimeout(100);
    const before = await top();
    for (const what of ["opened", "closed"]) {
      await page.click(by("replacing"));
      await page.locator(by("replacement")).waitFor({ state: what === "opened" ? "visible" : "detached" });
      await page.waitForTimeout(100);
      assert.ok(Math.abs((await top()) - before) < 2, `${what}: ${await top()} instead of ${before}`);
    }
  } finally {
    await close();
  }
});

/** The finished recording is a film with pictures of that size. */
const asFilm = (width, height) => async (page) => {
  await page.route("**/film", (route) => route.fulfill({ json: { pictures: true, missing: false } }));
  const body = `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}"><rect width="100%" height="100%" fill="teal"/></svg>`;
  await page.route("**/film/*", (route) => route.fulfill({ contentType: "image/svg+xml", body }));
  await page.evaluate(() => {
    const { backend } = window.pretended;
    const source = backend.playSource.bind(backend);
    backend.playSource = async (job) => ({ ...(await source(job)), pictures: `${location.origin}/film` });
    backend.drop(["/home/me/other.mp3"]);
  });
  // Away from it and back: a player that had its source before asks anew.
  await page.evaluate(() => window.pretended.steno.select(window.pretended.steno.jobs.at(-1).id));
  await page.locator(by("player")).waitFor({ state: "detached" });
  await page.evaluate(() => window.pretended.steno.select(window.pretended.steno.jobs[0].id));
  await page.locator(by("picture")).waitFor();
  await page.waitForFunction(() => document.querySelector('[data-testid="picture"]').naturalWidth > 0);
};

for (const [width, height, ...size] of [[1024, 700, 640, 480], [800, 600, 640, 480], [640, 700, 640, 480], [800, 600, 540, 960], [640, 700, 540, 960]]) {
  test(`at ${width}x${height} a film's picture of ${size.join("x")} covers no text and no button`, options, async () => {
    const { page, close } = await browser.show({ query: "scene=finished&real", open: asFilm(...size) }, { width, height });
    try {
      for (const tab of ["text", "review"]) {
        await page.click(by(`tab-${tab}`));
        await page.waitForTimeout(200);
        const covered = await page.evaluate(() => {
          const picture = document.querySelector('[data-testid="picture"]').getBoundingClientRect();
          const panel = document.querySelector("[role=tabpanel]");
          const view = document.querySelector(".desk > main");
          const beside = [...view.querySelectorAll("button, [role=tab], .words, .doubt, input, label, section, .player")].filter((element) => {
            const box = element.getBoundingClientRect().toJSON();
            // What is scrolled away is not seen.
            const seen = element.closest(".text-scroller")?.getBoundingClientRect();
            if (seen) [box.top, box.bottom] = [Math.max(box.top, seen.top), Math.min(box.bottom, seen.bottom)];
            return box.bottom > box.top && box.left < picture.right - 1 && box.right > picture.left + 1 && box.top < picture.bottom - 1 && box.bottom > picture.top + 1;
          });
          const cut = [...panel.querySelectorAll(".tools .button")].filter((button) => button.getBoundingClientRect().right > panel.querySelector("section").getBoundingClientRect().right);
          return { size: [picture.width, picture.height].map(Math.round), covered: [...beside, ...cut].map((element) => element.outerHTML.slice(0, 80)) };
        });
        assert.deepEqual(covered.covered, [], tab);
        assert.ok(Math.min(...covered.size) >= 50, `${covered.size}`);
        const text = await page.locator(".text-scroller").boundingBox();
        assert.ok(text.width >= 300 && text.height >= 100, JSON.stringify(text));
      }
    } finally {
      await close();
    }
  });
}

test("in a small window in German names have room in the list, and what is done with all of it is whole", options, async () => {
  const failed = async (page) => {
    await page.evaluate(() => {
      const { backend, steno } = window.pretended;
      const failure = { code: "unknown_format", file: null, message: "It is text.", remedy: null };
      backend.drop(Array.from({ length: 11 }, (_, index) => `/home/me/14_video_without_sound_${index}.mp4`));
      queueMicrotask(() => steno.jobs.slice(1).forEach(({ id }) => backend.set(id, { state: "failed", failure })));
    });
    await page.locator(by("retry-failed")).waitFor();
  };
  const { page, close } = await browser.show({ query: "scene=finished&real", open: failed }, { language: "de", width: 800, height: 600 });
  try {
    const list = await page.locator(".desk > nav").boundingBox();
    for (const button of await page.locator(".all .button").all()) {
      const [box, text] = [await button.boundingBox(), await button.evaluate((it) => it.scrollWidth - it.clientWidth)];
      assert.ok(box.x + box.width <= list.x + list.width && text <= 1, await button.textContent());
    }
    await page.mouse.move(700, 300);
    const name = page.locator('[data-state="failed"] .name').nth(1);
    assert.ok((await name.boundingBox()).width > 0.6 * list.width, `${(await name.boundingBox()).width} of ${list.width}`);
    await name.hover();
    await page.locator('[data-state="failed"]').nth(1).locator(".icon").first().waitFor({ state: "visible" });
  } finally {
    await close();
  }
});

test("messages leave the player free", options, async () => {
  const { page, close } = await browser.show({ query: "scene=finished&real" }, { width: 800, height: 600 });
  try {
    await page.evaluate(() => window.pretended.steno.fail({ code: "disk_full", file: "/home/me/talk.srt", message: "It is full.", remedy: null }));
    const [toast, player] = [await page.locator(by("toast")).boundingBox(), await page.locator(by("player")).boundingBox()];
    assert.ok(toast.y + toast.height <= player.y, JSON.stringify({ toast, player }));
    await page.click(by("view-settings"));
    const below = await page.locator(by("toast")).boundingBox();
    assert.ok(below.y > toast.y, "without a player it is at the bottom");
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
  const { page, close } = await browser.show({ query: "scene=squeezed&real", open: (page) => page.click(by("tab-memory")) });
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

test("20,000 segments scroll, open, are searched and edited at once", options, async () => {
  const { page, close } = await browser.show({ query: "scene=long&real" });
  try {
    const { times, ...found } = await page.evaluate(async () => {
      const { steno } = window.pretended;
      const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
      const by = (id) => document.querySelector(`[data-testid="${id}"]`);
      const timed = async (work) => {
        const begun = performance.now();
        await work();
        await frame();
        return performance.now() - begun;
      };
      const search = (words) =>
        timed(() => {
          const field = by("search");
          field.value = words;
          field.dispatchEvent(new Event("input", { bubbles: true }));
        });
      const [long, short] = steno.jobs.map((job) => job.id);
      const found = { segments: {}, there: 0 };
      /** What a user waits for in one transcript, in milliseconds. */
      async function use(job, round) {
        const took = { open: await timed(() => steno.select(job)) };
        found.segments[job] = steno.text.length;
        const scroller = by("transcript");
        scroller.scrollTop = 0;
        const begun = performance.now();
        for (let step = 0; step < 20; step++) {
          // Two thirds of the view, as by a wheel in a hurry.
          scroller.scrollTop += scroller.clientHeight / 1.5;
          await frame();
        }
        took.scroll = (performance.now() - begun) / 20;
        found.there = Math.max(found.there, document.querySelectorAll("[data-testid=segment]").length);
        took.search = await search("hundred metres");
        took.again = await search("hundred metres f");
        await search("");
        const { editor } = steno;
        await timed(() => editor.open(Math.floor(steno.text.length / 2)));
        took.type = await timed(() => editor.type(`Another text ${round}.`));
        took.write = await timed(() => editor.flush());
        took.split = await timed(() => editor.split(7));
        took.undo = await timed(() => editor.undo());
        return took;
      }
      // By turns and the best of three: what else the machine does slows both, or falls into one round.
      const times = { [long]: {}, [short]: {} };
      for (let round = 0; round < 3; round++) {
        for (const job of [short, long]) {
          const took = await use(job, round);
          for (const [what, ms] of Object.entries(took)) times[job][what] = Math.min(times[job][what] ?? Infinity, ms);
        }
      }
      return { ...found, times: { long: times[long], short: times[short] } };
    });
    const { long, short } = times;
    console.log(Object.keys(long).map((what) => `${what} ${long[what].toFixed(0)} (${short[what].toFixed(0)})`).join(", "));
    assert.deepEqual(Object.values(found.segments), [20_000, 200]);
    assert.ok(found.there < 1000, `${found.there} segments are there at once`);
    // A hundred times the text may cost four times as much and a tenth of a second; the first search looks
    // through all of it. Even on a busy machine the short text takes less than a second.
    for (const what of Object.keys(long)) {
      const most = what === "search" ? 300 : 100;
      assert.ok(long[what] < 4 * short[what] + most, `${what}: ${long[what]} ms, with 200 segments ${short[what]}`);
      assert.ok(short[what] < 1000, `${what}: ${short[what]} ms with 200 segments`);
    }
  } finally {
    await close();
  }
});

test("a whole correction by the keyboard alone", options, async () => {
  const { page, close } = await browser.show({ query: "scene=finished&real" });
  try {
    const texts = () => page.evaluate(() => window.pretended.steno.text.pages.flat().map((segment) => segment.text));
    const before = await texts();
    await page.focus(by("transcript"));
    await page.keyboard.press("Enter");
    await page.keyboard.press("End");
    await page.keyboard.type(" Indeed");
    await page.keyboard.press("Enter");
    assert.deepEqual(await texts(), [`${before[0]} Indeed`, ...before.slice(1)], "behind the end nothing can be split");
    for (const _ of "Indeed ") await page.keyboard.press("ArrowLeft");
    await page.keyboard.press("Enter");
    await page.waitForFunction((count) => window.pretended.steno.text.length === count, before.length + 1);
    assert.deepEqual((await texts()).slice(0, 2), [before[0], "Indeed"]);
    await page.keyboard.press("Backspace");
    await page.waitForFunction((count) => window.pretended.steno.text.length === count, before.length);
    assert.equal((await texts())[0], `${before[0]} Indeed`);
    await page.keyboard.press("Home");
    await page.keyboard.press("End");
    await page.keyboard.press("ArrowDown");
    assert.equal(await page.inputValue(by("segment-text")), before[1]);
    await page.keyboard.press("F9");
    const chosen = await page.evaluate(() => {
      const field = document.activeElement;
      return field.value.slice(field.selectionStart, field.selectionEnd);
    });
    assert.ok(chosen.length > 7, `an uncertain word is selected: ${chosen}`);
    for (let step = 0; step < 3; step++) await page.keyboard.press("Control+z");
    await page.waitForFunction((text) => window.pretended.steno.text.at(0).text === text, before[0]);
    assert.deepEqual(await texts(), before);
    for (let step = 0; step < 3; step++) await page.keyboard.press("Control+Shift+z");
    await page.waitForFunction((text) => window.pretended.steno.text.at(0).text !== text, before[0]);
    await page.keyboard.press("Escape");
    assert.equal(await page.evaluate(() => document.activeElement.dataset.testid), "transcript");
  } finally {
    await close();
  }
});
