// Models in the real window: downloaded from a server on this machine, interrupted, resumed, removed, imported.
import assert from "node:assert/strict";
import { copyFileSync, existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { askWindow, by, open, picture, recordings, starter, states } from "./common.mjs";
import { isAlive, until } from "./driver.mjs";
import { startHub } from "./hub.mjs";

/** Of the catalogue; what the server has under its name are the demonstration's files. */
const MODEL = "whisper-tiny";
/** Bytes a second, so that the download of 10 MB can be interrupted. */
const SLOW = 500_000;

let files, hub, env, real;
before(async () => {
  files = recordings({ "notes.flac": null });
  // Without the file that calls it a demonstration it passes for a real model.
  real = join(files.folder, "real-model");
  mkdirSync(real);
  for (const name of readdirSync(starter)) {
    if (!["steno-model.json", "training"].includes(name)) copyFileSync(join(starter, name), join(real, name));
  }
  hub = await startHub({ [`openai/${MODEL}`]: real });
  env = {
    HF_ENDPOINT: hub.url,
    HF_HOME: join(files.folder, "cache"),
    XDG_DATA_HOME: join(files.folder, "data"),
    XDG_CONFIG_HOME: join(files.folder, "config"),
    STENO_STATE_FOLDER: join(files.folder, "state"),
    NO_PROXY: "127.0.0.1",
  };
});
after(async () => {
  await hub?.close();
  await files?.remove();
});

const row = (id) => `[data-testid=catalog-entry][data-id="${id}"]`;
const store = () => join(files.folder, "data/steno/models");

test("nothing is asked of the network until the button is pressed; a killed download is listed and goes on", async () => {
  let window = await open({ env, args: [files.paths[0]] });
  try {
    await until("the question", () => window.text(by("demonstration-question")));
    await window.click(by("view-models"));
    await until("the offers", () => window.text(row(MODEL)));
    assert.match(await window.text(row(MODEL)), /many languages · 151\s?MB to download · needs \d+ MB of .* free/);
    assert.deepEqual(hub.requests, []);
    hub.slow = SLOW;
    await window.click(`${row(MODEL)} ${by("download")}`);
    await until("some of it", async () => /\d+(\.\d)?\s?MB of 1\d\s?MB · .*\/s · .* left/.test(await window.text(row(MODEL))));
    await picture(window, "downloading");

    await window.click(by("pause-download"));
    await until("the pause", async () => /Paused/.test(await window.text(row(MODEL))));
    const before = hub.requests.length;
    await window.click(by("pause-download"));
    await until("a range", () => hub.requests.slice(before).some((request) => /GET weights.* bytes=\d+-/.test(request)));

    process.kill(window.pid, "SIGKILL");
    await until("its end", () => !isAlive(window.pid));
  } finally {
    await window.end();
  }
  assert.ok(!existsSync(join(store(), MODEL)), "nothing shows that is not whole");

  window = await open({ env });
  try {
    await until("the queue", async () => (await states(window))["notes.flac"] === "held");
    await window.click(by("view-models"));
    await until("what was begun", async () => /Interrupted at .* of 1\d\s?MB/.test(await window.text(row(MODEL))));
    await picture(window, "interrupted");
    hub.slow = null;
    await window.click(`${row(MODEL)} ${by("download")}`);
    await until("the model", async () => (await window.texts(by("model-choice"))).some((text) => text.includes(MODEL)));
    assert.ok(existsSync(join(store(), MODEL, "model.safetensors")));
    // What waited for a real model is begun, with it.
    await window.click(by("view-recordings"));
    await until("the transcript", async () => {
      const state = (await states(window))["notes.flac"];
      if (state !== "finished") throw new Error(`${state}; ${await window.text(by("failure"))}`);
      return true;
    });
    assert.equal(await window.text(by("demonstration-banner")), null);
    assert.ok((await window.texts(by("segment"))).length > 0);

    await window.click(by("view-settings"));
    await window.click(`${by("connections")} summary`);
    const used = await until("the log", async () => {
      const rows = await window.texts(by("connection"));
      return rows.length > 3 && rows;
    });
    assert.ok(used.every((row) => row.includes("127.0.0.1")), used.join("\n"));
    assert.ok(used.some((row) => /model\.safetensors of whisper-tiny/.test(row)), used.join("\n"));
    await picture(window, "connections");
  } finally {
    await window.end();
  }
});

test("a damaged model is repaired, and removed only after a question", async () => {
  writeFileSync(join(store(), MODEL, "tokenizer.json"), "{}");
  const window = await open({ env });
  try {
    await window.click(by("view-models"));
    await until("the damage", async () => /Damaged: tokenizer\.json/.test(await window.text(row(MODEL))));
    const before = hub.requests.length;
    await window.click(`${row(MODEL)} ${by("download")}`);
    await until("the model", async () => (await window.texts(by("model-choice"))).some((text) => text.includes(MODEL)));
    assert.ok(!hub.requests.slice(before).some((request) => request.includes("weights/")), "the weights were left alone");

    await window.click(by("remove-installed"));
    await until("the question", async () => (await window.text(by("remove"))).includes(MODEL));
    await window.click(by("remove-no"));
    assert.ok(existsSync(join(store(), MODEL)));
    await window.click(by("remove-installed"));
    await window.click(by("remove-yes"));
    await until("the end of it", () => !existsSync(join(store(), MODEL)));
    await until("the offer", async () => (await window.text(row(MODEL)))?.includes("to download"));
  } finally {
    await window.end();
  }
});

test("with the network switched off the button says so and nothing is asked", async () => {
  const before = hub.requests.length;
  const window = await open({ env: { ...env, STENO_OFFLINE: "1" } });
  try {
    await window.click(by("view-models"));
    await until("the offers", () => window.text(row(MODEL)));
    assert.match(await window.text(`${row(MODEL)} ${by("download")}`), /Network off/);
    assert.equal(await window.run(`return document.querySelector('${row(MODEL)} ${by("download")}').disabled`), true);
    assert.equal(hub.requests.length, before);
  } finally {
    await window.end();
  }
});

test("an import names the part that is missing, and takes what is whole", async () => {
  const window = await open({ env });
  try {
    const half = join(files.folder, "half");
    mkdirSync(half);
    copyFileSync(join(real, "model.safetensors"), join(half, "model.safetensors"));
    await window.click(by("view-models"));
    await window.click(by("import-folder"));
    await askWindow("keys", "Choose a model", "Control_L+l", `=${half}`, "Return");
    await until("the failure", () => window.text(by("transfer-failure")));
    await window.click(`${by("transfer-failure")} summary`);
    const failure = await window.text(by("transfer-failure"));
    assert.match(failure, /config\.json/);
    await window.click(by("dismiss"));
    await until("its end", async () => (await window.text(by("transfer-failure"))) === null);

    await window.click(by("import-folder"));
    await askWindow("keys", "Choose a model", "Control_L+l", `=${real}`, "Return");
    await until("the model", async () => (await window.texts(by("model-choice"))).some((text) => text.includes("real-model")));
    assert.ok(existsSync(join(store(), "real-model/model.safetensors")));
  } finally {
    await window.end();
    rmSync(store(), { recursive: true, force: true });
  }
});
