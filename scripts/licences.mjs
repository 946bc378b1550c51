// Checks that the licence of every dependency of the programs allows distribution under
// MIT OR Apache-2.0. `node scripts/licences.mjs [--list]`, or
// with --notices everything that a package of the programs has to carry.
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";

const accepted = new Set([
  "0BSD",
  "Apache-2.0",
  "BSD-1-Clause",
  "BSD-2-Clause",
  "BSD-3-Clause",
  "ISC",
  "MIT",
  "MIT-0",
  "MPL-2.0",
  "Zlib",
  // Character tables; as free as those.
  "Unicode-3.0",
]);

/** Every choice of licences that an SPDX expression leaves, as lists of those that apply together. */
function choices(expression) {
  const tokens = expression.replaceAll("/", " OR ").match(/[()]|[^\s()]+/g) ?? [];
  let at = 0;
  const term = () => {
    if (tokens[at] === "(") {
      at++;
      const inside = any();
      at++;
      return inside;
    }
    let name = tokens[at++];
    if (tokens[at] === "WITH") name += ` WITH ${tokens[(at += 2) - 1]}`;
    return [[name]];
  };
  const all = () => {
    let left = term();
    while (tokens[at] === "AND") {
      at++;
      const right = term();
      left = left.flatMap((a) => right.map((b) => [...a, ...b]));
    }
    return left;
  };
  const any = () => {
    const left = all();
    while (tokens[at] === "OR") {
      at++;
      left.push(...all());
    }
    return left;
  };
  return any();
}

/** Rust packages that end up in a program: not what only builds or tests it. */
function rustPackages() {
  const metadata = JSON.parse(
    execFileSync(
      "cargo",
      ["metadata", "--locked", "--format-version", "1", "--filter-platform", "x86_64-unknown-linux-gnu", "--features", "steno-engine/cuda"],
      { maxBuffer: 1 << 28 },
    ),
  );
  const nodes = new Map(metadata.resolve.nodes.map((node) => [node.id, node]));
  const ours = new Set(metadata.workspace_members);
  const seen = new Set();
  const visit = (id) => {
    if (seen.has(id)) return;
    seen.add(id);
    for (const dependency of nodes.get(id).deps) {
      if (dependency.dep_kinds.some(({ kind }) => kind === null)) visit(dependency.pkg);
    }
  };
  ours.forEach(visit);
  return metadata.packages
    .filter(({ id }) => seen.has(id) && !ours.has(id))
    .map(({ name, version, license, license_file, manifest_path }) => ({
      name: `${name} ${version}`,
      folder: dirname(manifest_path),
      licence: license ?? (license_file ? `file ${license_file}` : "none"),
    }));
}

/** Node packages that end up in the window's pages. */
function nodePackages(lock) {
  if (!existsSync(lock)) return [];
  return Object.entries(JSON.parse(readFileSync(lock, "utf8")).packages)
    .filter(([path, { dev }]) => path && !dev)
    .map(([path, { version, license }]) => ({
      name: `${path.replace(/^.*node_modules\//, "")} ${version}`,
      folder: join(dirname(lock), path),
      licence: license ?? "none",
    }));
}

/** The licence and notice texts that a package requires to be distributed with it. */
function notices({ folder }) {
  const names = readdirSync(folder).filter((name) => /^(licen[cs]e|copying|notice|copyright)/i.test(name) && /^[^.]+(\.(md|txt))?$|-(mit|apache|bsd)/i.test(name));
  return names.flatMap((name) => {
    try {
      return [readFileSync(join(folder, name), "utf8").trim()];
    } catch {
      return []; // A folder of licences.
    }
  });
}

/** Prints each text once, below the names of all packages that have it. */
function printNotices(packages) {
  const texts = new Map();
  for (const one of packages) {
    for (const text of notices(one)) texts.set(text, [...(texts.get(text) ?? []), `${one.name} (${one.licence})`]);
  }
  const silent = packages.filter((one) => notices(one).length === 0).map((one) => `${one.name} (${one.licence})`);
  for (const [text, names] of texts) console.log(`${names.join("\n")}\n\n${text}\n\n${"-".repeat(72)}\n`);
  console.log(`Without a text of their own:\n${silent.join("\n")}`);
}

const packages = [...rustPackages(), ...nodePackages("ui/package-lock.json")];
const refused = packages.filter(({ licence }) => !choices(licence).some((choice) => choice.every((name) => accepted.has(name))));
// Not `exit`, which would lose output that a pipe has not taken yet.
process.exitCode = refused.length ? 1 : 0;
if (process.argv.includes("--notices")) {
  printNotices(packages);
} else {
  if (process.argv.includes("--list")) {
    for (const { name, licence } of packages) console.log(`${name}: ${licence}`);
  }
  console.log(`${packages.length} dependencies, ${refused.length} with a licence that is not accepted`);
}
for (const { name, licence } of refused) console.error(`${name}: ${licence} is not among the accepted licences`);
