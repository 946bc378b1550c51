// A whole correction session in the real window, with keys alone: from the history to the saved file.
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { askWindow, by, execute, open, picture, recordings, states } from "./common.mjs";
import { isAlive, until } from "./driver.mjs";

const NAME = "dictation.flac";
/** WebDriver's names of keys. */
const KEYS = {
  enter: "\uE007", tab: "\uE004", backspace: "\uE003", escape: "\uE00C", home: "\uE011", end: "\uE010", right: "\uE014", down: "\uE015",
  control: "\uE009", shift: "\uE008", f2: "\uE032", f3: "\uE033", f4: "\uE034", f9: "\uE039", f10: "\uE03A",
};

let window, files, env;
before(async () => {
  files = recordings({ [NAME]: null });
  env = { STENO_STATE_FOLDER: join(files.folder, "state"), XDG_CONFIG_HOME: join(files.folder, "config") };
  // It is transcribed in an earlier window: how is another test's matter.
  window = await open({ args: files.paths, env });
  await window.click(by("anyway"));
  await until("the end", async () => (await states(window))[NAME] === "finished");
  await until("the history has it", () => window.find(by("undo")));
  await window.end();
  await doubt(join(env.STENO_STATE_FOLDER, "history.sqlite"));
  window = await open({ env });
});
after(async () => {
  await window?.end();
  await files?.remove();
});

/** The demonstration model is sure of the sample: of some words it is made to be not. */
function doubt(history) {
  const program = `
import json, sqlite3, sys
history = sqlite3.connect(sys.argv[1])
words = json.loads(history.execute("SELECT words FROM snapshots").fetchone()[0])
for segment in words:
    # Text, beginning, end, probability.
    segment[-1][3] = 0.2
history.execute("UPDATE snapshots SET words = ?", [json.dumps(words)])
history.commit()`;
  return execute("/usr/bin/python3", ["-c", program, history]);
}

/** Texts of all segments, without their times. */
const texts = () => window.run(`return [...document.querySelectorAll("[data-testid=segment]")].map((row) =>
  row.querySelector("textarea")?.value ?? row.querySelector(".words").innerText)`);
const focus = () => window.run("return document.activeElement.dataset.testid ?? document.activeElement.tagName");
const audio = () => window.run(`const audio = document.querySelector("audio"); return { at: audio.currentTime, paused: audio.paused }`);
const selected = () => window.run("const field = document.activeElement; return field.value.slice(field.selectionStart, field.selectionEnd)");
const field = () => until("the field", async () => (await focus()) === "segment-text");
const becomes = (what, expected) => until(what, async () => JSON.stringify(await texts()) === JSON.stringify(expected));

/** From one element to the next until that one has the focus. */
async function tabTo(wanted) {
  for (let step = 0; step < 60; step++) {
    if ((await focus()) === wanted) return;
    await window.press(KEYS.tab);
  }
  throw new Error(`no way to ${wanted} by Tab`);
}

let begun;

test("it is opened from the history", async () => {
  await until("the page", () => window.find(by("view-history")));
  await tabTo("view-history");
  await window.press(KEYS.enter);
  await until("the list", () => window.find(by("open-document")));
  await tabTo("open-document");
  await window.press(KEYS.enter);
  begun = await until("the words", async () => (await texts()).length > 1 && texts());
  await tabTo("transcript");
});

test("it is listened to", async () => {
  await window.press(" ");
  await until("sound", async () => !(await audio()).paused && (await audio()).at > 0.2);
  await window.press(KEYS.f4);
  await until("rest", async () => (await audio()).paused);
  // What was said last is where one writes.
  await window.press(KEYS.f2);
  await field();
  await window.press(KEYS.escape);
  await until("the transcript", async () => (await focus()) === "transcript");
});

test("an uncertain word is found and corrected", async () => {
  await window.press(KEYS.f9);
  await field();
  const word = await until("a selected word", selected);
  const before = await texts();
  await window.type([..."corrected"]);
  const at = before.findIndex((text) => text.includes(word));
  await until("the text", async () => (await texts()).some((text) => text.includes("corrected")));
  assert.ok(at >= 0, `${word} in ${before}`);
  await window.press(KEYS.escape);
  begun = await until("the text where it is read", async () => {
    const now = await texts();
    return now.some((text) => text.includes("corrected")) && now;
  });
  await picture(window, "keyboard-corrected");
});

