// Speakers and voices in the real window, with a real conversation of two people.
import assert from "node:assert/strict";
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { by, discard, drop, execute, open, picture, programs, root, states } from "./common.mjs";
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

/** As WebDriver calls keys. */
const KEYS = { control: "\uE009", shift: "\uE008", home: "\uE011", right: "\uE014", enter: "\uE007", f2: "\uE032" };

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
    // The field has it at once, the text when the edit is stored.
    await until("the new name", async () => (await spoken(window)).includes("Anna"));
    await name(window, 1, "Anna");
    await until("one speaker", async () => (await names(window)).length === 1);
    await window.click(by("undo"));
    await until("two again", async () => (await names(window)).length === 2);

    // One who is two: the first of the segments is left, the others are somebody else's.
    const count = (who) => window.run(`return [...document.querySelectorAll("[data-segment] strong.voice")].filter((name) => name.textContent.trim() === arguments[0]).length`, who);
    const all = await count("Anna");
    await window.click(by("split-speaker"));
    await until("the ticks", async () => (await window.run(`return document.querySelectorAll("[data-testid=tick]").length`)) === all);
    await window.click(`li:nth-child(2 of :has(${by("tick")})) ${by("tick")}`);
    await window.click(by("choose-rest"));
    await picture(window, "split-speaker");
    await window.click(by("give"));
    await until("three", async () => (await names(window)).length === 3);
    assert.equal(await count("Anna"), 1);
    await window.click(by("undo"));
    await until("two after all", async () => (await names(window)).length === 2);

    // Some words are another's: with keys alone.
    await window.run(`document.querySelector("[data-segment]").scrollIntoView(); document.querySelector(".text-scroller").focus()`);
    const rows = () => window.run(`return document.querySelectorAll("[data-segment]").length`);
    const before = await rows();
    await window.press(KEYS.f2);
    await until("the field", async () => (await window.texts(by("segment-text"))).length === 1);
    await window.press(KEYS.control, KEYS.home);
    await window.press(KEYS.control, KEYS.shift, KEYS.right);
    await window.press(KEYS.control, "p");
    await until("the name's field", () => window.run(`return document.activeElement?.dataset.testid === "speaker-name"`));
    await window.press(KEYS.control, "a");
    await window.type("Cleo");
    await window.press(KEYS.enter);
    await until("Cleo", async () => (await names(window)).includes("Cleo"));
    assert.equal(await rows(), before + 1);
    await window.click(by("undo"));
    await until("no Cleo", async () => !(await names(window)).includes("Cleo"));

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

test("an installed model identifies speakers once it is chosen in the settings, and is removed on the Models page", async () => {
  const installed = env("installed");
  for (const model of ["community", "nemotron"]) {
    const source = join(root, "tests/data/corpus/reference/speakers", model, "model");
    await execute(programs.cli, ["models", "import", source, "--name", model], { env: { ...process.env, ...installed } });
  }
  const window = await open({ env: installed });
  try {
    for (const [number, model] of ["community", "nemotron"].entries()) {
      await window.click(by("view-settings"));
      await until("the settings", () => window.find("#preference-speaker_model"));
      await window.run(
        `const field = document.querySelector("#preference-speaker_model");
        field.value = arguments[0];
        field.dispatchEvent(new Event("change", { bubbles: true }));`,
        model,
      );
      await window.click(by("view-recordings"));
      if (number === 0) await window.click(by("all-speakers"));
      const recording = join(folder, `${model}.flac`);
      copyFileSync(conversation, recording);
      await drop(recording);
      if (number === 0) await window.click(by("anyway"));
      await finished(window, `${model}.flac`);
      await window.click(`${by("queue")} li:nth-child(${number + 1}) .row`);
      await until(`speakers by ${model}`, async () => (await names(window)).length > 0);
    }
    await window.click(by("view-models"));
    const listed = async () => (await window.texts(`${by("also-installed")} .name`)).map((name) => name.trim());
    await until("both", async () => (await listed()).join() === "community,nemotron");
    await picture(window, "speaker-models");
    await window.click(`${by("also-installed")} [data-id=community] ${by("remove-model")}`);
    await window.click(by("remove-yes"));
    await until("one", async () => (await listed()).join() === "nemotron");
    assert.deepEqual(readdirSync(join(installed.XDG_DATA_HOME, "steno/models")).filter((name) => !name.startsWith(".")), ["nemotron"]);
  } finally {
    await window.end();
  }
});

