// The real program: files dropped on it, words seen, subtitles on the disk.
import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { by, drop, execute, longRecording, open, picture, programs, recordings, states } from "./common.mjs";
import { until } from "./driver.mjs";

const GOOD = "Gespräch 1, an der Fähre.flac";
const BROKEN = "broken.mp3";
const LETTER = "letter.pdf";

let window, files;
before(async () => {
  files = recordings({ [GOOD]: null, [BROKEN]: "This was never a recording.\n".repeat(200), [LETTER]: "Dear Sir" });
  // Of several windows, so that the words of the first come while the others are worked on.
  await longRecording(files.folder, 1.5, GOOD);
  window = await open();
});
after(async () => {
  await window?.end();
  await files?.remove();
});

test("the empty window says what to do, and what computes", async () => {
  await until("the drop zone", () => window.text(by("drop-zone")));
  const device = await until("the device", async () => {
    const text = await window.text(by("engine"));
    return /CPU, \d+ thread/.test(text) && text;
  });
  await window.click(by("engine"));
  // In the engine's own words it is behind "Details".
  const reason = await until("the reason", () => window.run(`return document.querySelector("[data-testid=cpu-reason]")?.textContent`));
  assert.ok(reason.length > 10, `${device}: ${reason}`);
  await picture(window, "device");
  await window.click(by("engine"));
  await picture(window, "empty");
});

test("files dropped on the window: what is none is named at once, the user's own wait for a word", async () => {
  await drop(...files.paths);
  await until("three files", async () => Object.keys(await states(window)).length === 3);
  // By its name it is one; what is in it is looked at before its turn.
  await until("the broken one to be named", async () => (await states(window))[BROKEN] === "failed");
  assert.deepEqual(await states(window), { [GOOD]: "held", [BROKEN]: "failed", [LETTER]: "failed" });
  assert.match(await window.text(by("demonstration-question")), /not reliable/);
  await picture(window, "question");
});

test("segments appear while it works, the broken file failed alone", async () => {
  // The page notes what it shows: asking over and over would miss it on a busy machine.
  await window.run(`
    window.seen = [];
    new MutationObserver(() => {
      const running = document.querySelector("[data-testid=progress]") !== null;
      seen.push([running, document.querySelectorAll("[data-testid=segment]").length]);
    }).observe(document.body, { subtree: true, childList: true, characterData: true });`);
  await window.click(by("anyway"));
  await until("the end", async () => (await states(window))[GOOD] === "finished");
  const seen = await window.run("return window.seen");
  assert.ok(seen.some(([running, segments]) => running && segments > 0), "segments came before the end");
  const segments = await window.texts(by("segment"));
  assert.ok(segments.length > 0 && segments.every((text) => /^\d+:\d\d\s+\S/.test(text)), JSON.stringify(segments));
  assert.match(await window.text(by("demonstration-banner")), /not reliable/);
  await picture(window, "finished");

  await window.click(`${by("queue")} li:nth-child(2) .row`);
  const failure = await until("the failure", () => window.text(by("failure")));
  assert.match(failure, /Not an audio or video file|Damaged recording|not supported/i);
  assert.equal(await window.text(by("title")), BROKEN);
  await picture(window, "failed");
});

test("the subtitles on the disk are those of the command line", async () => {
  await window.click(`${by("queue")} li:nth-child(1) .row`);
  await window.click(by("save"));
  const file = files.paths[0].replace(/flac$/, "srt");
  await until("the file", () => existsSync(file));
  const saved = readFileSync(file, "utf8");
  assert.match(saved, /^1\n\d\d:\d\d:\d\d,\d\d\d --> \d\d:\d\d:\d\d,\d\d\d\n/);

  const folder = join(files.folder, "cli");
  const options = ["--format", "srt", "--output", folder, "--device", "cpu"];
  await execute(programs.cli, ["transcribe", files.paths[0], ...options], {
    env: { ...process.env, STENO_ENGINE: programs.engine },
  });
  assert.equal(saved, readFileSync(join(folder, GOOD.replace(/flac$/, "srt")), "utf8"));
});

test("a file in the way is replaced only when the user says so", async () => {
  const file = files.paths[0].replace(/flac$/, "srt");
  const subtitles = readFileSync(file, "utf8");
  writeFileSync(file, "somebody else's");
  const questions = async () => (await window.texts(by("toast"))).filter((text) => /Replace/.test(text));
  await window.click(by("save"));
  const [said] = await until("the question", async () => (await questions()).length > 0 && questions());
  assert.match(said, /already exists/);
  assert.equal(readFileSync(file, "utf8"), "somebody else's");
  await picture(window, "replace");
  await window.click(`${by("toast")}:last-child ${by("toast-action")}`);
  await until("the answer to be done", async () => readFileSync(file, "utf8") === subtitles);
  assert.deepEqual(await questions(), []);
});

test("what no capability grants is refused", async () => {
  const calls = [
    ["plugin:window|set_title", { value: "x" }],
    ["plugin:event|emit", { event: "x" }],
    ["plugin:path|resolve_directory", { directory: 1 }],
    ["no_such_command", {}],
  ];
  for (const [command, args] of calls) {
    const answer = await window.runAsync(
      `const [command, args, done] = arguments;
       window.__TAURI_INTERNALS__.invoke(command, args).then(() => done("done"), () => done("refused"));`,
      command,
      args,
    );
    assert.equal(answer, "refused", command);
  }
});
