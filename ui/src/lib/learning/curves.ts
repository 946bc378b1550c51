import type { LearningRun } from "../generated/contract";

type Curves = [steps: number[], losses: (number | null)[], heldBack: (number | null)[]];

/** By steps from 0: the loss of each step, and that of what was held back, before the first epoch and at the end of each. */
export function curves({ losses, held_back, steps, epochs }: Pick<LearningRun, "losses" | "held_back" | "steps" | "epochs">): Curves {
  const perEpoch = epochs > 0 ? steps / epochs : 0;
  const ends = new Map(held_back.map((loss, epoch) => [Math.round(epoch * perEpoch), loss]));
  const last = Math.max(losses.length, ...ends.keys(), 0);
  const numbers = Array.from({ length: last + 1 }, (_, step) => step);
  return [numbers, numbers.map((step) => losses[step - 1] ?? null), numbers.map((step) => ends.get(step) ?? null)];
}
