import type { Attachment } from "svelte/attachments";

/**
 * A field with the suggestions of a `datalist`. While its value is one of them they are not shown: an
 * open list takes the Enter that was meant for the value. `choose`: one was taken from the list.
 */
export function suggestions(list: string, choose?: () => void): Attachment<HTMLInputElement> {
  return (field) => {
    const input = (event: Event): void => {
      const options = [...(document.getElementById(list)?.querySelectorAll("option") ?? [])];
      const isOne = options.some(({ value }) => value === field.value);
      if (isOne) field.removeAttribute("list");
      else field.setAttribute("list", list);
      const typed = event instanceof InputEvent && event.inputType !== "insertReplacementText";
      if (isOne && !typed) choose?.();
    };
    field.setAttribute("list", list);
    field.addEventListener("input", input);
    return () => field.removeEventListener("input", input);
  };
}