test("a letter begins to write where it was clicked or heard, a segment is split and joined", async () => {
  await window.press("x");
  await field();
  await until("the letter", async () => (await texts()).join("").length === begun.join("").length + 1);
  await window.press(KEYS.backspace);
  await becomes("the text without it", begun);
  const number = await window.run(`return Number(document.activeElement.closest("[data-index]").dataset.index)`);
  await window.press(KEYS.home);
  await window.type([..."Well "]);
  await window.press(KEYS.enter);
  const parts = begun.toSpliced(number, 1, "Well", begun[number]);
  await becomes("two segments", parts);
  await window.press(KEYS.backspace);
  await becomes("one again", begun.with(number, `Well ${begun[number]}`));
  await window.press(KEYS.enter);
  await becomes("two again", parts);
});

test("the speaker is named", async () => {
  await window.press(KEYS.control, "p");
  await until("the name's field", async () => (await focus()) === "speaker-name");
  await window.type([..."Ada"]);
  await window.press(KEYS.enter);
  await until("Ada", () => window.run(`return [...document.querySelectorAll("[data-testid=segment] strong")].some((name) => name.innerText === "Ada")`));
  await window.press(KEYS.escape);
  await field();
  await window.press(KEYS.escape);
});

test("words are replaced, and all is undone and done again", async () => {
  const before = await texts();
  await window.press(KEYS.control, "f");
  await until("the search", async () => (await focus()) === "search");
  await window.type([..."well"]);
  await window.press(KEYS.control, "h");
  await until("its other field", () => window.find(by("replacement")));
  await tabTo("replacement");
  await window.type([..."So"]);
  await window.press(KEYS.enter);
  await until("the text", async () => (await texts()).some((text) => text === "So"));
  const after = await texts();
  await tabTo("transcript");
  await window.press(KEYS.control, "z");
  await becomes("the text before", before);
  await window.press(KEYS.control, KEYS.shift, "Z");
  await becomes("the text again", after);
});

test("what is doubtful is listened to and accepted", async () => {
  await window.press(KEYS.control, "u");
  await until("the list", async () => (await focus()) === "review");
  const count = () => window.run(`return document.querySelectorAll("[data-testid=passage]").length`);
  const all = await until("passages", count);
  await window.press(KEYS.f3);
  await until("sound", async () => !(await audio()).paused);
  await picture(window, "review");
  await window.press(KEYS.f10);
  await until("one less", async () => (await count()) === all - 1);
  await window.press(KEYS.control, "z");
  await until("as many again", async () => (await count()) === all);
  await window.press(KEYS.control, KEYS.enter);
  await until("one less again", async () => (await count()) === all - 1);
  await window.press(KEYS.control, "u");
  await until("the text", async () => (await focus()) === "transcript");
});

test("it is saved with what was typed last", async () => {
  await window.press(KEYS.f2);
  await field();
  await window.press(KEYS.end);
  await window.type([..." Last."]);
  await window.press(KEYS.control, "s");
  const file = files.paths[0].replace(/flac$/, "srt");
  await until("the file", () => existsSync(file));
  assert.match(readFileSync(file, "utf8"), / Last\./);
});

test("what is typed right before the window closes is not lost", async () => {
  await window.type([..." The end."]);
  // As Alt and F4 do.
  await askWindow("close", "^Steno$");
  await until("the end", () => !isAlive(window.pid), 15_000);
  await window.end();
  window = await open({ env });
  await until("the page", () => window.find(by("view-history")));
  await tabTo("view-history");
  await window.press(KEYS.enter);
  await until("the list", () => window.find(by("open-document")));
  await tabTo("open-document");
  await window.press(KEYS.enter);
  const now = await until("the words", async () => (await texts()).length > 1 && texts());
  assert.ok(now.some((text) => text.endsWith(" Last. The end.")), JSON.stringify(now));
});
