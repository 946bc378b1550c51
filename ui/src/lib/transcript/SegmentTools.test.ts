import { fireEvent, screen, waitFor } from "@testing-library/svelte";
import { beforeAll, beforeEach, expect, test, vi } from "vitest";
import type { FakeBackend } from "../backend/fake";
import type { Steno } from "../steno.svelte";
import { fillIn, opened } from "../testing";
import { t } from "../text";
import { timecode } from "../ui/timecode";

// jsdom has no canvas: the chart is looked at in a real browser.
vi.mock("uplot", () => ({ default: class {} }));

let steno: Steno;

beforeAll(fillIn);

beforeEach(async () => {
  steno = await opened();
  const row = (await screen.findAllByTestId("segment"))[2];
  await fireEvent.dblClick(row?.querySelector(".words") ?? document.body);
  await click("times");
});

const click = async (id: string) => fireEvent.click(await screen.findByTestId(id));
const field = (id: string) => screen.getByTestId<HTMLInputElement>(id);
const type = (id: string, value: string) => fireEvent.input(field(id), { target: { value } });
const shown = () => [field("start").value, field("end").value];
const times = () => [steno.text?.at(2)?.start ?? -1, steno.text?.at(2)?.end ?? -1];
const follows = () => waitFor(() => expect(shown()).toEqual(times().map(timecode)));

test("the sound of a segment is saved, or that of a longer passage", async () => {
  const { sounds } = steno.backend as FakeBackend;
  const [from, to] = times() as [number, number];
  await click("sound");
  await type("sound-end", timecode(from));
  expect(field("sound-end").validationMessage).toBe(t.editing.endFirst);
  await fireEvent.submit(field("sound-end").form ?? document.body);
  expect(sounds).toEqual([]);
  await type("sound-end", timecode(to));
  await click("save-sound");
  await waitFor(() => expect(sounds).toEqual([[steno.selected, { start: from, end: to }]]));
  const end = steno.text?.at(4)?.end ?? -1;
  await type("sound-start", "0");
  await type("sound-end", timecode(end));
  await click("save-sound");
  await waitFor(() => expect(sounds[1]).toEqual([steno.selected, { start: 0, end }]));
});

test("times are set to the millisecond, with a comma or a point", async () => {
  await follows();
  const [from, to] = times() as [number, number];
  const wanted = [Math.round(1000 * from + 111) / 1000, Math.round(1000 * to - 222) / 1000] as const;
  await type("start", timecode(wanted[0]).replace(".", ","));
  await type("end", String(wanted[1]));
  await click("retime");
  await waitFor(() => expect(times()).toEqual(wanted));
  await follows();
  await click("retime");
  expect(field("start").validity.valid, "what it shows it takes").toBe(true);
});

test("what its neighbours leave no room for is said at the field, and nothing is moved", async () => {
  await follows();
  const [from, to] = times() as [number, number];
  const [before, after] = [steno.text?.at(1), steno.text?.at(3)];
  const first = Math.min(before?.end ?? 0, from);
  const last = Math.max(after?.start ?? 0, to);
  const edit = vi.spyOn(steno.backend, "edit");
  for (const [start, end, wrong, why] of [
    [from, from, "end", t.editing.endFirst],
    [to, from, "end", t.editing.endFirst],
    [first - 0.001, to, "start", t.editing.tooEarly(timecode(first))],
    [from, last + 0.001, "end", t.editing.tooLate(timecode(last))],
  ] as const) {
    await type("start", timecode(start));
    await type("end", timecode(end));
    expect(field(wrong).validationMessage).toBe(why);
    await fireEvent.submit(field("end").form ?? document.body);
  }
  expect(edit).not.toHaveBeenCalled();
  expect(times()).toEqual([from, to]);
});

test("the fields follow when the segment is joined with another one and when that is undone", async () => {
  await follows();
  const before = times();
  await click("merge");
  await waitFor(() => expect(times()).not.toEqual(before));
  await follows();
  await click("undo");
  await waitFor(() => expect(times()).toEqual(before));
  await follows();
});

test("what is being typed stays while the text changes", async () => {
  await type("start", "0:");
  await fireEvent.input(screen.getByTestId("segment-text"), { target: { value: "Another text." } });
  await waitFor(() => expect(steno.text?.at(2)?.text).toBe("Another text."));
  expect(field("start").value).toBe("0:");
});

test("a time that did not fit is shown as it became", async () => {
  const before = times();
  const edit = vi.spyOn(steno.backend, "edit").mockResolvedValue({ revision: 0, segment: 2 });
  await type("start", timecode((before[0] ?? 0) + 0.1));
  await click("retime");
  await waitFor(() => expect(edit).toHaveBeenCalledOnce());
  await waitFor(() => expect(shown()).toEqual(before.map(timecode)));
});

test.each(["", "soon", "-1", "1:60"])("%j is no time: it is said so and not sent", async (text) => {
  const edit = vi.spyOn(steno.backend, "edit");
  await type("end", text);
  expect(field("end").validationMessage).toBe(t.editing.noTime);
  await click("retime");
  await fireEvent.submit(field("end").form ?? document.body);
  expect(edit).not.toHaveBeenCalled();
  await type("end", timecode((times()[1] ?? 0) - 0.1));
  expect(field("end").validationMessage).toBe("");
});
