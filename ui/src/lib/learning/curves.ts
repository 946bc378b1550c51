import type { LearningRun } from "../generated/contract";

type Curves = [steps: number[], losses: (number | null)[], heldBack: (number | null)[]];

/** By steps from 0: the loss of each step, and that of what was held back, before the first round and after each. */
export function curves({ losses, held_back }: Pick<LearningRun, "losses" | "held_back">): Curves {
  const [ofSteps, ofRounds] = [new Map(losses), new Map(held_back)];
  const last = Math.max(...ofSteps.keys(), ...ofRounds.keys(), 0);
  const steps = Array.from({ length: last + 1 }, (_, step) => step);
  return [steps, steps.map((step) => ofSteps.get(step) ?? null), steps.map((step) => ofRounds.get(step) ?? null)];
}
