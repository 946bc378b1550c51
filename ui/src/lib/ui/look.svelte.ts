import type { Look } from "../generated/contract";

/** Whether the page is dark just now: by the user's choice, else as the system is. */
class Appearance {
  dark = $state(false);
  #system = typeof matchMedia === "function" ? matchMedia("(prefers-color-scheme: dark)") : null;
  #theme: Look["theme"] = "system";

  constructor() {
    this.#system?.addEventListener("change", () => this.#apply());
    this.#apply();
  }

  choose(theme: Look["theme"]): void {
    this.#theme = theme;
    this.#apply();
  }

  #apply(): void {
    this.dark = this.#theme === "dark" || (this.#theme === "system" && (this.#system?.matches ?? false));
    document.documentElement.dataset["theme"] = this.dark ? "dark" : "light";
  }
}

export const look = new Appearance();
