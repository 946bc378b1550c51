// What the window says of memory, and what the user chooses: seen in the real
// window, with real jobs under real limits.
import assert from "node:assert/strict";
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { askWindow, by, drop, open, picture, recordings, sample, starter, states } from "./common.mjs";
import { until } from "./driver.mjs";

let files;
before(() => {
  files = recordings({ "one.flac": null, "two.flac": null, "three.flac": null, "four.flac": null, "broken.mp3": "No recording.\n".repeat(300) });
});
after(() => files?.remove());

/** A window that remembers in a folder of its own. */
function fresh(name, options = {}) {
  const env = { XDG_CONFIG_HOME: join(files.folder, name), ...options.env };
  return open({ ...options, env });
}

const finished = (window, name) => until("the end", async () => (await states(window))[name] === "finished");

/** As a user chooses in a list. */
const choose = (window, id, value) =>
  window.run(
    `const field = document.querySelector(arguments[0]);
    field.value = arguments[1];
    field.dispatchEvent(new Event("change", { bubbles: true }));`,
    id,
    value,
  );

test("the chart shows a job's memory with its stages, and its table is saved", async () => {
  const window = await fresh("chart", { args: [files.paths[0]] });
  try {
    await window.click(by("anyway"));
    await finished(window, "one.flac");
    await window.click(by("tab-memory"));
    // Strong colours of lines and stages: more than a frame of axes has.
    const coloured = await until("the chart", () =>
      window.run(`
        const canvas = document.querySelector(".memory canvas");
        if (!canvas) return 0;
        const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
        let found = 0;
        for (let at = 0; at < data.length; at += 4) {
          const [red, green, blue, alpha] = data.subarray(at, at + 4);
          if (alpha > 200 && Math.max(red, green, blue) - Math.min(red, green, blue) > 60) found++;
        }
        return found > 500 && found;`),
    );
    console.log(`${coloured} coloured pixels`);
    const stages = await window.texts(`${by("stages")} tbody th`);
    for (const wanted of ["Audio", "Model", "Transcription"]) assert.ok(stages.includes(wanted), `${wanted} in ${stages}`);
    const [predicted, measured] = [await window.text(by("predicted")), await window.text(by("measured"))];
    assert.match(predicted, /^\d+ MB$/);
    assert.match(measured, /^\d+ MB$/);
    console.log(`predicted ${predicted}, measured ${measured}`);
    assert.match(await window.text(by("checkpoint")), / · Final clean-up · Steno: \d+ MB · .*Free: /);
    await picture(window, "memory");
    await window.click(by("memory-csv"));
    await askWindow("keys", "Save the memory", "Return");
    const table = files.paths[0].replace("flac", "memory.csv");
    await until("the table", () => existsSync(table));
    const lines = readFileSync(table, "utf8").trimEnd().split("\n");
    assert.equal(lines[0], "seconds,device,checkpoint,ours,peak,others,free,limit");
    const checkpoints = lines.slice(1).map((line) => line.split(",")[2]);
    for (const wanted of ["pipeline_start", "after_speech_model_load", "after_transcribe", "final_cleanup"]) {
      assert.ok(checkpoints.includes(wanted), `${wanted} in ${checkpoints}`);
    }
    await window.click(by("memory-png"));
    await askWindow("keys", "Save the memory", "Return");
    const image = files.paths[0].replace("flac", "memory.png");
    await until("the picture", () => existsSync(image));
    assert.equal(readFileSync(image).subarray(1, 4).toString(), "PNG");
  } finally {
    await window.end();
  }
});

test("under a limit set in the settings the job steps down, says so and completes", async () => {
  const window = await fresh("limit");
  try {
    await window.click(by("view-settings"));
    await until("the settings", () => window.find("#preference-memory_limit"));
    await choose(window, "#preference-memory_limit", "lots");
    const refused = await until("the refusal", () => window.text(`${by("preference-memory_limit")} [role=alert]`));
    assert.match(refused, /6GiB/);
    await choose(window, "#preference-memory_limit", "30MiB");
    const config = join(files.folder, "limit/steno/config.toml");
    await until("the file", () => existsSync(config) && /memory_limit = "30MiB"/.test(readFileSync(config, "utf8")));
    await window.click(by("view-recordings"));
    await drop(files.paths[1]);
    await window.click(by("anyway"));
    await finished(window, "two.flac");
    const told = await until("the message", async () => (await window.texts(by("toast"))).find((text) => /bits|q8_0|weights/i.test(text)));
    console.log(told);
    await window.click(by("tab-memory"));
    const codes = await window.run("return [...document.querySelectorAll('[data-testid=memory-notices] li')].map((notice) => notice.dataset.code)");
    assert.ok(codes.includes("memory.precision_lowered"), `${codes}`);
    await picture(window, "memory-limit");
    await window.click(by("tab-text"));
    assert.match(await window.text(by("notices")), /q8_0/);
  } finally {
    await window.end();
  }
});

