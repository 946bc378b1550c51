// Listening in the real window: it plays, seeks, follows the words, and outlives its player.
import assert from "node:assert/strict";
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { by, drop, execute, open, picture, programs, recordings, states } from "./common.mjs";
import { descendants, isAlive, program, until } from "./driver.mjs";

const TALK = "talk.flac";
const GONE = "gone.flac";
const FILM = "film.mp4";

let window, files, said;
before(async () => {
  files = recordings({ [TALK]: null, [GONE]: null });
  const film = join(files.folder, FILM);
  const pictures = ["-f", "lavfi", "-i", "testsrc=size=320x180:rate=10"];
  await execute("ffmpeg", ["-v", "error", ...pictures, "-i", files.paths[0], "-shortest", "-c:v", "mpeg4", "-c:a", "aac", film]);
  window = await open();
  await drop(...files.paths, film);
  await until("all files", async () => Object.keys(await states(window)).length === 3);
  await window.click(by("anyway"));
  // The command line says when each word is said.
  const folder = join(files.folder, "cli");
  const options = ["--format", "json", "--output", folder, "--device", "cpu"];
  await execute(programs.cli, ["transcribe", files.paths[0], ...options], { env: { ...process.env, STENO_ENGINE: programs.engine } });
  said = JSON.parse(readFileSync(join(folder, TALK.replace(/flac$/, "json")), "utf8")).segments;
  await until("all texts", async () => Object.values(await states(window)).every((state) => state === "finished"));
});
after(async () => {
  await window?.end();
  await files?.remove();
});

/** What is being played, as the element of the page says. */
const state = () =>
  window.run(`const audio = document.querySelector("audio");
    return { at: audio.currentTime, paused: audio.paused, speed: audio.playbackRate, seconds: audio.duration, error: audio.error?.message ?? null };`);
const spoken = () => window.run(`return [...(CSS.highlights.get("spoken") ?? [])].map((range) => range.toString()).join()`);
const players = () => descendants(window.pid).filter((pid) => program(pid).includes("steno-player"));
const plays = (what) => until(what, async () => { const now = await state(); return !now.paused && now; });

/** Where a word is on the screen, and when it is said. */
const word = (segment, number) =>
  window.run(`
    const [segment, number] = arguments;
    const element = document.querySelector('[data-index="' + segment + '"] .words');
    const words = [...element.textContent.matchAll(/\\S+/g)];
    const found = words[Math.min(number, words.length - 1)];
    const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
    let before = 0;
    for (let node = walker.nextNode(); node; before += node.length, node = walker.nextNode()) {
      if (found.index >= before + node.length) continue;
      const range = document.createRange();
      range.setStart(node, found.index - before);
      range.setEnd(node, Math.min(node.length, found.index - before + found[0].length));
      const { x, y, width, height } = range.getBoundingClientRect();
      return { text: found[0], x: x + width / 2, y: y + height / 2 };
    }`, segment, number);

test("it plays, and the player is a process of its own", async () => {
  await window.click(`${by("queue")} li:nth-child(1) .row`);
  await until("the length", async () => / \/ \d+:\d\d/.test(await window.text(by("play-time"))));
  await window.click(by("play"));
  const now = await plays("sound");
  assert.equal(now.error, null);
  assert.ok(now.at < 3, `from the beginning, and not from ${now.at}`);
  await until("it goes on", async () => (await state()).at > now.at + 0.5);
  assert.equal(players().length, 1);
  const drawn = await until("the waveform", () =>
    window.run(`const canvas = document.querySelector("[data-testid=waveform]");
      const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      return data.filter((_, index) => index % 4 === 3).reduce((sum, alpha) => sum + (alpha > 0), 0);`));
  assert.ok(drawn > 500, `${drawn} pixels`);
  await picture(window, "player");
});

test("a word that is clicked is heard, and the words that follow are marked as they are said", async () => {
  const target = await word(0, 1);
  await window.clickAt(target.x, target.y);
  const { at } = await plays("sound from there");
  const expected = said[0].words[1].start;
  assert.ok(at >= expected - 0.05 && at < expected + 3, `plays at ${at}, the word is said at ${expected}`);
  assert.equal(await window.run(`return document.querySelector("[data-testid=segment-text]")`), null, "who listens does not write");
  const marked = await until("a mark", spoken);
  await until("the next word", async () => { const now = await spoken(); return now && now !== marked; });
  await picture(window, "spoken");
});

