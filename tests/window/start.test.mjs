// How the program starts: once, with files, and with a renderer that shows something.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { by, execute, here, open, programs, recordings, states } from "./common.mjs";
import { isAlive, until } from "./driver.mjs";

let files;
before(() => {
  files = recordings({ "a.flac": null, "zwei, im Café.flac": null, "c.flac": null });
});
after(() => files?.remove());

const surroundings = (name) => ({
  STENO_ENGINE: programs.engine,
  STENO_BACKEND: "cpu",
  XDG_CONFIG_HOME: join(files.folder, name),
  STENO_STATE_FOLDER: join(files.folder, name, "state"),
});

/** Names of the windows, the topmost last. */
const windows = async () => (await execute("/usr/bin/python3", [join(here, "cover.py"), "order"])).stdout.trim().split("\n");

test("a second start hands its files to the first, raises it and ends well", async () => {
  const env = surroundings("single");
  const window = await open({ args: [files.paths[0]], env });
  try {
    await until("the first file", async () => Object.keys(await states(window)).length === 1);
    // Another window over it, as when somebody works elsewhere.
    const cover = spawn("/usr/bin/python3", [join(here, "cover.py")], { stdio: ["ignore", "pipe", "inherit"] });
    await new Promise((done) => cover.stdout.once("data", done));
    try {
      assert.equal((await windows()).at(-1), "Cover");
      // By a name relative to where it is started.
      const { stdout } = await execute(programs.window, files.paths.slice(1).map((path) => path.slice(files.folder.length + 1)), {
        env: { ...process.env, ...env },
        cwd: files.folder,
        timeout: 60_000,
      });
      assert.equal(stdout, "");
      await until("all files", async () => Object.keys(await states(window)).length === 3);
      assert.deepEqual(Object.keys(await states(window)), ["a.flac", "zwei, im Café.flac", "c.flac"]);
      await until("the first on top", async () => (await windows()).at(-1) === "Steno");
      // A folder is opened up.
      await execute(programs.window, [files.folder], { env: { ...process.env, ...env }, timeout: 60_000 });
      await until("the folder's files", async () => (await window.texts(by("job"))).length === 6);
    } finally {
      cover.kill();
    }
  } finally {
    await window.end();
  }
});

/** The program without WebDriver, which would not follow it into another renderer. */
function start(env, args = []) {
  const child = spawn(programs.window, args, { env: { ...process.env, ...env }, stdio: ["ignore", "ignore", "pipe"] });
  child.said = "";
  child.stderr.on("data", (data) => (child.said += data));
  return child;
}

const renderer = (pid) => (/WEBKIT_DISABLE_DMABUF_RENDERER=1/.test(readFileSync(`/proc/${pid}/environ`, "latin1")) ? "fallback" : "usual");

async function killed(child) {
  child.kill("SIGKILL");
  await until("its end", () => !isAlive(child.pid));
}

test("a window that stays blank starts itself once more with the simplest renderer, and remembers", async () => {
  const env = surroundings("blank");
  const remembered = join(env.XDG_CONFIG_HOME, "steno/window.json");
  const begun = Date.now();
  const child = start({ ...env, STENO_TEST_BLANK_PAGE: "1" }, [files.paths[0]]);
  try {
    await until("the other renderer", () => renderer(child.pid) === "fallback");
    console.log(`another renderer after ${Date.now() - begun} ms`);
    assert.match(child.said, /stayed blank/);
    await until("the memory of it", () => existsSync(remembered) && JSON.parse(readFileSync(remembered, "utf8")).fallback_renderer);
    assert.equal(child.said.match(/stayed blank/g).length, 1);
  } finally {
    await killed(child);
  }
  // What it was given is still in its queue.
  const window = await open({ env });
  try {
    await until("the queue", async () => (await states(window))["a.flac"] === "held");
  } finally {
    await window.end();
  }
  // From then on at once.
  const again = start(env);
  try {
    await until("the other renderer", () => renderer(again.pid) === "fallback", 10_000);
    await until("its window", async () => (await windows()).includes("Steno"));
    assert.doesNotMatch(again.said, /blank/);
  } finally {
    await killed(again);
  }
  // Another version of the web view gets its chance.
  const now = JSON.parse(readFileSync(remembered, "utf8"));
  writeFileSync(remembered, JSON.stringify({ ...now, fallback_renderer: "0.1" }));
  const third = start(env);
  try {
    await until("its window", async () => (await windows()).includes("Steno"));
    assert.equal(renderer(third.pid), "usual");
  } finally {
    await killed(third);
  }
});

/** Without a graphics card the processor draws, unless it is told not to. */
const hasCard = existsSync("/dev/nvidiactl") || existsSync("/dev/dxg") || (existsSync("/dev/dri") && readdirSync("/dev/dri").some((name) => name.startsWith("renderD")));

test("the first frame is seen, and when and who draws is told in the diagnostics", async () => {
  assert.equal(await reported({}), hasCard ? "usual" : "processor");
  assert.equal(await reported({ WEBKIT_SKIA_ENABLE_CPU_RENDERING: "0" }), "usual");
});

/** The renderer that a window with these variables tells of. */
async function reported(env) {
  const window = await open({ env });
  try {
    // The report is made anew whenever the page is opened.
    const report = await until("the first frame", async () => {
      await window.click(by("view-models"));
      await window.click(by("view-settings"));
      const text = await until("the report", () => window.run("return document.querySelector('[data-testid=report]')?.textContent"));
      const report = JSON.parse(text);
      return report.window.first_paint_milliseconds !== null && report;
    });
    console.log(`first frame after ${report.window.first_paint_milliseconds} ms, in this build and on this machine`);
    assert.ok(report.window.first_paint_milliseconds > 0);
    return report.window.renderer;
  } finally {
    await window.end();
  }
}
