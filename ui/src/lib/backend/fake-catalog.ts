import type { Connection, Fit, CatalogEntry, EntryFacts, ModelCatalog, InstallState, Transfer } from "../generated/contract";

const GB = 2 ** 30;
const FREE = 3.4 * GB;

function facts(fit: Fit, gigabytes: number, parameters: number, missing = 0): EntryFacts {
  return { fit, precision: "f16", peak: gigabytes * GB, free: FREE, missing: missing * GB, parameters, speed: null };
}

function entry(id: string, megabytes: number, languages: string, facts: EntryFacts | null, state: InstallState = { kind: "offered" }): CatalogEntry {
  return { id, state, bytes: megabytes * 1e6, languages, licence: "Apache-2.0", slow: (facts?.parameters ?? 0) > 500e6, facts, downloadable: true, for_search: false };
}

export const RECOMMENDED = "whisper-small";

export const CATALOG: ModelCatalog = {
  entries: [
    entry("whisper-large-v3-turbo", 1620, "99+", facts("tight", 2.9, 809e6)),
    entry("whisper-large-v2", 6170, "99+", facts("does_not_fit", 6.7, 1543e6, 3.6)),
    entry("whisper-base.en", 290, "en", null),
    { ...entry("my-own-model", 0, "", null), bytes: null, languages: null, licence: null },
  ],
  recommended: RECOMMENDED,
  offline: false,
  folder: "/home/me/.local/share/steno/models",
  free: 48e9,
};

/** The same where the recommended one is not installed. */
export const CATALOG_WITH_RECOMMENDED: ModelCatalog = {
  ...CATALOG,
  entries: [entry(RECOMMENDED, 967, "99+", { ...facts("comfortable", 1.2, 244e6), speed: 2.6 }), ...CATALOG.entries],
};

/** What an earlier start left. */
export const BEGUN: CatalogEntry[] = [
  entry("whisper-base", 290, "99+", facts("comfortable", 0.7, 74e6), { kind: "interrupted", done: 120e6, total: 290e6 }),
  entry("whisper-tiny", 151, "99+", facts("comfortable", 0.4, 39e6), { kind: "damaged", files: ["model.safetensors"] }),
];

export function transfer(id: string, more: Partial<Transfer> = {}): Transfer {
  const running = { stage: "download", file: "model.safetensors", done: 312e6, total: 967e6, speed: 6.1e6, left: 107, why: null, wait: null } as const;
  return { id, is_import: false, is_engine: id === "steno-engine-cuda", ...running, paused: false, failure: null, ...more };
}

export const BROKEN_OFF: Transfer = transfer("whisper-large-v3-turbo", {
  failure: { code: "network_failed", file: null, message: "huggingface.co can’t be reached (the connection was refused).", remedy: "Give the same command again." },
});

export const CONNECTIONS: Connection[] = [
  { at: 1_795_289_000, host: "cdn-lfs.huggingface.co", bytes: null, why: "model.safetensors of whisper-base" },
  { at: 1_795_288_990, host: "huggingface.co", bytes: 2_480_466, why: "tokenizer.json of whisper-base" },
  { at: 1_795_288_985, host: "huggingface.co", bytes: 0, why: "size and checksum of whisper-base" },
];
