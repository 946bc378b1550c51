// Another machine, that is `steno serve` with the real engine, transcribes for the window.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";
import { by, drop, execute, open, picture, programs, recordings, starter, states } from "./common.mjs";
import { PATIENCE, until } from "./driver.mjs";

let files, server, place, token;
before(async () => {
  files = recordings({ "here.flac": null });
  const home = join(files.folder, "there");
  mkdirSync(home);
  const folders = { XDG_CONFIG_HOME: home, XDG_DATA_HOME: home, XDG_RUNTIME_DIR: home, STENO_STATE_FOLDER: home };
  const env = { ...process.env, ...folders, STENO_ENGINE: programs.engine, STENO_MODEL: starter, STENO_BACKEND: "cpu" };
  token = (await execute(programs.cli, ["serve", "--create-token", "window"], { env })).stdout.trim();
  server = spawn(programs.cli, ["serve", "--listen", "127.0.0.1:0", "--require-token"], { env, stdio: ["ignore", "ignore", "pipe"] });
  const said = createInterface({ input: server.stderr });
  place = await new Promise((found) => said.on("line", (line) => /http:\/\/([\d.:]+\d)/.test(line) && found(/http:\/\/([\d.:]+\d)/.exec(line)[1])));
});
after(async () => {
  server?.kill();
  await files?.remove();
});

/** Types into a field, as a user does, and leaves it. */
async function enter(window, id, text) {
  await window.click(by(id));
  await window.type([...text, "\uE004"]);
}

test("a recording that is dropped is transcribed on the other machine, with its place, and saved here", async () => {
  const config = join(files.folder, "config");
  const window = await open({ env: { XDG_CONFIG_HOME: config, STENO_STATE_FOLDER: join(files.folder, "state") } });
  try {
    await until("the page", () => window.text(by("drop-zone")));
    await window.click(by("view-settings"));
    await until("the settings", () => window.text(by("machine")));
    await enter(window, "machine-address", place);
    await until("the address", () => window.run(`return !document.querySelector('${by("machine-test")}').disabled`));
    await window.click(by("machine-test"));
    await until("the refusal", async () => /refused/.test(await window.text(by("machine-failure"))));
    await enter(window, "machine-token", token);
    await until("that it is kept", () => window.text(by("machine-forget")));
    await window.click(by("machine-test"));
    await until("the answer", async () => /^Connected. 2 models/.test(await window.text(by("machine-result"))));
    await window.click(by("machine-on"));
    await until("that it is on", () => window.run(`return document.querySelector('${by("machine-on")}').checked`));
    await picture(window, "another-machine");
    await window.click(by("view-recordings"));
    await until("that it is used", async () => (await window.text(by("machine-in-use"))).includes(place));

    await drop(files.paths[0]);
    await until("the text", async () => (await states(window))["here.flac"] === "finished", 2 * PATIENCE);
    const figures = await (await fetch(`http://${place}/metrics`, { headers: { authorization: `Bearer ${token}` } })).text();
    assert.match(figures, /steno_jobs_ended_total\{[^}]*finished[^}]*\} 1\n/);
    const segments = await until("its segments", () => window.texts(by("segment")));
    assert.ok(segments.length > 0);
    assert.match(await window.run(`return document.querySelector('${by("title")}').parentElement.innerText`), new RegExp(place));
    assert.match(await window.text(`${by("job")} .detail`), new RegExp(place));
    await picture(window, "elsewhere");
    await window.click(by("save"));
    const file = files.paths[0].replace(/flac$/, "srt");
    await until("the file", () => existsSync(file));
    assert.match(readFileSync(file, "utf8"), /^1\n\d\d:\d\d:\d\d,\d\d\d --> /);

    const kept = join(config, "steno/server-token");
    assert.equal(readFileSync(kept, "utf8").trim(), token);
    assert.equal(statSync(kept).mode & 0o777, 0o600);
    assert.ok(!readFileSync(join(config, "steno/window.json"), "utf8").includes(token));
    const log = readFileSync(join(files.folder, "state/connections.jsonl"), "utf8");
    assert.ok(log.includes("other_machine") && !log.includes(token) && !log.includes("here.flac"), log);
  } finally {
    await window.end();
  }
});
