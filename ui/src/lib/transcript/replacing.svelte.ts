import { untrack } from "svelte";
import { asFailure } from "../backend";
import type { Failure, Finding, Place, Segment } from "../generated/contract";
import type { Editor } from "./editor.svelte";

/** What is to be replaced in one text, while the form for it is open. The program finds it, as it replaces it. */
export class Replacing {
  open = $state(false);
  case = $state(false);
  wholeWords = $state(false);
  regularExpression = $state(false);
  everywhere = $state(false);
  withText = $state("");
  /** Where it occurs, in order. */
  places = $state.raw<Place[]>([]);
  /** The same by segment, as it was searched: one that was changed since has none until it is searched anew. */
  #bySegment: ReadonlyMap<Segment, Place[]> = $derived.by(() => {
    const map = new Map<Segment, Place[]>();
    const [pages, starts] = untrack(() => [this.editor.text.pages, this.editor.text.starts]);
    let page = 0;
    for (const place of this.places) {
      // They are in order, and there may be some ten thousand: no page is looked for.
      while ((starts[page + 1] ?? Infinity) <= place.segment) page++;
      const segment = pages[page]?.[place.segment - (starts[page] ?? 0)];
      if (!segment) continue;
      const others = map.get(segment);
      if (others) others.push(place);
      else map.set(segment, [place]);
    }
    return map;
  });
  /** Why nothing can be found. */
  problem = $state.raw<Failure | null>(null);
  #turn = 0;

  constructor(readonly editor: Editor) {}

  placesIn(segment: Segment): Place[] {
    return this.#bySegment.get(segment) ?? [];
  }

  finding(text: string): Finding {
    return { text, case: this.case, whole_words: this.wholeWords, regular_expression: this.regularExpression };
  }

  /** Looks anew; of several questions under way the last one counts. */
  async look(finding: Finding): Promise<void> {
    const mine = ++this.#turn;
    let [places, problem]: [Place[], Failure | null] = [[], null];
    try {
      if (finding.text !== "") places = await this.editor.steno.find(this.editor.text.job, finding);
    } catch (error) {
      problem = asFailure(error);
    }
    if (mine === this.#turn) [this.places, this.problem] = [places, problem];
  }

  /** Replaces at one place. The index of the place that follows, in order; null if nothing was replaced or nothing is left. */
  async one(text: string, place: Place): Promise<number | null> {
    const finding = this.finding(text);
    const behind = await this.editor.replaceOne(finding, this.withText, place);
    if (!behind) return null;
    await this.look(finding);
    const next = this.places.findIndex(({ segment, start }) => segment > behind.segment || (segment === behind.segment && start >= behind.start));
    return next >= 0 ? next : this.places.length > 0 ? 0 : null;
  }
}
