// What every screen has to keep: access by keyboard and screen reader, the
// security policy, and quiet when there is nothing to do.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { after, before, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { by, open, picture, recordings, root, states } from "./common.mjs";
import { descendants, until } from "./driver.mjs";

const axe = readFileSync(createRequire(`${root}/ui/package.json`).resolve("axe-core/axe.min.js"), "utf8");

let window, files;
before(async () => {
  files = recordings({ "a.flac": null, "b.flac": null, "letter.pdf": "Dear Sir" });
  window = await open({ env: { LANG: "C.UTF-8", LC_ALL: "C.UTF-8" } });
  await until("the page", () => window.text(by("drop-zone")));
  await window.run(`
    window.violations = [];
    document.addEventListener("securitypolicyviolation", (event) => violations.push(event.violatedDirective + " " + event.blockedURI));`);
  await window.run(`${axe}; return true;`);
});
after(async () => {
  await window?.end();
  await files?.remove();
});

async function faults() {
  const found = await window.runAsync(`
    const done = arguments[arguments.length - 1];
    axe.run(document, { resultTypes: ["violations"] }).then(
      ({ violations, passes }) => done({ passes: passes.length, violations: violations.map(({ id, impact, nodes }) => [id, impact, ...nodes.map((node) => node.target.join(" "))]) }),
      (error) => done({ error: String(error) }));`);
  assert.ok(found.passes > 10, JSON.stringify(found));
  return found.violations;
}

test("the empty window is accessible", async () => {
  assert.deepEqual(await faults(), []);
});

test("the keyboard alone transcribes the sample and saves nothing by accident", async () => {
  const focused = () => window.run("return document.activeElement?.dataset.testid ?? document.activeElement?.tagName");
  const tab = "\uE004";
  const visited = [];
  for (let step = 0; step < 14 && visited.at(-1) !== "sample"; step++) {
    await window.type(tab);
    visited.push(await focused());
  }
  assert.deepEqual(visited, ["view-recordings", "view-history", "view-voices", "view-models", "view-settings", "engine", "model", "language", "translate", "all-speakers", "more-settings", "choose", "sample"]);
  const outline = await window.run("return getComputedStyle(document.activeElement).outlineStyle");
  assert.equal(outline, "solid", "the focus is seen");
  await picture(window, "keyboard");
  await window.type("\uE007");
  await until("the transcript", async () => Object.values(await states(window))[0] === "finished");
  assert.match(await window.text(by("announcement")), /sample\.flac: Done/);
});

test("the transcript, its menu and its messages are accessible", async () => {
  assert.deepEqual(await faults(), []);
  await window.click(by("save-as"));
  assert.deepEqual(await faults(), []);
  await picture(window, "save-as");
  await window.type("\uE00C");
  await window.click(by("engine"));
  assert.deepEqual(await faults(), []);
  await picture(window, "engine");
  await window.type("\uE00C");
});

test("nothing broke the security policy, and it does forbid", async () => {
  assert.deepEqual(await window.run("return window.violations"), []);
  const refused = await window.runAsync(`
    const [done] = arguments;
    document.addEventListener("securitypolicyviolation", (event) => done(event.violatedDirective), { once: true });
    const image = new Image();
    image.src = "https://example.org/x.png";`);
  assert.match(refused, /img-src/);
  // The player's port is the only one of this machine that the page may ask.
  const local = await window.runAsync(`
    const [done] = arguments;
    document.addEventListener("securitypolicyviolation", (event) => done(event.violatedDirective), { once: true });
    fetch("http://127.0.0.1:9/").then(() => done("answered"), () => {});`);
  assert.match(local, /connect-src/);
});

test("an idle window is quiet", async () => {
  // Ticks of 10 ms, of the window and everything it started.
  const ticks = () =>
    [window.pid, ...descendants(window.pid)].reduce((total, pid) => {
      const fields = readFileSync(`/proc/${pid}/stat`, "utf8").replace(/^.*\) /s, "").split(" ");
      return total + Number(fields[11]) + Number(fields[12]);
    }, 0);
  // A slow machine takes a while to draw what the earlier tests changed. Then the window has to stay quiet.
  const shares = [];
  const isQuiet = () => shares.length > 1 && shares.slice(-2).every((share) => share < 0.05);
  while (shares.length < 15 && !isQuiet()) {
    const before = ticks();
    const seconds = 4;
    await pause(seconds * 1000);
    shares.push((ticks() - before) / (seconds * 100));
  }
  console.log(`an idle window takes ${shares.map((share) => (share * 100).toFixed(1)).join(", ")} % of a core`);
  assert.ok(isQuiet(), `${shares}`);
});
