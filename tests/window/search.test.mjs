// The search by meaning in the real window: a recording is transcribed, found by what is said in it, played,
// edited, and found again. With STENO_SEARCH_MODEL, the folder of a real model for meaning, it is asked in other
// words; the model of the repository has random weights and knows a text again.
import assert from "node:assert/strict";
import { cpSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { by, longHistory, open, picture, recordings, root, states } from "./common.mjs";
import { descendants, program, until } from "./driver.mjs";

const NAME = "interview.flac";
const KEYS = { escape: "\uE00C", down: "\uE015", enter: "\uE007" };
const model = process.env.STENO_SEARCH_MODEL ?? join(root, "tests/data/embedding/tiny-bert");
const isReal = model === process.env.STENO_SEARCH_MODEL;

let window, files, env;
before(async () => {
  files = recordings({ [NAME]: null, "harbour.flac": null });
  // Something else to find.
  env = await longHistory(join(files.folder, "state"), files.paths[1], 60);
  env.XDG_DATA_HOME = join(files.folder, "data");
  const store = join(env.XDG_DATA_HOME, "steno/models");
  mkdirSync(store, { recursive: true });
  cpSync(model, join(store, "meaning"), { recursive: true });
  window = await open({ args: [files.paths[0]], env });
});
after(async () => {
  await window?.end();
  await files?.remove();
});

const ask = (text) =>
  window.run(
    `const field = document.querySelector(arguments[0]);
     field.value = arguments[1];
     field.dispatchEvent(new Event("input", { bubbles: true }));`,
    by("history-search"),
    text,
  );

/** Until the best passage has this text and was found by its meaning. */
const best = (part) => until(`"${part}" first`, async () => {
  const [first] = await window.texts(by("found-passage"));
  return first?.includes(part) && /meaning match/.test(first) && first;
});

const heard = () => window.run("return document.querySelector('audio')?.currentTime ?? 0");

test("a transcript is found by its meaning, and the passage is played", async () => {
  await window.click(by("anyway"));
  await until("the end", async () => (await states(window))[NAME] === "finished");
  await window.click(by("view-history"));
  await until("two transcripts", async () => (await window.texts(by("document"))).length === 2);
  await ask(isReal ? "leaving a pet behind in Canada" : "I probably forgot the cat in Toronto. I think the report is too weak for the summer.");
  const found = await best("forgot the cat");
  assert.match(found, /interview\.flac/);
  if (isReal) assert.match(found, /· meaning matches\n/, "no word is the same");
  await picture(window, "search-by-meaning");
  await until("an index at rest", async () => (await window.find(by("indexing")).catch(() => null)) === null);
  await window.run("document.querySelector(arguments[0]).click()", by("play-passage"));
  await until("sound", async () => (await heard()) > 0.2);
  assert.ok([...descendants(window.pid)].some((pid) => program(pid).includes("steno-player")));
});

test("what an edit made of it is found by its new meaning", async () => {
  await until("the text", async () => (await window.texts(by("segment"))).length > 0);
  await window.run("document.querySelector('[data-index=\"0\"] .words').dispatchEvent(new MouseEvent('dblclick', { bubbles: true }))");
  const field = await until("the field", () => window.find(by("segment-text")).catch(() => null));
  assert.ok(field);
  await window.run(
    `const field = document.querySelector(arguments[0]);
     field.value = "The old lighthouse was painted blue.";
     field.dispatchEvent(new Event("input", { bubbles: true }));
     field.focus();`,
    by("segment-text"),
  );
  await window.type([KEYS.escape]);
  await until("the edit", async () => /lighthouse/.test((await window.texts(by("segment"))).join(" ")));
  await window.click(by("view-history"));
  await ask(isReal ? "a tower for ships got a new colour" : "The old lighthouse was painted blue. I think the report is too weak for the summer.");
  await best("lighthouse");
  // With keys alone.
  await window.run("document.querySelector(arguments[0]).focus()", by("history-search"));
  await window.type([KEYS.down, KEYS.enter]);
  await until("the transcript", async () => /lighthouse/.test((await window.texts(by("segment"))).join(" ")));
});
