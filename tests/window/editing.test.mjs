// Transcripts are edited in the real window, undone, and there again after it was killed.
import assert from "node:assert/strict";
import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { by, open, picture, recordings, starter, states } from "./common.mjs";
import { descendants, isAlive, until } from "./driver.mjs";

const NAME = "interview.flac";
/** WebDriver's names of keys. */
const KEYS = { enter: "\uE007", backspace: "\uE003", escape: "\uE00C", home: "\uE011", end: "\uE010", control: "\uE009", shift: "\uE008" };

let window, files, env;
before(async () => {
  files = recordings({ [NAME]: null });
  env = { STENO_STATE_FOLDER: join(files.folder, "state"), XDG_CONFIG_HOME: join(files.folder, "config") };
  const second = join(files.folder, "second");
  cpSync(starter, second, { recursive: true });
  writeFileSync(join(second, "steno-model.json"), JSON.stringify({ name: "second", demonstration: true }));
  mkdirSync(join(env.XDG_CONFIG_HOME, "steno"), { recursive: true });
  writeFileSync(join(env.XDG_CONFIG_HOME, "steno/window.json"), JSON.stringify({ models: [second] }));
  window = await open({ args: files.paths, env });
});
after(async () => {
  await window?.end();
  await files?.remove();
});

/** Texts of all segments, without their times. */
async function texts() {
  return window.run(`return [...document.querySelectorAll("[data-testid=segment]")].map((row) =>
    row.querySelector("textarea")?.value ?? row.querySelector(".words").innerText)`);
}

const speakers = () => window.run(`return [...document.querySelectorAll("[data-testid=segment]")].map((row) => row.querySelector("strong")?.innerText ?? null)`);

async function edit(number) {
  const isOpen = await window.run("return document.querySelector('[data-testid=segment-text]') !== null");
  if (isOpen) {
    await window.run("document.querySelector('[data-testid=segment-text]').focus()");
    await window.type([KEYS.escape]);
    await until("no field", () => window.run("return document.querySelector('[data-testid=segment-text]') === null"));
  }
  // Where a panel closes, the words move: a click that fell beside them is made again, as a user would.
  let clicked = 0;
  await until("the field", async () => {
    const field = await window.find(by("segment-text")).catch(() => null);
    if (field !== null) return field;
    if (Date.now() - clicked < 3000) return null;
    const { x, y } = await window.run("const { x, y } = document.querySelector(arguments[0]).getClientRects()[0]; return { x: x + 3, y: y + 8 }", `[data-index="${number}"] .words`);
    await window.clickAt(x, y, 2);
    clicked = Date.now();
    return null;
  });
}

async function write(id, text) {
  await window.run(
    `const field = document.querySelector(arguments[0]);
     field.value = arguments[1];
     field.dispatchEvent(new Event("input", { bubbles: true }));`,
    by(id),
    text,
  );
}

async function choose(id, label) {
  await window.run(
    `const field = document.querySelector(arguments[0]);
     field.value = [...field.options].find((option) => option.text === arguments[1]).value;
     field.dispatchEvent(new Event("change", { bubbles: true }));`,
    by(id),
    label,
  );
}

/** Presses a button as soon as it can be. */
async function press(id) {
  await until(id, () => window.run("const button = document.querySelector(arguments[0]); return button && !button.disabled", by(id)));
  await window.run("document.querySelector(arguments[0]).click()", by(id));
}

/** Until the page shows what is expected. */
const becomes = (what, expected) => until(what, async () => JSON.stringify(await texts()) === JSON.stringify(expected));

let begun;

test("words that are typed become the text, and segments are split and joined by key", async () => {
  await window.click(by("anyway"));
  await until("the end", async () => (await states(window))[NAME] === "finished");
  await until("undo", () => window.find(by("undo")));
  begun = await until("the words", async () => (await texts()).length > 0 && texts());
  assert.ok(begun.length >= 2, JSON.stringify(begun));
  await edit(0);
  await window.type([KEYS.home, ..."Well, "]);
  await becomes("the text", [`Well, ${begun[0]}`, ...begun.slice(1)]);
  await picture(window, "editing");
  await window.type([KEYS.enter]);
  await becomes("two segments", ["Well,", ...begun]);
  await window.type([KEYS.backspace]);
  await becomes("one again", [`Well, ${begun[0]}`, ...begun.slice(1)]);
});

test("50 edits are undone and done again", async () => {
  const whole = await texts();
  const parts = ["Well,", ...begun];
  // The text is there a moment before the field that a key is for.
  const isFocused = () => window.run("return document.activeElement?.dataset.testid === 'segment-text'");
  for (let pair = 0; pair < 25; pair++) {
    await until("the whole segment's field", isFocused);
    await window.type([KEYS.enter]);
    await becomes("two segments", parts);
    await until("the new segment's field", isFocused);
    await window.type([KEYS.backspace]);
    await becomes("one again", whole);
  }
  const steps = [...Array(50).keys()].map((step) => (step % 2 === 0 ? parts : whole));
  for (const expected of steps) {
    await press("undo");
    await becomes("the step before", expected);
  }
  for (const expected of steps) {
    await press("redo");
    await becomes("the step again", expected);
  }
});

