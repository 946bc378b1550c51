// A Parakeet in the real window: what it can't be asked for, its text as it comes, edited and saved; another recording
// with a Whisper.
import assert from "node:assert/strict";
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { by, drop, execute, open, picture, recordings, root, states } from "./common.mjs";
import { until } from "./driver.mjs";

const FIRST = "talk.flac";
const SECOND = "another.flac";
const THIRD = "third.flac";
const MINUTE = join(root, "tests/data/corpus/audio/synthetic/en_minute_1");
/** WebDriver's names of keys. */
const END = "\uE010";
const CONTROL = "\uE009";
const ESCAPE = "\uE00C";

let window, files, third;
before(async () => {
  files = recordings({ [SECOND]: null, [THIRD]: null });
  third = files.paths.pop();
  // Of many pieces, so that the words of the first come while the others are worked on, and that there is time to drop
  // another one meanwhile.
  const path = join(files.folder, FIRST);
  await execute("ffmpeg", ["-v", "error", "-stream_loop", "19", "-i", `${MINUTE}.flac`, "-y", path]);
  files.paths.unshift(path);
  // Without the file that calls it a demonstration a model passes for a real one.
  const real = (name) => {
    const folder = join(files.folder, "data/steno/models", name);
    cpSync(join(root, `models/starter-${name}`), folder, { recursive: true });
    rmSync(join(folder, "steno-model.json"));
    return folder;
  };
  const [parakeet, whisper] = [real("parakeet"), real("whisper")];
  const env = {
    XDG_CONFIG_HOME: join(files.folder, "config"),
    XDG_DATA_HOME: join(files.folder, "data"),
    STENO_STATE_FOLDER: join(files.folder, "state"),
  };
  const document = { times: true, speakers: true, paragraphs: true };
  const exporting = { formats: ["srt", "json"], shaped: false, word_times: false, raw_text: false, translation: false, document };
  mkdirSync(join(env.XDG_CONFIG_HOME, "steno"), { recursive: true });
  writeFileSync(join(env.XDG_CONFIG_HOME, "steno/window.json"), JSON.stringify({ model: whisper, models: [whisper, parakeet], exporting }));
  window = await open({ env });
});
after(async () => {
  await window?.end();
  await files?.remove();
});

/** An option of a list, by what it says. */
async function choose(id, label) {
  await until(label, () => window.run("return [...document.querySelector(arguments[0]).options].some((option) => option.text === arguments[1])", by(id), label));
  await window.run(
    `const field = document.querySelector(arguments[0]);
     field.value = [...field.options].find((option) => option.text === arguments[1]).value;
     field.dispatchEvent(new Event("change", { bubbles: true }));`,
    by(id),
    label,
  );
}

/** Whether a field is disabled, and what is said beside it and when it is pointed at. */
const field = (id) =>
  window.run(
    `const field = document.querySelector(arguments[0]);
     return [field.disabled, [field.closest("label"), ...field.labels].map((label) => (label?.title ?? "") + (label?.textContent ?? "")).join()]`,
    by(id),
  );

const texts = () => window.run(`return [...document.querySelectorAll("[data-testid=segment]")].map((row) => row.querySelector("textarea")?.value ?? row.querySelector(".words")?.innerText ?? "")`);

test("what a Parakeet can't be asked for is disabled and says why", async () => {
  await until("the drop zone", () => window.text(by("drop-zone")));
  await until("Whisper's facts", async () => !(await field("language"))[0]);
  await choose("model", "parakeet");
  await until("Parakeet's facts", async () => (await field("language"))[0]);
  const reasons = {
    language: /finds the language by itself/,
    translate: /can’t translate/,
    "all-prompt": /takes no prompt/,
  };
  for (const [id, reason] of Object.entries(reasons)) {
    const [isDisabled, said] = await field(id);
    assert.ok(isDisabled && reason.test(said), `${id}: ${isDisabled}, ${said}`);
  }
  assert.equal((await field("all-words"))[0], false, "words to expect are for every model");
  assert.equal((await field("all-beams"))[0], false, "a transducer has beams");
  // It is seen without reading.
  const opacity = (id) => window.run("return Number(getComputedStyle(document.querySelector(arguments[0])).opacity)", by(id));
  assert.ok((await opacity("language")) < 0.7 && (await opacity("model")) === 1);
  await window.click(by("more-settings"));
  await picture(window, "parakeet-settings");
  await window.type([ESCAPE]);
});

test("its text is seen as it comes, and is what the recording says", async () => {
  await until("the list", () => window.run("return document.querySelector('[data-testid=drop-zone]') !== null"));
  await window.run(`
    window.seen = [];
    new MutationObserver(() => {
      const running = document.querySelector("[data-testid=progress]") !== null;
      seen.push([running, document.querySelectorAll("[data-testid=segment]").length]);
    }).observe(document.body, { subtree: true, childList: true, characterData: true });`);
  await drop(...files.paths);
  await window.click(by("pause"));
  await until("the end", async () => (await states(window))[FIRST] === "finished");
  assert.equal((await states(window))[SECOND], "waiting");
  const running = (await window.run("return window.seen")).filter(([running, segments]) => running && segments > 0);
  const counts = new Set(running.map(([, segments]) => segments));
  assert.ok(counts.size >= 2, `segments while it worked: ${[...counts]}`);
  const said = JSON.parse(readFileSync(`${MINUTE}.json`, "utf8")).segments.map(({ text }) => text);
  const shown = await texts();
  const exact = shown.filter((text) => said.includes(text));
  assert.ok(shown.length > 0 && exact.length >= shown.length / 2, `${exact.length} of ${shown.length} sentences are exact`);
  await picture(window, "parakeet-finished");
});

