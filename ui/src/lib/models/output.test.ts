import { screen } from "@testing-library/svelte";
import { beforeAll, expect, test, vi } from "vitest";
import { FakeBackend } from "../backend/fake";
import { fillIn, opened } from "../testing";

vi.mock("uplot", () => ({ default: class { setData() {} setSize() {} destroy() {} } }));

beforeAll(fillIn);

test("what is saved as soon as it is finished is in formats that need no chapters", async () => {
  const backend = new FakeBackend(1);
  backend.settings = { ...backend.settings, when_finished: { ...backend.exporting, formats: ["srt"] } };
  await opened(backend);
  expect((await screen.findByTestId<HTMLInputElement>("all-finished-srt")).checked).toBe(true);
  for (const format of ["chapters", "chapters-vtt"]) expect(screen.queryByTestId(`all-finished-${format}`)).toBeNull();
});