test("another model and another language try a passage, and the user chooses", async () => {
  const [first, , ...rest] = await texts();
  const wrong = [first, "Something else.", ...rest];
  await edit(1);
  await write("segment-text", wrong[1]);
  await becomes("the wrong words", wrong);
  await press("attempt");
  await choose("attempt-model", "second");
  await choose("attempt-language", "German");
  await press("attempt-go");
  const heard = await until("what German has for it", () => window.text(by("new-text")));
  assert.match(heard, /second, German/i);
  await until("what stands there", async () => /Something else\./.test(await window.text(by("old-text"))));
  await picture(window, "comparison");
  await press("keep-old");
  await until("the answer", async () => (await window.text(by("comparison"))) === null);
  await becomes("nothing changed", wrong);
  await edit(1);
  await press("attempt");
  await choose("attempt-model", "second");
  await press("attempt-go");
  await until("what English has for it", async () => /second, English/i.test((await window.text(by("new-text"))) ?? ""));
  await press("take-new");
  await until("what was said", async () => (await texts())[1] === begun[1]);
  await press("undo");
  await becomes("the wrong words again", wrong);
  await press("redo");
  await until("what was said again", async () => (await texts())[1] === begun[1]);
});

test("speakers are named, renamed and joined", async () => {
  await edit(0);
  await write("segment-text", "Number 49.");
  await press("speaker");
  await write("speaker-name", "Ada");
  await press("assign");
  await until("Ada", async () => (await speakers())[0] === "Ada");
  await edit(1);
  await press("speaker");
  await write("speaker-name", "Grace");
  await press("assign");
  await until("Grace", async () => (await speakers())[1] === "Grace");
  await picture(window, "speakers");
  await write("speaker-name", "Hopper");
  await press("rename-speaker");
  await until("Hopper", async () => (await speakers())[1] === "Hopper");
  await write("speaker-name", "Ada");
  await press("rename-speaker");
  await until("one of both", async () => (await speakers()).slice(0, 2).every((name) => name === "Ada"));
});

test("all places are replaced", async () => {
  await write("search", "number");
  await press("replacing");
  await write("replacement", "Figure");
  await press("replace-all");
  await until("the text", async () => (await texts())[0] === "Figure 49.");
  await write("search", "");
  await press("replacing");
});

test("kill -9 while typing loses no more than the last second", async () => {
  await edit(1);
  await window.type([KEYS.end]);
  // Key by key, as somebody types, for three seconds; what was there a second before the end is known.
  const typed = "one two three four five six seven eight nine ten";
  const begunAt = Date.now();
  const times = [];
  for (const letter of ` ${typed}`) {
    await window.type([letter]);
    times.push(Date.now() - begunAt);
    await window.runAsync("const [done] = arguments; setTimeout(done, 50)");
  }
  const end = Date.now() - begunAt;
  const all = descendants(window.pid);
  process.kill(window.pid, "SIGKILL");
  await until("the end", () => ![window.pid, ...all].some(isAlive), 20_000);
  await window.end();
  window = await open({ env });
  await window.click(by("view-history"));
  await until("the list", async () => (await window.texts(by("document"))).length === 1);
  await picture(window, "history");
  await until("it opens", () => window.click(by("open-document")).then(() => true, () => false));
  await until("the text", async () => (await texts()).length > 0);
  const now = await texts();
  assert.equal(now[0], "Figure 49.");
  assert.deepEqual((await speakers()).slice(0, 2), ["Ada", "Ada"]);
  const safe = times.filter((time) => time < end - 1000).length;
  const kept = now[1].slice(now[1].lastIndexOf(begun[1]) + begun[1].length).length;
  console.log(`${kept} of ${typed.length + 1} letters were kept; ${safe} were older than a second`);
  assert.ok(now[1].startsWith(begun[1]) && kept >= safe, `${now[1]}: ${kept} of ${safe}`);
});

test("what was undone before is undone after the restart too, and the saved file has the edited text", async () => {
  const now = await texts();
  for (let step = 0; step < 3; step++) await press("undo");
  await until("the text before", async () => JSON.stringify(await texts()) !== JSON.stringify(now));
  for (let step = 0; step < 3; step++) await press("redo");
  await becomes("the text again", now);
  await window.click(by("save"));
  const file = files.paths[0].replace(/flac$/, "srt");
  await until("the file", () => existsSync(file));
  const saved = readFileSync(file, "utf8");
  assert.match(saved, /Figure 49\./);
  assert.ok(!saved.includes(begun[0]), saved);
});

test("what was said is found in the history, deleted and brought back", async () => {
  await window.click(by("view-history"));
  await write("history-search", "figure 4");
  await until("the passage", async () => (await window.texts(by("hit"))).some((text) => text.includes("Figure 49.")));
  await write("history-search", "");
  await press("delete-document");
  await until("nothing", () => window.find(by("no-history")));
  // Where an earlier notice goes, the others move: a click that fell beside it is made again, as a user would.
  let clicked = 0;
  await until("it again", async () => {
    if ((await window.texts(by("document"))).length === 1) return true;
    if (Date.now() - clicked < 3000) return false;
    await window.click(`${by("toast")}:last-child ${by("toast-action")}`).catch(() => null);
    clicked = Date.now();
    return false;
  });
});
