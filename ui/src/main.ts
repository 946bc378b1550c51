import "./lib/locale-guard";
import "./app.css";
import { mount } from "svelte";
import App from "./App.svelte";
import { backend } from "./lib/backend";
import { Steno } from "./lib/steno.svelte";

const target = document.getElementById("app");
if (target) mount(App, { target, props: { steno: new Steno(await backend()) } });
