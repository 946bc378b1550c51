import type { EngineInfo, Fit, ModelFits, Preference } from "../generated/contract";
import { FITS, PREFERENCES } from "./fake-choices";
import { ENGINE } from "./fake-data";

const GB = 2 ** 30;

/** A machine with another graphics card than the usual pretended one, which has none. */
export interface Machine {
  engine: EngineInfo;
  fits: ModelFits;
  preferences: Preference[];
}

function cpu(fits: Partial<ModelFits>): Machine {
  const reason = fits.gpu_problem ?? null;
  return { engine: { ...ENGINE, cpu_reason: reason }, fits: { ...FITS, ...fits }, preferences: PREFERENCES };
}

/** Cards that compute, the one that is taken last; `fit`: of the installed models, in their order. */
function cuda(cards: { name: string; free: number; total: number }[], fit: Fit[], recommended: number): Machine {
  const devices = cards.map((card, number) => ({
    id: `cuda:${number}`, name: card.name, total_bytes: card.total * GB, free_bytes: card.free * GB,
  }));
  const taken = devices.at(-1);
  const device = taken && { kind: "gpu" as const, name: taken.name, free: taken.free_bytes, total: taken.total_bytes };
  const models = FITS.models.map((one, number) => ({
    ...one,
    facts: one.facts && { ...one.facts, fit: fit[number] ?? one.facts.fit, missing: fit[number] === "does_not_fit" ? one.facts.missing : 0 },
  }));
  const preferences = PREFERENCES.map((one) =>
    one.name === "device" && devices.length > 1
      ? { ...one, options: devices.map((device) => device.id), labels: devices.map((device) => `${device.id}: ${device.name}`) }
      : one,
  );
  return {
    engine: { ...ENGINE, backend: "cuda", devices: [...devices, ...ENGINE.devices], cpu_reason: null },
    fits: { ...FITS, device: device ?? null, models, recommended },
    preferences,
  };
}

/** By the name of the scene. */
export const MACHINES: Record<string, () => Machine> = {
  card_without_engine: () =>
    cpu({
      engine: "steno-engine-cuda",
      gpu_problem: "NVIDIA GeForce RTX 3060 is not used: the engine for NVIDIA cards is not installed. Get it with `steno gpu install`.",
    }),
  old_card: () =>
    cpu({ gpu_problem: "Quadro P2000 is not used: it has compute capability 6.1, and Steno needs 7.5 or newer." }),
  two_cards: () =>
    cuda(
      [
        { name: "NVIDIA GeForce RTX 3060 Ti", free: 7.6, total: 8 },
        { name: "NVIDIA GeForce RTX 3090", free: 23.6, total: 24 },
      ],
      ["comfortable", "comfortable", "comfortable", "comfortable"],
      3,
    ),
  card_in_use: () =>
    cuda([{ name: "NVIDIA GeForce RTX 3060 Ti", free: 2, total: 8 }], ["comfortable", "comfortable", "does_not_fit", "does_not_fit"], 1),
};
