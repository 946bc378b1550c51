// A window of Steno under WebDriver (W3C), as much of it as the tests need.
import { spawn } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import net from "node:net";
import { setTimeout as pause } from "node:timers/promises";

/** The key under which the protocol passes elements. */
const ELEMENT = "element-6066-11e4-a52e-4f735466cecf";

/** Milliseconds; a busy machine is ten times slower than an idle one. */
export const PATIENCE = 120_000;

export async function until(what, look, patience = PATIENCE) {
  const end = Date.now() + patience;
  let last;
  while (Date.now() < end) {
    try {
      last = await look();
      if (last) return last;
    } catch (error) {
      last = error;
    }
    await pause(50);
  }
  throw new Error(`waited in vain for ${what}; last: ${last}`);
}

/** False for the dead, also for those that nobody has buried yet. */
export function isAlive(pid) {
  try {
    const state = readFileSync(`/proc/${pid}/stat`, "utf8").replace(/^.*\) /s, "")[0];
    return state !== "Z" && state !== "X";
  } catch {
    return false;
  }
}

/** Children, children's children and so on. A child belongs to the thread that started it. */
export function descendants(pid) {
  let children = [];
  try {
    const threads = readdirSync(`/proc/${pid}/task`);
    const lists = threads.map((thread) => readFileSync(`/proc/${pid}/task/${thread}/children`, "utf8"));
    children = lists.join(" ").split(" ").filter(Boolean).map(Number);
  } catch {
    // It ended.
  }
  return children.flatMap((child) => [child, ...descendants(child)]);
}

export function program(pid) {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0")[0];
  } catch {
    return "";
  }
}

function freePort() {
  return new Promise((resolve, reject) => {
    const server = net.createServer();
    server.on("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

/** A window that was started by a WebKitWebDriver of its own. */
export class Window {
  #url;
  #driver;

  static async open(binary, { args = [], env = {} } = {}) {
    const window = new Window();
    const port = await freePort();
    window.#driver = spawn("WebKitWebDriver", [`--port=${port}`, "--host=127.0.0.1"], {
      env: { ...process.env, TAURI_WEBVIEW_AUTOMATION: "true", ...env },
      stdio: ["ignore", "inherit", "inherit"],
    });
    const gone = new Promise((_, reject) => window.#driver.once("error", reject));
    window.#url = `http://127.0.0.1:${port}`;
    const ready = until("WebKitWebDriver", async () => (await fetch(`${window.#url}/status`)).ok);
    await Promise.race([ready, gone]);
    const capabilities = { alwaysMatch: { "webkitgtk:browserOptions": { binary, args } } };
    const { sessionId } = await window.#ask("POST", "/session", { capabilities });
    window.#url += `/session/${sessionId}`;
    // Apart from the driver's own processes.
    window.pid = descendants(window.#driver.pid).find((pid) => program(pid) === binary);
    return window;
  }

  async #ask(method, path, body) {
    const response = await fetch(this.#url + path, {
      method,
      headers: { "content-type": "application/json" },
      body: method === "POST" ? JSON.stringify(body ?? {}) : undefined,
    });
    const { value } = await response.json();
    if (!response.ok) throw new Error(`${value.error}: ${value.message}`);
    return value;
  }

  /** Engines that this window started. */
  engines() {
    return descendants(this.pid).filter((pid) => program(pid).includes("steno-engine"));
  }

  /** Runs a function's body in the page. */
  run(script, ...args) {
    return this.#ask("POST", "/execute/sync", { script, args });
  }

  /** The same; `arguments` has a callback at its end, which takes the answer. */
  runAsync(script, ...args) {
    return this.#ask("POST", "/execute/async", { script, args });
  }

  async find(selector) {
    return (await this.#ask("POST", "/element", { using: "css selector", value: selector }))[ELEMENT];
  }

  /** What users of the mouse do, once the element is there: who misses because the page moved clicks again. */
  async click(selector) {
    for (let attempt = 0; attempt < 10; attempt++) {
      const element = await until(selector, () => this.find(selector));
      await this.run("window.hit = false; arguments[0].addEventListener('click', () => (window.hit = true), { capture: true, once: true })", { [ELEMENT]: element });
      try {
        await this.#ask("POST", `/element/${element}/click`);
      } catch (error) {
        // A list that is just being drawn: there, and nowhere yet, or another one already.
        if (attempt === 9 || !/not interactable|stale element/.test(error.message)) throw error;
        await pause(50 * 2 ** attempt);
        continue;
      }
      // A click may have ended the page.
      if ((await this.run("return window.hit").catch(() => true)) !== false) return;
    }
    throw new Error(`${selector} can't be hit`);
  }

  /** The same at a place of the page, once or twice. */
  clickAt(x, y, times = 1) {
    const click = [{ type: "pointerDown", button: 0 }, { type: "pointerUp", button: 0 }];
    const actions = [{ type: "pointerMove", duration: 0, x: Math.round(x), y: Math.round(y) }, ...Array(times).fill(click).flat()];
    return this.#ask("POST", "/actions", { actions: [{ type: "pointer", id: "mouse", parameters: { pointerType: "mouse" }, actions }] });
  }

  /** Keys held together, the last one pressed. */
  async press(...keys) {
    const held = keys.slice(0, -1);
    const actions = [
      ...held.map((value) => ({ type: "keyDown", value })),
      { type: "keyDown", value: keys.at(-1) },
      { type: "keyUp", value: keys.at(-1) },
      ...held.reverse().map((value) => ({ type: "keyUp", value })),
    ];
    return this.#ask("POST", "/actions", { actions: [{ type: "key", id: "keys", actions }] });
  }

  /** Keys typed into whatever has the focus. */
  async type(keys) {
    const actions = [...keys].flatMap((value) => [
      { type: "keyDown", value },
      { type: "keyUp", value },
    ]);
    return this.#ask("POST", "/actions", { actions: [{ type: "key", id: "keys", actions }] });
  }

  /** The texts of all elements that match. */
  texts(selector) {
    return this.run("return [...document.querySelectorAll(arguments[0])].map((found) => found.innerText.trim())", selector);
  }

  /** The one text of the one element that matches, or null. */
  async text(selector) {
    return (await this.texts(selector))[0] ?? null;
  }

  resize(width, height) {
    return this.#ask("POST", "/window/rect", { width, height });
  }

  async screenshot() {
    return Buffer.from(await this.#ask("GET", "/screenshot"), "base64");
  }

  /** Ends it hard, as WebDriver does. What was left alive is ended, so that the next test is not disturbed. */
  async end() {
    await this.#ask("DELETE", "").catch(() => {});
    if (this.pid) {
      // The answer comes before the end: a driver that stops too early leaves a window behind.
      const ended = () => !isAlive(this.pid);
      await until("the window's end", ended, 10_000).catch(() => ended() || process.kill(this.pid, "SIGKILL"));
    }
    // A test may have ended it already.
    if (this.#driver.exitCode !== null || this.#driver.signalCode !== null) return;
    const over = new Promise((resolve) => this.#driver.once("exit", resolve));
    this.#driver.kill("SIGTERM");
    await over;
  }
}
