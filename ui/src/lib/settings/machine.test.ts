import { fireEvent, render, screen, waitFor } from "@testing-library/svelte";
import { beforeEach, expect, test } from "vitest";
import { FakeBackend } from "../backend/fake";
import type { Failure, Job } from "../generated/contract";
import { placeOf, stateOf } from "../jobs/place";
import { recording } from "../backend/fake-data";
import { Steno } from "../steno.svelte";
import { t } from "../text";
import SettingsPage from "./SettingsPage.svelte";

let backend: FakeBackend;
let steno: Steno;

beforeEach(() => {
  backend = new FakeBackend(1);
  steno = new Steno(backend);
});

const found = (id: string) => screen.findByTestId(id);
const enter = async (id: string, value: string) => {
  const field = await found(id);
  await fireEvent.input(field, { target: { value } });
  await fireEvent.change(field, { target: { value } });
};

test("another machine is entered, tested, used, and its token is never shown", async () => {
  render(SettingsPage, { steno });
  expect(((await found("machine-on")) as HTMLInputElement).disabled).toBe(true);
  await enter("machine-address", "http://studio:8642");
  await waitFor(() => expect(backend.machine.address).toBe("http://studio:8642"));
  expect((await found("machine-open")).textContent).toBe(t.machine.open);
  await enter("machine-token", "steno-secret");
  await waitFor(() => expect(backend.machineToken).toBe("steno-secret"));
  expect(document.body.innerHTML).not.toContain("steno-secret");
  expect(((await found("machine-token")) as HTMLInputElement).value).toBe("");
  await fireEvent.click(await found("machine-test"));
  await waitFor(() => expect(screen.getByTestId("machine-result").textContent).toBe(t.machine.works(2)));
  await fireEvent.change(await found("machine-model"), { target: { value: "whisper-small" } });
  await fireEvent.click(await found("machine-on"));
  await waitFor(() => expect(backend.machine).toEqual({ on: true, address: "http://studio:8642", model: "whisper-small" }));
  await enter("machine-address", "");
  await waitFor(() => expect(backend.machine).toEqual({ on: false, address: "", model: null }));
  expect(backend.machineToken).toBeNull();
});

test("why a machine can’t be used is said where it is entered, and what is refused is not switched on", async () => {
  const failure: Failure = { code: "server_refused", file: null, message: "A valid token is needed.", remedy: null };
  backend.machineModels = failure;
  render(SettingsPage, { steno });
  await enter("machine-address", "https://studio");
  await fireEvent.click(await found("machine-test"));
  await waitFor(() => expect(screen.getByTestId("machine-failure").textContent).toContain(t.errors.server_refused));
  expect(screen.getByTestId("machine-failure").textContent).toContain(t.told.remedies.server_refused);
  expect(screen.queryByTestId("machine-open")).toBeNull();
  backend.machineRefused = { ...failure, code: "network_off" };
  const on = (await found("machine-on")) as HTMLInputElement;
  await fireEvent.click(on);
  await waitFor(() => expect(screen.getByTestId("machine-failure").textContent).toContain(t.errors.network_off));
  expect(on.checked).toBe(false);
});

test("every recording says where it is, and what it waits for", async () => {
  const job = (change: Partial<Job>): Job => ({ ...recording(1, "/home/me/a.wav", false), ...change });
  const there = (change: Partial<NonNullable<Job["elsewhere"]>>) => ({ place: "studio:8642", sent: null, waiting: null, ...change });
  await waitFor(() => expect(steno.setup).not.toBeNull());
  expect(placeOf(job({}), steno.setup)).toBeNull();
  await backend.changeMachine({ on: true, address: "http://studio:8642", model: null }, null);
  await waitFor(() => expect(steno.setup?.machine.place).toBe("studio:8642"));
  expect(placeOf(job({}), steno.setup)).toBe("studio:8642");
  expect(placeOf(job({ sample: true }), steno.setup)).toBe(t.machine.here);
  expect(placeOf(job({ state: "running" }), steno.setup)).toBe(t.machine.here);
  expect(placeOf(job({ state: "finished", elsewhere: there({ place: "attic:1" }) }), steno.setup)).toBe("attic:1");
  const running = (elsewhere: Job["elsewhere"]) => stateOf(job({ state: "running", elsewhere }));
  expect(running(there({ sent: 0.256 }))).toBe(t.machine.sending(25));
  const waiting: Failure = { code: "server_busy", file: null, message: "", remedy: null };
  expect(running(there({ waiting }))).toBe(t.machine.waiting("studio:8642"));
  expect(running(there({}))).toBe(t.state(job({ state: "running" })));
});
