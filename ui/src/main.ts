import "./lib/locale-guard";
import "./app.css";
import { mount } from "svelte";
import App from "./App.svelte";
import { backend } from "./lib/backend";
import { Steno } from "./lib/steno.svelte";
import { speak } from "./lib/text";

const target = document.getElementById("app");
if (target) {
  const behind = await backend();
  const steno = new Steno(behind);
  target.replaceChildren();
  mount(App, { target, props: { steno } });
  // Some drivers leave a window blank: the program waits for this. What is hidden has no frames until it is shown.
  if (document.visibilityState === "hidden") void behind.painted(false);
  requestAnimationFrame(() => requestAnimationFrame(() => void behind.painted(true)));
  // For tests in a browser, which drive what is only pretended.
  if (import.meta.env.DEV) Object.assign(window, { pretended: { backend: behind, steno, speak } });
}
