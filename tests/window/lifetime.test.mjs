// How work is stopped, and that nothing outlives the window.
import assert from "node:assert/strict";
import { copyFileSync, existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { askWindow, by, drop, longRecording, open, picture, recordings, sample, starter, states } from "./common.mjs";
import { descendants, isAlive, until } from "./driver.mjs";

/** Milliseconds. */
const SECOND = 1000;

let files, long;
before(async () => {
  files = recordings({ "notes.flac": null });
  long = await longRecording(files.folder);
});
after(() => files?.remove());

/** A window that is busy with the long recording, seen to have written something. */
async function busyWindow(args = [], env = {}) {
  const window = await open({ args: [...args, long], env });
  await window.click(by("anyway"));
  await until("the first words", async () => (await window.texts(by("segment"))).length > 0);
  return window;
}

async function gone(pids, patience) {
  const start = Date.now();
  await until(`the end of ${pids}`, () => !pids.some(isAlive), patience);
  return Date.now() - start;
}

test("a job is stopped within a second and keeps its words", async () => {
  const window = await busyWindow();
  try {
    await window.run(`
      const list = document.querySelector("[data-testid=queue]");
      new MutationObserver(() => {
        if (list.querySelector("[data-state=cancelled]")) window.stopped ??= performance.now();
      }).observe(list, { subtree: true, attributes: true });
      window.asked = performance.now();
      document.querySelector("[data-testid=stop]").click();`);
    const took = await until("the end", () => window.run("return window.stopped && window.stopped - window.asked"));
    assert.ok(took < 1.5 * SECOND, `stopped after ${Math.round(took)} ms`);
    assert.ok((await window.texts(by("segment"))).length > 0);
    assert.match(await window.text(by("partial")), /Stopped early/);
    await picture(window, "stopped");
  } finally {
    await window.end();
  }
});

test("kill -9 of the window ends the engine within a second and leaves its queue", async () => {
  const env = { STENO_STATE_FOLDER: join(files.folder, "state") };
  let window = await busyWindow([], env);
  try {
    const engines = window.engines();
    assert.equal(engines.length, 1);
    const all = descendants(window.pid);
    process.kill(window.pid, "SIGKILL");
    const took = await gone(engines, SECOND);
    console.log(`the engine ended ${took} ms after the window`);
    await gone(all, 30 * SECOND);
  } finally {
    await window.end();
  }
  window = await open({ env });
  try {
    await until("the queue", async () => "long.flac" in (await states(window)));
  } finally {
    await window.end();
  }
});

test("closing while working asks first; yes ends the engine in an orderly way", async () => {
  const window = await busyWindow([sample]);
  try {
    await askWindow("close", "^Steno$");
    await until("the question", async () => /not finished/.test(await window.text(by("closing"))));
    await picture(window, "closing");
    await window.click(by("stay"));
    assert.deepEqual([...new Set(Object.values(await states(window)))].includes("running"), true);
    await askWindow("close", "^Steno$");
    await until("the question again", async () => /not finished/.test(await window.text(by("closing"))));
    const pids = [window.pid, ...descendants(window.pid)];
    await window.click(by("close-anyway")).catch(() => {});
    await gone(pids, 10 * SECOND);
  } finally {
    await window.end();
  }
});

test("an engine that is killed is replaced, and the job goes on with what it had", async () => {
  const window = await busyWindow();
  try {
    const [engine] = window.engines();
    const before = (await window.texts(by("segment"))).length;
    process.kill(engine, "SIGKILL");
    await until("another engine", async () => window.engines().some((pid) => pid !== engine));
    await until("more words", async () => (await window.texts(by("segment"))).length > before);
    assert.equal((await states(window))["long.flac"], "running");
    await picture(window, "engine-killed");
  } finally {
    await window.end();
  }
});

test("a passage that no engine survives is a gap, which the next start fills", async () => {
  const env = { STENO_STATE_FOLDER: join(files.folder, "gaps"), XDG_CONFIG_HOME: join(files.folder, "gaps/config") };
  const recording = await longRecording(files.folder, 1.5, "gap.flac");
  const starts = async () => (await window.texts(by("segment"))).map((text) => Number(/^0:(\d+)/.exec(text)?.[1] ?? 60));
  let window = await open({ args: [recording], env: { ...env, STENO_TEST_ABORT_AT: "0" } });
  try {
    await window.click(by("anyway"));
    await until("the end", async () => (await states(window))["gap.flac"] === "finished");
    assert.match((await window.texts(by("gaps"))).join(), /0:00–0:\d+/);
    const heard = await starts();
    assert.ok(heard.length > 0 && heard.every((start) => start > 15), `segments at ${heard}`);
    await picture(window, "gap");
  } finally {
    await window.end();
  }
  window = await open({ env });
  try {
    await window.click(by("view-history"));
    await window.click(by("open-document"));
    await until("its gap", async () => (await window.texts(by("again"))).length > 0);
    const before = await window.texts(by("segment"));
    await window.click(by("again"));
    await until("what was said there", async () => (await starts()).filter((start) => start < 15).length > 1);
    await until("no gap at the beginning", async () => !/0:00–/.test((await window.texts(by("gaps"))).join()));
    const after = await window.texts(by("segment"));
    assert.match(after[0], /^0:00/);
    // What was there already is as it was.
    assert.deepEqual(after.slice(-before.length + 1), before.slice(1));
    await picture(window, "gap-filled");
  } finally {
    await window.end();
  }
});

test("the next start has the language and the size of the last", async () => {
  const env = { XDG_CONFIG_HOME: join(files.folder, "config") };
  const choose = (language) => `
    const select = document.querySelector("[data-testid=language]");
    select.value = "${language}";
    select.dispatchEvent(new Event("change", { bubbles: true }));`;
  let window = await open({ env });
  try {
    await until("the settings", () => window.find(by("language")));
    await window.run(choose("de"));
    await window.resize(900, 640);
    await until("the size", async () => (await window.run("return innerWidth")) === 900);
    await askWindow("close", "^Steno$");
    await gone([window.pid], 10 * SECOND);
  } finally {
    await window.end();
  }
  window = await open({ env });
  try {
    await until("the language", async () => (await window.run("return document.querySelector('[data-testid=language]')?.value")) === "de");
    assert.deepEqual(await window.run("return [innerWidth, innerHeight]"), [900, 640]);
  } finally {
    await window.end();
  }
});

test("without an engine the window says where it looked, and what to do", async () => {
  const window = await open({ env: { STENO_ENGINE: "/nowhere/steno-engine" } });
  try {
    await until("the warning", async () => /not available/.test(await window.text(by("engine"))));
    await window.click(by("engine"));
    const said = await until("the reason", () => window.text("#engine:popover-open"));
    assert.match(said, /\/nowhere\/steno-engine/);
    await picture(window, "no-engine");
  } finally {
    await window.end();
  }
});

test("files and models are chosen in the system's dialogs", async () => {
  // Without the file that calls it a demonstration it passes for a real model.
  const model = join(files.folder, "real-model");
  mkdirSync(model);
  for (const name of readdirSync(starter)) {
    if (!["steno-model.json", "training"].includes(name)) copyFileSync(join(starter, name), join(model, name));
  }
  const window = await open();
  try {
    await window.click(by("choose"));
    await askWindow("keys", "Choose recordings", "Control_L+l", `=${files.paths[0]}`, "Return");
    await until("the file", async () => (await states(window))["notes.flac"] === "held");
    await window.click(by("import"));
    await askWindow("keys", "Choose a model", "Control_L+l", `=${model}`, "Return");
    await until("the end", async () => (await states(window))["notes.flac"] === "finished");
    const chosen = await window.run("return document.querySelector('[data-testid=model]').selectedOptions[0].innerText");
    assert.equal(chosen.trim(), "real-model");
    assert.equal(await window.text(by("demonstration-banner")), null);
  } finally {
    await window.end();
  }
});

test("a page that is loaded anew shows what there was", async () => {
  const window = await open({ args: [files.paths[0]] });
  try {
    await window.click(by("anyway"));
    await until("the end", async () => (await states(window))["notes.flac"] === "finished");
    const before = await until("the words", async () => (await window.texts(by("segment"))).join());
    await window.run("location.reload()");
    await until("the words again", async () => (await window.texts(by("segment"))).join() === before);
  } finally {
    await window.end();
  }
});

test("the file dialog saves where the user says", async () => {
  const window = await open({ args: [files.paths[0]] });
  try {
    await window.click(by("anyway"));
    await window.click(by("save-as"));
    await window.click(by("format-srt"));
    await window.click(by("format-vtt"));
    await window.click(by("save-elsewhere"));
    // It proposes the recording's folder and name.
    await askWindow("keys", "Save the transcript", "Return");
    const file = files.paths[0].replace(/flac$/, "vtt");
    await until("the file", () => existsSync(file));
    await until("the message", async () => (await window.texts(by("toast"))).some((text) => text.includes(file)));
  } finally {
    await window.end();
  }
});

test("words to expect come from a list and go into one", async () => {
  const [list, saved] = [join(files.folder, "list.txt"), join(files.folder, "saved.txt")];
  writeFileSync(list, "\ufeffAda Lovelace\r\n\r\nnaproxen\r\n");
  const window = await open();
  const words = () => window.run("return document.querySelector('[data-testid=all-words]').value");
  try {
    await window.click(by("more-settings"));
    await window.click(by("all-read-words"));
    await askWindow("keys", "Choose a list of words", "Control_L+l", `=${list}`, "Return");
    await until("the words", async () => (await words()) === "Ada Lovelace, naproxen");
    await window.click(by("all-save-words"));
    await askWindow("keys", "Save the list of words", "Control_L+a", `=${saved}`, "Return");
    await until("the file", () => existsSync(saved));
    assert.equal(readFileSync(saved, "utf8"), "Ada Lovelace\nnaproxen\n");
  } finally {
    await window.end();
  }
});
