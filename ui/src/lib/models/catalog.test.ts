import { fireEvent, render, screen, waitFor, within } from "@testing-library/svelte";
import { beforeAll, beforeEach, expect, test, vi } from "vitest";
import App from "../../App.svelte";
import { FakeBackend } from "../backend/fake";
import { BROKEN_OFF, RECOMMENDED, transfer, SPEAKERS } from "../backend/fake-catalog";
import { ENGINE, FILES } from "../backend/fake-data";
import { Steno } from "../steno.svelte";
import { t } from "../text";

vi.mock("uplot", () => ({ default: class { setData() {} setSize() {} destroy() {} } }));

let backend: FakeBackend;
let steno: Steno;

beforeAll(() => {
  // What jsdom lacks.
  HTMLDialogElement.prototype.showModal = function () {
    this.open = true;
  };
  HTMLDialogElement.prototype.close = function () {
    this.open = false;
  };
  HTMLElement.prototype.scrollIntoView = () => {};
  globalThis.ResizeObserver = class {
    observe() {}
    unobserve() {}
    disconnect() {}
  };
});

beforeEach(() => {
  backend = new FakeBackend(1);
});

async function show(scene: string) {
  backend.show(scene);
  steno = new Steno(backend);
  render(App, { steno });
  await screen.findAllByTestId("drop-zone").catch(() => screen.findAllByTestId("job"));
}

const found = (id: string) => screen.findByTestId(id);
const click = async (id: string) => fireEvent.click(await found(id));
const row = async (id: string) => {
  await screen.findAllByTestId("catalog-entry");
  return document.querySelector(`[data-testid=catalog-entry][data-id="${id}"]`) as HTMLElement;
};

test("the first drop offers the recommended model; the queue starts as soon as it is here", async () => {
  await show("only_demonstration");
  const get = await found("get-recommended");
  expect(get.textContent).toContain(RECOMMENDED);
  expect((await found("offer-hint")).textContent).toMatch(/967\s?MB, about \d+ min at 50 Mbit/);
  const buttons = within(await found("demonstration-question")).getAllByRole("button");
  expect(buttons.map((button) => button.dataset["testid"])).toEqual(["get-recommended", "import", "other-models", "anyway"]);
  expect(backend.transfers).toEqual([]);

  await fireEvent.click(get);
  await found("transfer");
  expect(screen.queryByTestId("get-recommended")).toBeNull();
  expect(screen.getAllByTestId("job").map((job) => job.dataset["state"])).toEqual(["held", "held"]);
  backend.arrive(RECOMMENDED);
  await waitFor(() => expect(screen.getAllByTestId("job")[0]?.dataset["state"]).toBe("finished"), { timeout: 5000 });
  expect(screen.queryByTestId("demonstration-banner")).toBeNull();
});

test("a model from disk takes the place of the demonstration too", async () => {
  await show("only_demonstration");
  await click("import");
  await waitFor(() => expect(screen.getAllByTestId("job")[0]?.dataset["state"]).toBe("finished"), { timeout: 5000 });
  expect(backend.imported).toEqual([true]);
});

test("where the network is off the button says so, and leads to the switch", async () => {
  await show("offline_held");
  const off = await found("offline");
  expect(off.textContent).toBe(t.offers.off);
  await fireEvent.click(off);
  await found("settings-page");
  await click("view-models");
  const entry = await row(RECOMMENDED);
  const button = within(entry).getByTestId("download");
  expect(button.textContent).toContain(t.offers.off);
  expect((button as HTMLButtonElement).disabled).toBe(true);
  expect(backend.transfers).toEqual([]);
});

test("a download says how far it is, is paused, goes on and is stopped", async () => {
  await show("nothing");
  await click("view-models");
  const entry = await row(RECOMMENDED);
  expect(entry.dataset["fit"]).toBe("comfortable");
  await fireEvent.click(within(entry).getByTestId("download"));
  await found("transfer");
  backend.progress(RECOMMENDED, transfer(RECOMMENDED));
  await waitFor(() => expect(entry.textContent).toMatch(/312\s?MB of 967\s?MB · 6\.1\s?MB\/s · 2 min left/));
  await click("pause-download");
  await waitFor(() => expect(entry.textContent).toContain(t.transfers.paused));
  expect(entry.textContent).not.toContain("left");
  await click("pause-download");
  await waitFor(() => expect(entry.textContent).toContain("left"));
  await click("stop-download");
  await waitFor(() => expect(screen.queryByTestId("transfer")).toBeNull());
});

test("what broke off says why and what to do, in words of the window", async () => {
  await show("catalog");
  await click("view-models");
  const failure = await found("transfer-failure");
  expect(failure.textContent).toContain(t.errors.network_failed);
  expect(failure.textContent).toContain(t.transfers.remedies.network_failed);
  expect(failure.querySelector("details")?.open).toBe(false);
  await fireEvent.click(within(failure).getByTestId("resume"));
  await waitFor(() => expect(screen.queryByTestId("transfer-failure")).toBeNull());
});