test("a double click writes at the word without playing, and what is said is marked in the field too", async () => {
  await window.click(by("play"));
  await until("rest", async () => (await state()).paused);
  const target = await word(0, 2);
  await window.clickAt(target.x, target.y, 2);
  await until("the field", () => window.find(by("segment-text")));
  const caret = await window.run(`const field = document.querySelector("[data-testid=segment-text]");
    return { at: field.selectionStart, text: field.value, focus: document.activeElement === field }`);
  const from = caret.text.indexOf(target.text);
  assert.ok(caret.focus && caret.at >= from && caret.at <= from + target.text.length, JSON.stringify([caret, target]));
  assert.ok((await state()).paused, "who writes did not ask for sound");
  // Control and space play on from there.
  await window.press("\uE009", " ");
  await plays("sound");
  const marked = await until("a mark in the field", spoken);
  await until("the next word", async () => { const now = await spoken(); return now && now !== marked; });
  await picture(window, "spoken-editing");
  await window.type(["\uE00C"]);
});

test("keys and speeds", async () => {
  await window.run(`document.querySelector("[data-testid=transcript]").focus()`);
  const { at } = await plays("sound");
  // F7 goes back three seconds.
  await window.type(["\uE037"]);
  await until("a step back", async () => (await state()).at < Math.max(at - 1, 0.8));
  await window.run(`const select = document.querySelector("[data-testid=play-speed]"); select.value = "2"; select.dispatchEvent(new Event("change", { bubbles: true }))`);
  assert.equal((await state()).speed, 2);
  const pitch = await window.run(`return document.querySelector("audio").preservesPitch`);
  assert.equal(pitch, true);
  await window.type([" "]);
  await until("rest", async () => (await state()).paused);
  await window.type(["\uE034"]);
  await plays("F4 to play");
  await window.type(["\uE034"]);
  await until("rest again", async () => (await state()).paused);
});

test("a player that is killed is started again at the next play", async () => {
  const [old] = players();
  process.kill(old, "SIGKILL");
  await until("its end", () => !isAlive(old));
  const target = await word(1, 0);
  await window.clickAt(target.x, target.y);
  // The place may still be that of the player before.
  let from = (await plays("sound")).at;
  await until("sound that goes on", async () => {
    const { at } = await state();
    from = Math.min(from, at);
    return at > from + 0.3;
  });
});

test("a film is seen where it is heard, and can be hidden", async () => {
  await window.click(`${by("queue")} li:nth-child(3) .row`);
  await until("the film", async () => (await window.text(by("title"))) === FILM);
  const shown = () =>
    window.run(`const image = document.querySelector("[data-testid=picture]");
      return image && { at: Number(image.src.split("/").at(-1)), width: image.complete ? image.naturalWidth : 0 };`);
  const first = await until("a picture", async () => { const now = await shown(); return now?.width === 320 && now; });
  // Each picture that comes, however short it is seen.
  await window.run(`window.seen = [];
    for (const kind of ["load", "error"]) {
      document.addEventListener(kind, ({ target }) => {
        if (target.dataset?.testid === "picture") window.seen.push({ at: Number(target.src.split("/").at(-1)), width: target.naturalWidth });
      }, true);
    }`);
  await window.click(by("play"));
  await until("later pictures", () => window.run(`return window.seen.at(-1)?.at > arguments[0]`, first.at + 0.9));
  await picture(window, "film");
  const rest = async () => { if (!(await state()).paused) await window.click(by("play")); return (await state()).paused; };
  // Where it has come to its end meanwhile, it begins again with the click.
  await until("rest", rest);
  const isOfThePlace = async () => {
    const [now, { at }] = [await shown(), await state()];
    return now?.width === 320 && now.at <= at && now.at > at - 0.3;
  };
  await until("the picture of the place", isOfThePlace);
  await window.click(by("pictures"));
  await until("no picture", async () => (await shown()) === null);
  await window.click(by("pictures"));
  await until("the picture again", isOfThePlace);
  // To the end, whose picture stays.
  await window.run(`document.querySelector("audio").currentTime = 1e9`);
  await until("the picture of the end", isOfThePlace);
  const widths = await window.run(`return window.seen.map(({ width }) => width)`);
  assert.ok(widths.every((width) => width === 320), `every picture was decoded: ${widths}`);
});

test("a recording that is gone says so", async () => {
  rmSync(files.paths[1]);
  await window.click(`${by("queue")} li:nth-child(2) .row`);
  await until("the other title", async () => (await window.text(by("title"))) === GONE);
  await window.click(by("play"));
  const failure = await until("the message", () => window.text(by("play-failure")));
  assert.match(failure, /File not found/);
  await picture(window, "player-gone");
});
