import { fireEvent, render, screen, waitFor } from "@testing-library/svelte";
import { beforeAll, beforeEach, expect, test, vi } from "vitest";
import { FakeBackend } from "../backend/fake";
import { Steno } from "../steno.svelte";
import { fillIn } from "../testing";
import { t } from "../text";
import Pictures from "./Pictures.svelte";
import { Player } from "./player.svelte";

// jsdom has no canvas: the chart is looked at in a real browser.
vi.mock("uplot", () => ({ default: class {} }));

let backend: FakeBackend;
let steno: Steno;
let player: Player;

beforeAll(fillIn);

beforeEach(async () => {
  backend = new FakeBackend(1);
  steno = new Steno(backend);
  await waitFor(() => expect(steno.setup).not.toBeNull());
  player = new Player(1, backend);
});

/** A recording of which the player says this. */
function show(film: { pictures: boolean; missing: boolean }): void {
  vi.stubGlobal("fetch", async () => new Response(JSON.stringify(film)));
  render(Pictures, { steno, player, place: undefined });
  player.source = { audio: "", peaks: "", pictures: "http://player/pictures", speed: "", seconds: 60 };
}

const picture = () => screen.queryByTestId<HTMLImageElement>("picture");

test("a film is seen where it is heard, one picture after the other", async () => {
  show({ pictures: true, missing: false });
  await waitFor(() => expect(picture()?.src).toBe("http://player/pictures/0"));
  // The next is asked for once this one is there.
  player.position = 12.3;
  await new Promise((go) => setTimeout(go, 300));
  expect(picture()?.src).toBe("http://player/pictures/0");
  await fireEvent.load(picture() as HTMLImageElement);
  await waitFor(() => expect(picture()?.src).toBe("http://player/pictures/12.25"));
});

test("it can be hidden, and stays so", async () => {
  show({ pictures: true, missing: false });
  await fireEvent.click(await screen.findByTestId("pictures"));
  await waitFor(() => expect(picture()).toBeNull());
  expect(backend.look.hide_pictures).toBe(true);
  expect(screen.getByTestId("pictures").ariaPressed ?? screen.getByTestId("pictures").getAttribute("aria-pressed")).toBe("false");
});

test("without pictures there is nothing, and without ffmpeg it is named", async () => {
  show({ pictures: false, missing: false });
  await new Promise((go) => setTimeout(go, 20));
  expect(screen.queryByTestId("pictures")).toBeNull();
  show({ pictures: false, missing: true });
  expect((await screen.findByTestId("pictures-missing")).textContent).toBe(t.player.picturesMissing);
});
