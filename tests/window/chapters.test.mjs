// Chapters in the real window: found with a model for meaning, shown, gone to, renamed, removed, undone, added
// and exported. With STENO_SEARCH_MODEL a real model finds them; the one of the repository has random weights,
// and texts of the same words mean much the same to it.
import assert from "node:assert/strict";
import { cpSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { by, execute, longHistory, open, picture, programs, recordings, root } from "./common.mjs";
import { until } from "./driver.mjs";

const KEYS = { down: "\uE015", enter: "\uE007" };
const model = process.env.STENO_SEARCH_MODEL ?? join(root, "tests/data/embedding/tiny-bert");
const SUBJECTS = [
  [
    "The boat lies in the harbour since the summer.",
    "A boat and a harbour cost a lot of money.",
    "So we sell the boat, with its sails and all ropes.",
  ],
  [
    "An election is held here in the middle of May.",
    "Each party hangs its posters for the election.",
    "Who wins an election has to find a coalition.",
  ],
];
/** Segments of each, whole rounds of its sentences. */
const EACH = 51;

let window, files, env;
before(async () => {
  files = recordings({ "talk.flac": null });
  const segments = Array.from({ length: 2 * EACH }, (_, number) => ({ start: number * 6, end: number * 6 + 5.8, text: SUBJECTS[Math.floor(number / EACH)][number % 3] }));
  const saved = join(files.folder, "saved.json");
  writeFileSync(
    saved,
    JSON.stringify({
      schema_version: 1, complete: true, language: "en", task: "transcribe", settings: null, segments,
      source: { name: "talk.flac", duration: 12 * EACH, sample_rate: 16000, channels: 1, format: "flac" },
      model: { name: "small", precision: "f32", demonstration: false },
      completeness: { speech: 1, covered: 1, gaps: [] },
    }),
  );
  env = await longHistory(join(files.folder, "state"), files.paths[0], saved);
  env.XDG_DATA_HOME = join(files.folder, "data");
  window = await open({ env });
});
after(async () => {
  await window?.end();
  await files?.remove();
});

const headings = () => window.texts(by("chapter-heading"));
const titles = () => window.run("return [...document.querySelectorAll(arguments[0])].map((field) => field.value)", by("chapter-title"));
const press = (id, index = 0) => window.run("document.querySelectorAll(arguments[0])[arguments[1]].click()", by(id), index);

const rename = (index, title) =>
  window.run(
    `const field = document.querySelectorAll(arguments[0])[arguments[1]];
     field.value = arguments[2];
     field.dispatchEvent(new Event("change", { bubbles: true }));`,
    by("chapter-title"),
    index,
    title,
  );

/** Until the list has these titles, by their beginnings. */
const listed = (...begin) => until(begin.join(" | "), async () => {
  const all = await titles();
  return all.length === begin.length && all.every((title, index) => title.startsWith(begin[index]));
});

test("without a model for meaning, what is missing is said", async () => {
  await window.click(by("view-history"));
  await until("the transcript", async () => (await window.texts(by("document"))).length === 1);
  await press("open-document");
  await until("the button", () => window.find(by("find-chapters")).catch(() => null));
  await press("find-chapters");
  await until("what is missing", async () => (await window.texts(by("toast"))).some((text) => /No model for meaning/.test(text)));
  await window.end();
});

test("chapters are found where the subject changes, and stand above the text", async () => {
  const store = join(env.XDG_DATA_HOME, "steno/models");
  mkdirSync(store, { recursive: true });
  cpSync(model, join(store, "meaning"), { recursive: true });
  window = await open({ env });
  await window.click(by("view-history"));
  await until("the transcript", async () => (await window.texts(by("document"))).length === 1);
  await press("open-document");
  await until("the button", () => window.find(by("find-chapters")).catch(() => null));
  await press("find-chapters");
  await listed("Boat", "Election");
  assert.match((await headings())[0], /^Boat/);
  await window.run("document.querySelector(arguments[0]).open = true", by("chapters"));
  await picture(window, "chapters");
});

test("keys lead to a chapter", async () => {
  await window.run("document.querySelector(arguments[0]).focus()", by("chapter"));
  await window.type([KEYS.down, KEYS.enter]);
  await until("the second chapter in view", () => window.run(
    `const row = document.querySelector('[data-index="${EACH}"]')?.getBoundingClientRect();
     const room = document.querySelector(arguments[0]).getBoundingClientRect();
     return row && row.top >= room.top - 60 && row.bottom <= room.bottom + 1`,
    by("transcript"),
  ));
  assert.ok((await headings()).some((heading) => heading.startsWith("Election")));
});

test("chapters are renamed, removed, undone and added", async () => {
  await rename(1, "How we vote");
  await listed("Boat", "How we vote");
  await press("remove-chapter", 1);
  await listed("Boat");
  await press("undo");
  await listed("Boat", "How we vote");
  await press("undo");
  await listed("Boat", "Election");
  await press("redo");
  await listed("Boat", "How we vote");
  // The segment of the chapter that was gone to is the one that is written in.
  await window.run("document.querySelectorAll(arguments[0])[1].click()", by("chapter"));
  await until("the row", () => window.run(`return document.querySelector('[data-index="${EACH + 3}"] .words') !== null`));
  await window.run(`document.querySelector('[data-index="${EACH + 3}"] .words').dispatchEvent(new MouseEvent("dblclick", { bubbles: true }))`);
  await until("the tools", () => window.find(by("begin-chapter")).catch(() => null));
  await press("begin-chapter");
  await listed("Boat", "How we vote", "An election is held here");
  await press("undo");
  await listed("Boat", "How we vote");
});

test("chapters are there again in the next window, and the command line finds them too", async () => {
  await window.end();
  window = await open({ env });
  await window.click(by("view-history"));
  await until("the transcript", async () => (await window.texts(by("document"))).length === 1);
  await press("open-document");
  await listed("Boat", "How we vote");
  const cli = (...given) => execute(programs.cli, given, { env: { ...process.env, ...env, STENO_ENGINE: programs.engine, HOME: files.folder }, cwd: files.folder });
  // It finds them anew, and only prints them.
  const { stdout } = await cli("chapters", "1");
  assert.match(stdout, /^0:00 {2}Boat.*\n5:06 {2}Election/);
});
