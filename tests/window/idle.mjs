// usage: tests/window/with-display.sh node tests/window/idle.mjs
// How soon the window shows its first frame, and what it takes of the machine
// while nothing is done: empty, and with a model that is kept after a recording.
// A measurement, no test.
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as pause } from "node:timers/promises";
import { by, discard, held, open, programs, recordings, states } from "./common.mjs";
import { descendants, program, until } from "./driver.mjs";

const STARTS = 5;
/** Until everything that a start brings with it is over, and for how long is looked; seconds. */
const [SETTLED, LOOKED] = [8, 60];

const folder = mkdtempSync(join(tmpdir(), "steno-idle-"));

/** Milliseconds from the program's first line to what it tells of. */
async function start(number) {
  const place = join(folder, `start-${number}`);
  const env = { ...process.env, STENO_ENGINE: programs.engine, STENO_PLAYER: programs.player, STENO_BACKEND: "cpu", STENO_RENDERER: "usual", XDG_CONFIG_HOME: place, XDG_DATA_HOME: place, STENO_STATE_FOLDER: place, STENO_TEST_TIMES: "1" };
  const window = spawn(programs.window, [], { env, stdio: ["ignore", "ignore", "pipe"] });
  const times = new Map();
  createInterface({ input: window.stderr }).on("line", (line) => {
    const [, what, ms] = /^steno-window: (.*) after (\d+) ms$/.exec(line) ?? [];
    if (what) times.set(what, Number(ms));
  });
  await until("the first frame", () => times.has("first frame"));
  await pause(2000);
  const over = new Promise((resolve) => window.once("exit", resolve));
  window.kill("SIGTERM");
  await over;
  return times;
}

/** Hundredths of seconds of processor time, by program. */
function ticks(window) {
  return new Map(
    [window.pid, ...descendants(window.pid)].map((pid) => {
      const fields = readFileSync(`/proc/${pid}/stat`, "utf8").replace(/^.*\) /s, "").split(" ");
      return [`${program(pid).split("/").at(-1)} ${pid}`, Number(fields[11]) + Number(fields[12])];
    }),
  );
}

async function rest(window, what) {
  await pause(SETTLED * 1000);
  const before = ticks(window);
  await pause(LOOKED * 1000);
  const shares = [...ticks(window)].map(([name, now]) => [name.split(" ")[0], (now - (before.get(name) ?? now)) / LOOKED]);
  const sum = shares.reduce((sum, [, share]) => sum + share, 0);
  const { sum: memory, each } = held(window, () => true);
  console.log(`${what}: ${sum.toFixed(2)} % of a core in ${LOOKED} s (${shares.map(([name, share]) => `${name} ${share.toFixed(2)}`).join(", ")})`);
  console.log(`${what}: ${memory.toFixed(0)} MB (${each.map(([name, size]) => `${name} ${size.toFixed(0)}`).join(", ")})`);
}

const files = recordings({ "notes.flac": null });
let window;
try {
  for (let number = 0; number < STARTS; number++) {
    console.log([...(await start(number))].map(([what, ms]) => `${what} after ${ms} ms`).join(", "));
  }
  window = await open();
  await until("the page", () => window.find(by("drop-zone")));
  await rest(window, "empty");
  await window.end();
  window = await open({ args: files.paths });
  await window.click(by("anyway"));
  await until("the end", async () => (await states(window))["notes.flac"] === "finished");
  await rest(window, "after a recording");
} finally {
  await window?.end();
  await files.remove();
  await discard(folder);
}