test("of five files the broken one fails alone, and the order is the user's", async () => {
  const window = await fresh("queue");
  try {
    await until("the drop zone", () => window.text(by("drop-zone")));
    await drop(...files.paths);
    await until("five files", async () => Object.keys(await states(window)).length === 5);
    // The fourth, two places up, by keyboard; while all still wait.
    const names = () => window.texts(".name");
    await window.run(`document.querySelectorAll("[data-testid=grip]")[3].focus();`);
    await window.type("\uE013");
    await until("the order", async () => (await names())[2] === "four.flac");
    await window.type("\uE013");
    await until("the order", async () => (await names())[1] === "four.flac");
    await window.run(`
      window.begun = [];
      new MutationObserver(() => {
        const name = document.querySelector("[data-state=running] .name")?.innerText;
        if (name && begun.at(-1) !== name) begun.push(name);
      }).observe(document.body, { subtree: true, childList: true, characterData: true, attributes: true });`);
    await window.click(by("anyway"));
    await until("all ends", async () => Object.values(await states(window)).every((state) => /finished|failed/.test(state)));
    assert.equal((await states(window))["broken.mp3"], "failed");
    assert.equal(Object.values(await states(window)).filter((state) => state === "finished").length, 4);
    const begun = (await window.run("return window.begun")).filter((name) => name !== "broken.mp3");
    assert.deepEqual(begun, ["one.flac", "four.flac", "two.flac", "three.flac"]);
    await picture(window, "queue");
  } finally {
    await window.end();
  }
});

test("a model is chosen by whether it fits, and several formats are written", async () => {
  const models = join(files.folder, "models");
  const real = join(models, "real-model");
  mkdirSync(real, { recursive: true });
  for (const name of readdirSync(starter)) if (!["steno-model.json", "training"].includes(name)) copyFileSync(join(starter, name), join(real, name));
  const window = await fresh("models", { env: { STENO_MODELS: models } });
  try {
    await window.click(by("view-models"));
    const choices = () => window.run(`return [...document.querySelectorAll("[data-testid=model-choice]")].map((choice) => [choice.innerText, choice.dataset.fit, choice.querySelector("input").checked])`);
    const found = await until("how they fit", async () => {
      const found = await choices();
      // Of all models the machine is recommended one of the catalogue.
      return found.some(([text]) => /Best installed/.test(text)) && found;
    });
    const [text, fit, checked] = found.find(([text]) => /real-model/.test(text));
    assert.match(text, /Best installed[\s\S]*parameters[\s\S]*on disk[\s\S]*needs \d+ MB/);
    assert.deepEqual([fit, checked], ["comfortable", true]);
    assert.match(await window.text(by("why-cpu")), /Why the graphics card is not used/);
    await picture(window, "models");
    await window.click(by("view-recordings"));
    await drop(sample);
    await finished(window, "sample.flac");
    assert.equal(await window.text(by("demonstration-banner")), null);
    await window.click(by("view-models"));
    await window.run(`[...document.querySelectorAll("[data-testid=model-choice]")].find((choice) => /demonstration/.test(choice.innerText)).click()`);
    await window.click(by("view-recordings"));
    await drop(files.paths[2]);
    // What is being read stays open.
    await until("the second", async () => (await states(window))["three.flac"] === "held");
    await window.click(`${by("queue")} li:nth-child(2) .row`);
    await until("the question", () => window.text(by("demonstration-question")));
    await window.click(by("better"));
    await finished(window, "three.flac");
    await window.click(`${by("queue")} li:nth-child(2) .row`);
    await window.click(by("save-as"));
    await window.click(by("format-docx"));
    await window.click(by("format-vtt"));
    await picture(window, "export");
    await window.click(by("save-beside"));
    for (const ending of ["srt", "vtt", "docx"]) await until(ending, () => existsSync(files.paths[2].replace("flac", ending)));
    assert.match(readFileSync(files.paths[2].replace("flac", "vtt"), "utf8"), /^WEBVTT\n/);
    assert.equal(readFileSync(files.paths[2].replace("flac", "docx")).subarray(0, 2).toString(), "PK");
  } finally {
    await window.end();
  }
});

test("theme, language and formats are those of the last time", async () => {
  let window = await fresh("look");
  try {
    await window.click(by("view-settings"));
    await until("the settings", () => window.find(by("theme")));
    await choose(window, by("theme"), "dark");
    await choose(window, by("interface-language"), "de");
    await until("German", async () => (await window.text("main h2")) === "Einstellungen");
    assert.equal(await window.run("return document.documentElement.dataset.theme"), "dark");
    await picture(window, "settings-dark-german");
    await until("the report", () => window.run("return !document.querySelector('[data-testid=diagnostics]').disabled"));
    await window.click(by("diagnostics"));
    await until("the message", async () => (await window.texts(by("toast"))).includes("Diagnosedaten kopiert."));
    const report = JSON.parse(await window.run("return document.querySelector('[data-testid=report]').textContent"));
    assert.equal(report.engine.backend, "cpu");
    assert.equal(report.failure, null);
  } finally {
    await window.end();
  }
  window = await fresh("look");
  try {
    await until("German again", async () => (await window.text(by("view-settings"))) === "Einstellungen");
    assert.equal(await window.run("return document.documentElement.dataset.theme"), "dark");
    assert.equal(await window.run("return document.documentElement.lang"), "de");
  } finally {
    await window.end();
  }
});
