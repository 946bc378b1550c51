// Speakers and voices in the real window, with a real conversation of two people.
import assert from "node:assert/strict";
import { copyFileSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { by, discard, drop, execute, open, picture, root, states } from "./common.mjs";
import { descendants, program, until } from "./driver.mjs";

const conversation = join(root, "tests/data/corpus/audio/conversations/two_speakers.flac");

let folder;
before(() => {
  folder = mkdtempSync(join(tmpdir(), "steno-speakers-"));
  for (const name of ["talk.flac", "later.flac"]) copyFileSync(conversation, join(folder, name));
});
after(() => discard(folder));

/** What a window remembers is there at its next start. */
function env(name) {
  const of = join(folder, name);
  return { STENO_STATE_FOLDER: join(of, "state"), XDG_CONFIG_HOME: join(of, "config"), XDG_DATA_HOME: join(of, "data") };
}

const finished = (window, name) => until(`the end of ${name}`, async () => (await states(window))[name] === "finished");
const names = (window) => window.run(`return [...document.querySelectorAll("[data-testid=speaker-rename]")].map((field) => field.value)`);
/** As a user who types a name and leaves the field. */
const name = (window, number, to) =>
  window.run(
    `const field = document.querySelectorAll("[data-testid=speaker-rename]")[arguments[0]];
    field.value = arguments[1];
    field.dispatchEvent(new Event("change", { bubbles: true }));`,
    number,
    to,
  );
const spoken = (window) => window.run(`return [...document.querySelectorAll("[data-segment] strong.voice")].map((who) => who.textContent.trim())`);

test("a conversation has its speakers, who are renamed, joined, and known in the next recording", async () => {
  const window = await open({ env: env("names") });
  try {
    await window.click(by("all-speakers"));
    await drop(join(folder, "talk.flac"));
    await window.click(by("anyway"));
    await finished(window, "talk.flac");
    await until("the list of speakers", async () => (await names(window)).length === 2);
    assert.deepEqual(await names(window), ["Speaker 1", "Speaker 2"]);
    // The segments in view are those of the finished transcript, divided where the speaker changes.
    assert.ok(new Set(await spoken(window)).size === 2, JSON.stringify(await spoken(window)));
    await window.click(`${by("speakers")} summary`);
    await picture(window, "speakers");

    await name(window, 0, "Anna");
    await until("the new name", async () => (await names(window)).includes("Anna"));
    assert.ok((await spoken(window)).includes("Anna"));
    await name(window, 1, "Anna");
    await until("one speaker", async () => (await names(window)).length === 1);
    await window.click(by("undo"));
    await until("two again", async () => (await names(window)).length === 2);

    // A number is nobody: a voice is remembered once it has a name.
    const buttons = () => window.run(`return [...document.querySelectorAll("[data-testid=remember-speaker]")].map((button) => button.disabled)`);
    assert.deepEqual(await buttons(), [false, true]);
    await window.click(by("remember-speaker"));
    await until("what is told", async () => (await window.texts(by("toast"))).some((text) => /Anna is recognized/.test(text)));
    await window.click(by("view-voices"));
    await until("the voice", async () => (await window.texts(by("voice-sample"))).some((text) => /^talk\.flac: \d+ s of speech/.test(text)));
    await picture(window, "voices");

    await window.click(by("view-recordings"));
    await drop(join(folder, "later.flac"));
    await finished(window, "later.flac");
    await window.click(`${by("queue")} li:nth-child(2) .row`);
    await until("the known speaker", async () => (await names(window)).join() === "Anna,Speaker 2");
  } finally {
    await window.end();
  }
});

test("speakers of a finished transcript are found later, as an edit", async () => {
  const window = await open({ env: env("later") });
  try {
    await drop(join(folder, "talk.flac"));
    await window.click(by("anyway"));
    await finished(window, "talk.flac");
    assert.deepEqual(await names(window), []);
    await window.click(by("find-speakers"));
    await until("the speakers", async () => (await names(window)).length === 2);
    await window.click(by("undo"));
    await until("none", async () => (await names(window)).length === 0);
  } finally {
    await window.end();
  }
});

test("an engine that is killed while speakers are told apart goes on from there", async () => {
  const long = join(folder, "long.flac");
  await execute("ffmpeg", ["-v", "error", "-stream_loop", "5", "-i", conversation, "-ac", "1", "-y", long]);
  const window = await open({ env: env("kill") });
  try {
    await window.click(by("all-speakers"));
    await drop(long);
    await window.click(by("anyway"));
    await until("the stage", async () => /Identifying speakers/.test((await window.text(by("progress"))) ?? ""));
    const texts = await window.run(`return document.querySelectorAll("[data-segment]").length`);
    assert.ok(texts > 0, "the text is there before");
    const engine = descendants(window.pid).find((pid) => /steno-engine$/.test(program(pid)));
    process.kill(engine, "SIGKILL");
    await finished(window, "long.flac");
    await until("the speakers", async () => (await names(window)).length === 2);
  } finally {
    await window.end();
  }
});
