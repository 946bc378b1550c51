export { speak, t, type Language } from "./current.svelte";
