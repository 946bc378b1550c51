// The Debian package: what is in it, that it names what it needs, and that it works where it is unpacked.
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { by, execute, open, programs, root, states } from "./common.mjs";
import { until } from "./driver.mjs";

const has = (tool) => execute("sh", ["-c", `command -v ${tool}`]).then(() => true, () => false);
const missing = [];
for (const tool of ["dpkg-deb", "dpkg-shlibdeps", "strip"]) if (!(await has(tool))) missing.push(tool);
const options = { skip: missing.length > 0 ? `skipped: there is no ${missing.join(", ")}` : false };

let folder, tree, deb;
/** Without anything that would lead elsewhere than into the package. */
const bare = { STENO_ENGINE: "", STENO_PLAYER: "", STENO_BACKEND: "cpu", STENO_MODELS: "" };

before(async () => {
  if (options.skip) return;
  folder = mkdtempSync(join(tmpdir(), "steno-package-"));
  const built = join(folder, "programs");
  mkdirSync(built);
  for (const [name, path] of [["steno-window", programs.window], ["steno", programs.cli], ["steno-engine", programs.engine], ["steno-player", programs.player]]) {
    symlinkSync(path, join(built, name));
  }
  await execute(join(root, "scripts/package/debian.sh"), ["--programs", built, "--output", folder, "--fast"]);
  deb = join(folder, readdirSync(folder).find((name) => name.endsWith(".deb")));
  assert.ok(!deb.includes("steno-cuda"), "without an engine for NVIDIA cards there is no package of it");
  tree = join(folder, "tree");
  await execute("dpkg-deb", ["-x", deb, tree]);
});
after(() => folder && rmSync(folder, { recursive: true, force: true }));

test("it has all of Steno, and says what else is needed", options, async () => {
  const { stdout } = await execute("dpkg-deb", ["-c", deb], { maxBuffer: 1 << 24 });
  const files = stdout.split("\n").map((line) => line.trim().split(/\s+/)).filter((words) => words.length > 5);
  const names = files.map((words) => words[5]);
  for (const wanted of [
    "usr/bin/steno-window", "usr/bin/steno", "usr/lib/steno/steno-engine", "usr/lib/steno/steno-player", "usr/share/steno/sample.flac",
    ...["starter-whisper", "starter-parakeet"].flatMap((model) => [`usr/share/steno/models/${model}/model.safetensors`, `usr/share/steno/models/${model}/steno-model.json`]),
    "usr/share/applications/steno-window.desktop", "usr/share/icons/hicolor/scalable/apps/steno.svg",
    "usr/share/icons/hicolor/128x128/apps/steno.png", "usr/share/man/man1/steno.1.gz", "usr/share/doc/steno/copyright",
    "usr/share/doc/steno/LICENSE-MIT", "usr/share/doc/steno/third-party.txt.gz", "usr/share/bash-completion/completions/steno",
  ]) {
    assert.ok(names.includes(`./${wanted}`), `${wanted} in ${names.join("\n")}`);
  }
  assert.ok(files.every((words) => words[1] === "root/root"));
  const depends = (await execute("dpkg-deb", ["-f", deb, "Depends"])).stdout;
  for (const library of ["libc6", "libwebkit2gtk-4.1-0", "libgtk-3-0", "libsoup-3.0-0", "gstreamer1.0-plugins-good"]) assert.match(depends, new RegExp(`(^|, )${library}\\b`));
  assert.doesNotMatch(depends, /-dev\b/);
  const notices = (await execute("gzip", ["-dc", join(tree, "usr/share/doc/steno/third-party.txt.gz")], { maxBuffer: 1 << 26 })).stdout;
  for (const name of ["tauri ", "candle-core ", "svelte|uplot "]) assert.match(notices, new RegExp(`^(${name})`, "m"));
  assert.match(notices, /Without a text of their own/);
});

test("the engine for NVIDIA cards is a package of its own", options, async () => {
  const libraries = join(folder, "libraries");
  mkdirSync(libraries);
  for (const name of ["libcublas.so.13", "libcublasLt.so.13", "libcurand.so.10"]) writeFileSync(join(libraries, name), name);
  const [release, output] = [join(folder, "release"), join(folder, "cuda")];
  await execute(join(root, "scripts/package/engine.sh"), ["--program", programs.engine, "--libraries", libraries, "--output", release]);
  const built = ["--programs", join(folder, "programs"), "--cuda", release, "--output", output, "--fast"];
  await execute(join(root, "scripts/package/debian.sh"), built);
  const cuda = join(output, readdirSync(output).find((name) => name.startsWith("steno-cuda_")));
  const { stdout } = await execute("dpkg-deb", ["-c", cuda]);
  for (const name of ["steno-engine-cuda", "cuda-libs/libcublas.so.13", "cuda-libs/libcublasLt.so.13", "cuda-libs/libcurand.so.10"]) assert.match(stdout, new RegExp(`\\./usr/lib/steno/${name}$`, "m"));
  assert.match((await execute("dpkg-deb", ["-f", cuda, "Depends"])).stdout, /^steno \(= /);
});

test("files of sound and video are opened with it", options, async (context) => {
  const path = join(tree, "usr/share/applications/steno-window.desktop");
  const entry = readFileSync(path, "utf8");
  assert.match(entry, /^Exec=steno-window %F$/m);
  for (const type of ["audio/mpeg", "audio/flac", "audio/x-wav", "audio/mp4", "video/mp4", "video/x-matroska"]) {
    assert.match(entry, new RegExp(`^MimeType=(.*;)?${type};`, "m"));
  }
  if (await has("desktop-file-validate")) await execute("desktop-file-validate", [path]);
  else context.diagnostic("desktop-file-validate is not there");
});

test("unpacked anywhere the command line finds its engine and a demonstration model", options, async () => {
  const { stdout } = await execute(join(tree, "usr/bin/steno"), ["transcribe", join(tree, "usr/share/steno/sample.flac"), "--format", "txt", "--output", "-"], {
    env: { ...process.env, ...bare, HOME: folder, STENO_STATE_FOLDER: join(folder, "state") },
  });
  assert.ok(stdout.trim().split(/\s+/).length > 3, stdout);
});

test("so does the window", options, async () => {
  const window = await open({ env: bare, binary: join(tree, "usr/bin/steno-window") });
  try {
    await window.click(by("sample"));
    await until("the transcript", async () => Object.values(await states(window))[0] === "finished");
    await until("its words", async () => (await window.texts(by("segment"))).length > 0);
  } finally {
    await window.end();
  }
});
