// Where things are, and recordings to drop.
import { execFile } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { descendants, program, until, Window } from "./driver.mjs";

export const here = fileURLToPath(new URL(".", import.meta.url));
export const root = resolve(here, "../..");
export const starter = join(root, "models/starter-whisper");
export const sample = join(root, "tests/data/sample.flac");

/** Programs come from the environment, else from where cargo puts them. */
export const programs = {
  window: process.env.STENO_WINDOW ?? join(root, "target/debug/steno-window"),
  engine: process.env.STENO_ENGINE ?? join(root, "target/debug/steno-engine"),
  player: process.env.STENO_PLAYER ?? join(root, "target/debug/steno-player"),
  cli: process.env.STENO_CLI ?? join(root, "target/debug/steno"),
};

export const execute = promisify(execFile);

for (const [name, path] of Object.entries(programs)) {
  if (!existsSync(path)) throw new Error(`there is no ${name} at ${path}: cargo build --workspace`);
}

/** A folder of its own with recordings under the given names; `null` is the sample. It is gone when `remove` has resolved. */
export function recordings(files) {
  const folder = mkdtempSync(join(tmpdir(), "steno-window-"));
  const paths = Object.entries(files).map(([name, content]) => {
    const path = join(folder, name);
    if (content === null) copyFileSync(sample, path);
    else writeFileSync(path, content);
    return path;
  });
  return { folder, paths, remove: () => discard(folder) };
}

/** A folder for a window's state, with a history of one transcript: of so many segments, four seconds each, or the one in a JSON file. */
export async function longHistory(folder, recording, segments) {
  const example = process.env.STENO_HISTORY ?? join(root, "target/debug/examples/history");
  await execute(example, [folder, recording, String(segments)]);
  return { STENO_STATE_FOLDER: folder, XDG_CONFIG_HOME: join(folder, "config"), XDG_CACHE_HOME: join(folder, "cache") };
}

/** Removes a folder that processes which are ending still write into, such as WebKit's after their window. */
export async function discard(folder) {
  await until(`the end of ${folder}`, () => {
    rmSync(folder, { recursive: true, force: true });
    return true;
  });
}

let windows = 0;

/** The sample over and over, so that there is time to interrupt. */
export async function longRecording(folder, minutes = 5, name = "long.flac") {
  const path = join(folder, name);
  const seconds = String(minutes * 60);
  await execute("ffmpeg", ["-v", "error", "-stream_loop", "-1", "-i", sample, "-t", seconds, "-ac", "1", "-y", path]);
  return path;
}

/**
 * A window with the engine under test, which remembers nothing and has no models but the demonstrations unless
 * `XDG_CONFIG_HOME`, `STENO_STATE_FOLDER` and `XDG_DATA_HOME` say where. A busy machine is no reason for another renderer.
 */
export function open(options = {}) {
  const config = join(process.env.XDG_CONFIG_HOME ?? tmpdir(), `window-${++windows}`);
  const folders = { XDG_CONFIG_HOME: config, XDG_DATA_HOME: join(config, "data"), STENO_STATE_FOLDER: join(config, "state") };
  // Where a test presses the wrong button, nobody answers.
  const hub = { HF_ENDPOINT: "http://127.0.0.1:9" };
  const env = { STENO_ENGINE: programs.engine, STENO_PLAYER: programs.player, STENO_BACKEND: "cpu", STENO_RENDERER: "usual", ...hub, ...folders, ...options.env };
  return Window.open(options.binary ?? programs.window, { ...options, env });
}

/** As a file manager would. */
export async function drop(...files) {
  await execute("/usr/bin/python3", [join(here, "drop-files.py"), "Steno", ...files]);
}

/** What a window manager or a keyboard would do to the window whose title matches. */
export async function askWindow(...what) {
  await execute("/usr/bin/python3", [join(here, "ask-window.py"), ...what]);
}

/** Megabytes of a window's processes of certain names, what they share counted by its share. */
export function held(window, counts) {
  const pids = [window.pid, ...descendants(window.pid)].filter((pid) => counts(program(pid)));
  const each = pids.map((pid) => {
    try {
      return [program(pid).split("/").at(-1), Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, "utf8"))[1]) / 1000];
    } catch {
      return [program(pid), 0];
    }
  });
  return { sum: each.reduce((sum, [, size]) => sum + size, 0), each };
}

/** Keeps a picture where STENO_PICTURES names a folder. */
export async function picture(window, name) {
  const folder = process.env.STENO_PICTURES;
  if (!folder) return;
  mkdirSync(folder, { recursive: true });
  // Until what was changed is painted.
  await window.runAsync("const [done] = arguments; requestAnimationFrame(() => requestAnimationFrame(() => done()))");
  writeFileSync(join(folder, `${name}.png`), await window.screenshot());
}

/** States of the recordings in the list, by name. */
export async function states(window) {
  return Object.fromEntries(
    await window.run(`return [...document.querySelectorAll("[data-testid=job]")].map((job) =>
      [job.querySelector(".name").innerText, job.dataset.state])`),
  );
}

export const by = (id) => `[data-testid="${id}"]`;