test("what was edited is in the file that is saved", async () => {
  // The text is long: the end of it is on the page, where the last words came. Where a panel opens or closes, the words
  // move: a click that fell beside them is made again, as a user would.
  let clicked = 0;
  await until("the field", async () => {
    const field = await window.find(by("segment-text")).catch(() => null);
    if (field !== null) return field;
    if (Date.now() - clicked < 3000) return null;
    const place = await window.run(`
      const list = document.querySelector("[data-testid=transcript]").getBoundingClientRect();
      const rows = [...document.querySelectorAll("[data-index]")];
      const row = rows.find((row) => row.getBoundingClientRect().top > list.top + 80);
      // Below the words is what is missing in them.
      if (row === undefined) return rows.at(-1).scrollIntoView({ block: "center" });
      const words = row.querySelector(".words");
      const { x, y } = words.getClientRects()[0];
      return { x: x + 3, y: y + 8 };`);
    if (place === null) return null;
    await window.clickAt(place.x, place.y, 2);
    clicked = Date.now();
    return null;
  });
  const text = await window.run("return document.querySelector(arguments[0]).value", by("segment-text"));
  const edited = `${text} Indeed.`;
  await window.press(CONTROL, END);
  await window.type([..." Indeed."]);
  await until("the text", async () => (await texts()).includes(edited));
  await window.click(by("save"));
  const saved = ["srt", "json"].map((format) => files.paths[0].replace(/flac$/, format));
  await until("the files", () => saved.every((file) => existsSync(file)));
  assert.equal(readFileSync(saved[0], "utf8").split(edited).length, 2);
  const { model, segments } = JSON.parse(readFileSync(saved[1], "utf8"));
  assert.equal(model.name, "parakeet");
  assert.equal(segments.filter(({ text }) => text === edited).length, 1);
});

test("a Whisper is taken for one recording, and the Parakeet stays for the others", async () => {
  await window.click(`${by("queue")} li:nth-child(2) .row`);
  await until("its title", async () => (await window.text(by("title"))) === SECOND);
  assert.ok((await field("own-language"))[0]);
  await choose("own-model", "whisper");
  await until("what Whisper takes", async () => !(await field("own-language"))[0]);
  await picture(window, "parakeet-own");
  await window.run(`
    window.live = [];
    new MutationObserver(() => {
      const text = document.querySelector("[data-testid=live-text]")?.textContent;
      if (text && live.at(-1) !== text) live.push(text);
    }).observe(document.body, { subtree: true, childList: true, characterData: true });`);
  await window.click(by("pause"));
  await until("the end", async () => (await states(window))[SECOND] === "finished");
  await until("its text", async () => (await texts()).length > 0);
  // What was being written was seen, and gave way to the text.
  const live = await window.run("return window.live");
  assert.ok(live.length > 0 && (await texts()).join(" ").startsWith(live[0].slice(0, 1)), `${live}`);
  assert.equal(await window.run("return document.querySelector('[data-testid=live-text]')"), null);
  assert.ok((await field("language"))[0], "the setting of the others");

  await window.click(by("save"));
  const saved = files.paths[1].replace(/flac$/, "json");
  await until("the file", () => existsSync(saved));
  assert.equal(JSON.parse(readFileSync(saved, "utf8")).model.name, "whisper");
});

test("the model follows from the language once that is switched on", async () => {
  await choose("model", "whisper");
  await until("what Whisper takes", async () => !(await field("language"))[0]);
  await window.click(by("view-settings"));
  await until("the settings", () => window.find("#preference-model_by_language"));
  await window.run(`
    const field = document.querySelector("#preference-model_by_language");
    field.value = "true";
    field.dispatchEvent(new Event("change", { bubbles: true }));`);
  await until("the config file", () => existsSync(join(files.folder, "config/steno/config.toml")));
  await picture(window, "model-by-language");
  await window.click(by("view-recordings"));
  await drop(third);
  await until("the end", async () => (await states(window))[THIRD] === "finished");
  await window.click(`${by("queue")} li:nth-child(3) .row`);
  await until("its title", async () => (await window.text(by("title"))) === THIRD);
  await until("what was heard", async () => /language is English \(100\s?%\), so the model parakeet/.test(await window.text(by("notices"))));
  await picture(window, "model-of-language");
  await window.click(by("save"));
  const saved = third.replace(/flac$/, "json");
  await until("the file", () => existsSync(saved));
  assert.equal(JSON.parse(readFileSync(saved, "utf8")).model.name, "parakeet");
});