test("what an earlier start left unfinished or damaged is listed, with what to do", async () => {
  await show("catalog");
  await click("view-models");
  const half = await row("whisper-base");
  expect(half.textContent).toMatch(/Interrupted at 120\s?MB of 290\s?MB/);
  expect(within(half).getByTestId("download").textContent).toContain(t.transfers.resume);
  const damaged = await row("whisper-tiny");
  expect(damaged.textContent).toContain("model.safetensors");
  await fireEvent.click(within(damaged).getByTestId("download"));
  expect(backend.transfers.map(({ id }) => id)).toContain("whisper-tiny");
});

test("a model that identifies speakers is listed, and removed there", async () => {
  await show("empty");
  backend.catalogNow = { ...backend.catalogNow, entries: [SPEAKERS, ...backend.catalogNow.entries] };
  await click("view-models");
  const list = await found("also-installed");
  expect(list.textContent).toContain(t.offers.purposes.speakers);
  expect(within(list).queryByTestId("download")).toBeNull();
  await fireEvent.click(within(list).getByTestId("remove-model"));
  await click("remove-yes");
  await waitFor(() => expect(backend.removed).toEqual(["community-1"]));
  await waitFor(() => expect(screen.queryByTestId("also-installed")).toBeNull());
});

test("removing asks first", async () => {
  await show("empty");
  await click("view-models");
  await click("remove-installed");
  expect((await found("remove")).textContent).toContain("whisper-small");
  await click("remove-no");
  expect(backend.removed).toEqual([]);
  await click("remove-installed");
  await click("remove-yes");
  await waitFor(() => expect(backend.removed).toEqual(["whisper-small"]));
  await waitFor(() => expect(screen.queryByTestId("remove-installed")).toBeNull());
});

test("the settings show what the network was used for", async () => {
  await show("empty");
  await click("view-settings");
  const log = (await found("connections")) as HTMLDetailsElement;
  log.open = true;
  await fireEvent(log, new Event("toggle"));
  const rows = await screen.findAllByTestId("connection");
  expect(rows.length).toBe(3);
  expect(rows[0]?.textContent).toContain(t.connections.unfinished);
  expect(rows[0]?.textContent).toContain(t.connections.purposes.file("model.safetensors", "whisper-base"));
  expect(rows[1]?.textContent).toMatch(/huggingface\.co.*2\.5\s?MB.*tokenizer\.json/);
});

test("where a card only lacks its engine, that is offered, comes, and takes over", async () => {
  const { fits, engine } = backend;
  backend.fits = { ...fits, engine: "steno-engine-cuda", gpu_problem: "The card is not used." };
  backend.engine = { ...ENGINE, backend: "cpu", cpu_reason: "This engine is built for the CPU." };
  await show("empty");
  await click("view-models");
  const offer = await found("lacks-engine");
  expect(offer.textContent).toContain(t.device.lacksEngine);
  // It says more than that there is no card, which would be wrong.
  expect(screen.queryByTestId("why-cpu")).toBeNull();
  await click("get-engine");
  const line = await found("transfer");
  expect(within(await found("device-card")).getByTestId("transfer")).toBe(line);
  expect(screen.queryByTestId("other-transfer")).toBeNull();
  expect(screen.queryByTestId("lacks-engine")).toBeNull();

  backend.fits = { ...fits, device: { kind: "gpu", name: "Small Card", free: 3 * 2 ** 30, total: 8 * 2 ** 30 } };
  backend.engine = { ...ENGINE, backend: "cuda", cpu_reason: null };
  await backend.stopDownload("steno-engine-cuda");
  await backend.changeSettings(backend.settings);
  await waitFor(() => expect(screen.getByTestId("device-card").textContent).toContain("Small Card"));
  expect(screen.queryByTestId("lacks-engine")).toBeNull();
  backend.engine = engine;
});

test.each([
  ["card_without_engine", "CPU", t.device.lacksEngine, "whisper-small"],
  ["old_card", "CPU", "compute capability 6.1", "whisper-small"],
  ["two_cards", "RTX 3090", "RTX 3090", "whisper-large-v3"],
  ["card_in_use", "RTX 3060 Ti", "RTX 3060 Ti", "whisper-small"],
])("with the machine %s the page says what computes and which model suits it", async (machine, computes, says, model) => {
  await show(machine);
  await waitFor(() => expect(screen.getByTestId("engine").textContent).toContain(computes));
  await click("view-models");
  await waitFor(() => expect(screen.getByTestId("device-card").textContent).toContain(says));
  const rows = await screen.findAllByTestId("model-choice");
  const recommended = rows.filter((row) => row.textContent?.includes(t.models.recommended));
  expect(recommended.map((row) => row.querySelector(".name")?.getAttribute("title"))).toEqual([`/home/me/models/${model}`]);
});
