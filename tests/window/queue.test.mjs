// What the queue does by itself: watched folders, what goes on after closing,
// and what it asks of the desktop meanwhile.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";
import { askWindow, by, drop, longRecording, open, picture, recordings, root, sample, starter, states } from "./common.mjs";
import { isAlive, PATIENCE, until } from "./driver.mjs";

let files, model;
before(() => {
  files = recordings({ "first.flac": null, "second.flac": null });
  // Without the file that calls it a demonstration it passes for a real model.
  model = join(files.folder, "real-model");
  mkdirSync(model);
  for (const name of readdirSync(starter)) {
    if (!["steno-model.json", "training"].includes(name)) copyFileSync(join(starter, name), join(model, name));
  }
});
after(() => files?.remove());

/** Folders of a window's own, with what it remembers and the user's settings. */
function user(name, remembered, config = "") {
  const env = { XDG_CONFIG_HOME: join(files.folder, name, "config"), STENO_STATE_FOLDER: join(files.folder, name, "state") };
  mkdirSync(join(env.XDG_CONFIG_HOME, "steno"), { recursive: true });
  const window = { model, models: [model], ...remembered };
  writeFileSync(join(env.XDG_CONFIG_HOME, "steno/window.json"), JSON.stringify(window));
  writeFileSync(join(env.XDG_CONFIG_HOME, "steno/config.toml"), config);
  return env;
}

async function close(window) {
  await askWindow("close", "^Steno$");
  await until("the end or the question", async () => !isAlive(window.pid) || (await window.text(by("closing"))));
  if (isAlive(window.pid)) await window.click(by("close-anyway")).catch(() => {});
  await until("the end", () => !isAlive(window.pid), 10_000);
}

test("a recording that appears in a watched folder is transcribed and exported, once", async () => {
  const folder = join(files.folder, "recorder");
  const texts = join(files.folder, "texts");
  [folder, texts].forEach((path) => mkdirSync(path));
  const watched = [{ folder, exporting: { formats: ["srt", "txt"], shaped: false, word_times: false, raw_text: false, translation: false, document: { times: true, speakers: true, paragraphs: true } }, into: texts }];
  const env = user("watching", { watched });
  let window = await open({ env });
  try {
    await until("the page", () => window.text(by("drop-zone")));
    copyFileSync(sample, join(folder, "dictation.flac"));
    await until("the text", () => existsSync(join(texts, "dictation.txt")));
    assert.match(readFileSync(join(texts, "dictation.srt"), "utf8"), /-->/);
    // The text is there a moment before the page hears of it.
    await until("the end", async () => (await states(window))["dictation.flac"] === "finished");
    assert.match(await window.text(by("watched")), /1 folder is watched/);
    await picture(window, "watched");
  } finally {
    await close(window);
    await window.end();
  }
  window = await open({ env });
  try {
    await until("the page", () => window.text(by("drop-zone")));
    copyFileSync(join(files.folder, "first.flac"), join(folder, "the same.flac"));
    const noise = readFileSync(sample);
    // Another recording to this program, and still one that can be decoded.
    writeFileSync(join(folder, "another.flac"), Buffer.concat([noise, Buffer.from([0])]));
    await until("the other text", () => existsSync(join(texts, "another.txt")));
    // The one that was done before is not among them.
    await until("the end", async () => Object.entries(await states(window)).join() === "another.flac,finished");
  } finally {
    await window.end();
  }
});

test("what is not finished when the window is closed goes on at the next start, with its engine stepping back", async () => {
  const env = user("closing", {}, '[engine]\npriority = "low"\nthreads = 1\n');
  const long = await longRecording(files.folder, 1);
  let window = await open({ args: [long, files.paths[0]], env });
  try {
    await until("the first words", async () => (await window.texts(by("segment"))).length > 0);
    const [engine] = window.engines();
    const nice = Number(readFileSync(`/proc/${engine}/stat`, "utf8").replace(/^.*\) /s, "").split(" ")[16]);
    assert.ok(nice >= 10, `nice ${nice}`);
    await askWindow("close", "^Steno$");
    await until("the question", async () => /2 recordings are not finished. They resume/.test(await window.text(by("closing"))));
    await window.click(by("close-anyway")).catch(() => {});
    await until("the end", () => !isAlive(window.pid), 10_000);
  } finally {
    await window.end();
  }
  window = await open({ env });
  try {
    await until("both", async () => Object.values(await states(window)).join() === "finished,finished", 2 * PATIENCE);
  } finally {
    await window.end();
  }
});

test("a paused recording frees the engine, outlives a killed window, and goes on where it was", async () => {
  const env = user("pausing", {});
  const long = await longRecording(files.folder, 3, "paused.flac");
  let window = await open({ args: [long], env });
  const state = async (name) => (await states(window))[name];
  try {
    await until("the first words", async () => (await window.texts(by("segment"))).length > 0);
    await window.click(by("pause-job"));
    await until("the pause", async () => (await state("paused.flac")) === "paused");
    assert.match(await window.text(by("paused-job")), /^Paused at \d:\d\d of 3:00/);
    await until("the end of its engine", () => window.engines().length === 0);
    await picture(window, "paused");
    await drop(files.paths[0]);
    await until("the next one", async () => (await state("first.flac")) === "finished");
    assert.equal(await state("paused.flac"), "paused");
  } finally {
    process.kill(window.pid, "SIGKILL");
    await until("its end", () => !isAlive(window.pid));
    await window.end();
  }
  window = await open({ env });
  try {
    await until("the list", async () => (await state("paused.flac")) === "paused");
    await window.click(by("job") + " .row");
    await until("how far it is", async () => /^Paused at \d:\d\d of 3:00/.test(await window.text(by("paused-job"))));
    assert.ok((await window.texts(by("segment"))).length > 0, "its text");
    await window.click(by("resume"));
    await until("the text", async () => (await state("paused.flac")) === "finished", 2 * PATIENCE);
  } finally {
    await window.end();
  }
});

test("the machine is kept awake while there is work, and its end is told on the desktop in numbers", async () => {
  const address = process.env.DBUS_SESSION_BUS_ADDRESS;
  const desktop = spawn("/usr/bin/python3", [join(root, "crates/desktop/tests/simulated_desktop.py")], { stdio: ["ignore", "pipe", "inherit"] });
  const said = [];
  createInterface({ input: desktop.stdout }).on("line", (line) => said.push(line));
  await until("the stand-ins", () => said.includes("ready"));
  const env = { ...user("desktop", {}), DBUS_SYSTEM_BUS_ADDRESS: address };
  // Long enough that it is left while it works.
  const window = await open({ args: [await longRecording(files.folder, 2), files.paths[0]], env });
  try {
    await until("the work", () => said.length > 1);
    await askWindow("leave", "^Steno$");
    await until("both", async () => Object.values(await states(window)).join() === "finished,finished");
    await until("the end of it", () => said.includes("released"));
    assert.equal(said[1], "inhibit sleep:idle Steno Transcribing recordings block");
    await until("the message", () => said.includes("notify Steno: 2 recordings are done, "));
    // Switched off it asks for nothing.
    said.length = 0;
    await window.click(by("view-settings"));
    await window.click(by("switch-stay_awake"));
    await window.click(by("switch-notify"));
    await window.click(by("view-recordings"));
    await drop(sample);
    await until("the third", async () => (await states(window))["sample.flac"] === "finished");
    assert.deepEqual(said, []);
  } finally {
    await window.end();
    desktop.kill();
  }
});
