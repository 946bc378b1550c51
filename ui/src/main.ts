import "./lib/locale-guard";
import "./app.css";
import { mount } from "svelte";
import App from "./App.svelte";
import { backend } from "./lib/backend";
import { Steno } from "./lib/steno.svelte";

const target = document.getElementById("app");
if (target) {
  const behind = await backend();
  const steno = new Steno(behind);
  mount(App, { target, props: { steno } });
  // For tests in a browser, which drive what is only pretended.
  if (import.meta.env.DEV) Object.assign(window, { pretended: { backend: behind, steno } });
}
