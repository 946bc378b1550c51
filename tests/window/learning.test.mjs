// A model learns from corrections in the real window, with the real engine; recordings are transcribed anew with what it learnt.
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { by, drop, open, picture, recordings, states } from "./common.mjs";
import { until } from "./driver.mjs";

/** The same words in each: what is held back of one is learnt in another. */
const TALKS = Array.from({ length: 8 }, (_, number) => `talk-${number + 1}.flac`);
const CORRECTIONS = [["Toronto", "October"], ["report", "folder"]];

let window, files, env;
before(async () => {
  files = recordings(Object.fromEntries(TALKS.map((name) => [name, null])));
  const of = (name) => join(files.folder, name);
  env = { STENO_STATE_FOLDER: of("state"), XDG_STATE_HOME: of("state"), XDG_CONFIG_HOME: of("config"), XDG_DATA_HOME: of("data") };
  window = await open({ args: files.paths, env });
});
after(async () => {
  await window?.end();
  await files?.remove();
});

const text = () => window.run(`return [...document.querySelectorAll("[data-testid=segment]")].map((row) =>
  row.querySelector("textarea")?.value ?? row.querySelector(".words").innerText).join(" ")`);

async function write(id, value) {
  await window.run(
    `const field = document.querySelector(arguments[0]);
     field.value = arguments[1];
     field.dispatchEvent(new Event("input", { bubbles: true }));`,
    by(id),
    value,
  );
}

async function press(id) {
  await until(id, () => window.run("const button = document.querySelector(arguments[0]); return button && !button.disabled", by(id)));
  await window.run("document.querySelector(arguments[0]).click()", by(id));
}

/** The words of another recording of the same sound, with what is switched on now. */
async function heard(name) {
  const another = recordings({ [name]: null });
  try {
    await press("view-recordings");
    await drop(...another.paths);
    await until(`${name} finished`, async () => {
      // Where the program asks whether the demonstration model is really meant.
      await window.run("document.querySelector('[data-testid=anyway]')?.click()");
      return (await states(window))[name] === "finished";
    });
    await window.run("[...document.querySelectorAll('[data-testid=job]')].find((job) => job.querySelector('.name').innerText === arguments[0]).querySelector('.name').click()", name);
    return await until("its words", async () => (await window.run("return document.querySelector('[data-testid=transcript-name]')?.innerText ?? arguments[0]", name)).includes(name) && text());
  } finally {
    await another.remove();
  }
}

test("corrections are found, and a model learns from those that are ticked", async () => {
  await window.click(by("anyway"));
  await until("the end of all", async () => Object.values(await states(window)).every((state) => state === "finished"));
  await until("the words", async () => (await text()).includes("Toronto"));
  await press("replacing");
  await press("everywhere");
  for (const [from, to] of CORRECTIONS) {
    await write("search", from);
    await write("replacement", to);
    await press("replace-all");
    // They are in all of them.
    await press("replace-question-yes");
    await until(to, async () => (await text()).includes(to));
  }
  await press("view-models");
  await until("the lessons", async () => (await window.run("return document.querySelectorAll('[data-testid=lesson]').length")) === TALKS.length);
  assert.match(await window.run("return document.querySelector('[data-testid=lessons]').innerText"), /October/);
  await window.run("document.querySelector('[data-testid=learning]').scrollIntoView()");
  await picture(window, "lessons");
  await press("play-lesson");
  await until("sound", async () => (await window.run("return document.querySelector('audio')?.currentTime ?? 0")) > 0.2);
  await press("view-models");
  await press("start-learning");
  const stage = () => window.run("return document.querySelector('[data-testid=learning-run]')?.dataset.stage ?? null");
  await until("a run", async () => (await stage()) !== null);
  await until("the result", async () => !["waiting", "training", "comparing"].includes(await stage()), 300_000);
  assert.equal(await stage(), "kept", await window.run("return document.querySelector('[data-testid=learning]').innerText"));
  // All that was held back is right with what is remembered: nothing is trained.
  assert.match(await window.run("return document.querySelector('[data-testid=learning-run]').innerText"), /remembered/);
  await until("the adapter", () => window.find(by("adapter-on")).catch(() => null));
  assert.match(await window.run("return document.querySelector('[data-testid=adapter-figures]').innerText"), /october/);
  await window.run("document.querySelector('[data-testid=learning-run]').scrollIntoView()");
  await picture(window, "learnt");
});

test("what was learned is used for the next recording, and no longer once it is switched off", async () => {
  assert.match(await heard("with.flac"), /October.*folder/);
  await press("view-models");
  await press("adapter-on");
  await until("off", () => window.run("return !document.querySelector('[data-testid=adapter-on]').checked"));
  assert.match(await heard("without.flac"), /Toronto.*report/);
});