test("a voice is recorded, heard and added, by a program in the place of a microphone", async () => {
  const [program, none, temporary] = ["record", "record-nothing", "temporary"].map((name) => join(folder, name));
  mkdirSync(temporary);
  const sound = join(root, "tests/data/corpus/audio/real/librispeech/1688-142285-0000.flac");
  const record = `exec ffmpeg -v error -stream_loop -1 -i ${sound} -t 30 -f s16le -ac 1 -ar 16000 -`;
  writeFileSync(program, `#!/bin/sh\n${record}\n`, { mode: 0o755 });
  writeFileSync(none, "#!/bin/sh\necho 'audio open error: No such device' >&2\nexit 1\n", { mode: 0o755 });
  const open_ = (microphone) => open({ env: { ...env("microphone"), STENO_MICROPHONE: microphone, TMPDIR: temporary } });
  const call = (window, name) =>
    window.run(
      `const field = document.querySelector("[data-testid=voice-name]");
      field.value = arguments[0];
      field.dispatchEvent(new Event("input", { bubbles: true }));`,
      name,
    );
  const recordings = () => readdirSync(temporary).filter((name) => name.startsWith("steno-voice-"));

  let window = await open_(none);
  try {
    await window.click(by("view-voices"));
    await call(window, "Anna");
    await window.click(by("record-voice"));
    // What the program said is behind "Details".
    await until("the reason", () => window.run(`return [...document.querySelectorAll("[data-testid=toast]")].some((toast) => /No such device/.test(toast.textContent))`));
  } finally {
    await window.end();
  }
  window = await open_(program);
  try {
    await window.click(by("view-voices"));
    await call(window, "Anna");
    await window.click(by("record-voice"));
    await until("ten seconds", () => window.run(`return document.querySelector("[data-testid=stop-recording]")?.disabled === false`));
    await picture(window, "recording-voice");
    await window.click(by("stop-recording"));
    await until("the sound", () => window.run(`return document.querySelector("[data-testid=listen]")?.duration > 10`));
    assert.equal(recordings().length, 1);
    await picture(window, "recorded-voice");
    await window.click(by("keep-recording"));
    await until("the voice", async () => (await window.texts(by("voice-sample"))).some((text) => /^Microphone\.wav: \d+ s of speech/.test(text)));
    assert.deepEqual(recordings(), [], "what was recorded is gone");
  } finally {
    await window.end();
  }
});

/** A recording whose speakers are being told apart. */
async function inTheStage(window, recording) {
  await window.click(by("all-speakers"));
  await drop(recording);
  await window.click(by("anyway"));
  await until("what is to come", async () => /Speakers are identified once/.test((await window.text(by("identifying"))) ?? ""));
  await until("the stage", async () => /Identifying speakers: \d+%/.test((await window.text(by("identifying"))) ?? ""));
}

async function longConversation(name) {
  const long = join(folder, name);
  await execute("ffmpeg", ["-v", "error", "-stream_loop", "2", "-i", conversation, "-ac", "1", "-y", long]);
  return long;
}

test("an engine that is killed while speakers are told apart goes on from there", async () => {
  const long = await longConversation("long.flac");
  const window = await open({ env: env("kill") });
  try {
    await inTheStage(window, long);
    const texts = await window.run(`return document.querySelectorAll("[data-segment]").length`);
    assert.ok(texts > 0, "the text is there before");
    await until("names beside the text meanwhile", async () => (await spoken(window)).length > 0);
    assert.equal((await states(window))["long.flac"], "running");
    await picture(window, "speakers-meanwhile");
    const engine = descendants(window.pid).find((pid) => /steno-engine$/.test(program(pid)));
    process.kill(engine, "SIGKILL");
    await finished(window, "long.flac");
    await until("the speakers", async () => (await names(window)).length === 2);
  } finally {
    await window.end();
  }
});

test("a window that is killed while speakers are told apart goes on from there at its next start", async () => {
  const long = await longConversation("later-long.flac");
  let window = await open({ env: env("host") });
  try {
    await inTheStage(window, long);
    process.kill(window.pid, "SIGKILL");
  } finally {
    await window.end();
  }
  window = await open({ env: env("host") });
  try {
    const stages = new Set();
    await until("the end", async () => {
      stages.add((await window.text(`${by("progress")} strong`)) ?? "");
      return (await states(window))["later-long.flac"] === "finished";
    });
    assert.ok(![...stages].some((stage) => /Transcrib/.test(stage)), `nothing is transcribed again: ${[...stages]}`);
    await window.click(`${by("queue")} li .row`);
    await until("the speakers", async () => (await names(window)).length === 2);
  } finally {
    await window.end();
  }
});
