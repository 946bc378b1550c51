"""Collects the results of every test of one run: counts, skipped tests, slowest tests.

usage: cargo test ... 2>&1 | python3 scripts/test-report.py cargo FOLDER
       python3 scripts/test-report.py workspace FOLDER
       python3 scripts/test-report.py summary FOLDER ALLOWED

`cargo` passes the output of `cargo test -- --show-output` on, without what passing tests print, and
writes its results to FOLDER. `workspace` does the same for all tests of the workspace but those in documentation:
`cargo test` runs one program after the other, here two run at a time, but for those that measure memory. `summary`
adds the TAP files of `node --test` and the JSON files of vitest in FOLDER, prints the counts, the slowest tests and
the skipped tests, and ends with status 1 where a skipped test matches no line of ALLOWED (scripts/skips-allowed.txt).
"""

import fnmatch
import json
import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

SLOWEST = 20
# Programs of tests that run at a time, and those that take longest, which begin first.
AT_A_TIME = 2
LONGEST = ["steno::it", "steno_engine::mock_gpu", "pipeline::it", "audio::it", "app::it"]
# They sample memory while they compute, and miss its peaks where they wait for a processor: those that compute on one
# thread run beside one another, the others alone.
ON_ONE_THREAD = ["pipeline::long_speakers", "memory::host", "models::damage", "models::precisions", "player::damage"]
ALONE = ["pipeline::footprint", "steno_engine::memory"]


class Results:
    """`tests`: name, outcome (passed, failed, skipped), seconds (None where unknown), reasons for skipping."""

    def __init__(self):
        self.tests = []

    def add(self, name, outcome, seconds=None, reasons=()):
        self.tests.append({"name": name, "outcome": outcome, "seconds": seconds, "reasons": list(reasons)})


class CargoReader:
    """Reads what cargo and libtest print, in the order in which they print it.

    libtest starts tests in the order of their names, as many at once as it has threads, and prints a line
    when one ends. So test number i starts when i - threads tests have ended, which gives each test's time
    without an unstable option.
    """

    RUNNING = re.compile(r"^ +Running (unittests )?\S+ \((?:.*[/\\])?(\S+?)-[0-9a-f]{16}(?:\.exe)?\)$")
    DOC_TESTS = re.compile(r"^ +Doc-tests (\S+)$")
    ENDED = re.compile(r"^test (.+?)(?: - should panic)? \.\.\. (ok|FAILED|ignored)(?:, (.*))?$")
    OUTPUT = re.compile(r"^---- (.+) stdout ----$")
    OUTCOMES = {"ok": "passed", "FAILED": "failed", "ignored": "skipped"}

    def __init__(self, threads):
        self.threads = threads
        self.results = Results()
        self.package = self.prefix = "?"
        self.is_doc_test = False
        self.reset(0.0)

    def reset(self, now):
        self.started = now
        self.ended = {}  # name: (outcome, time, reason)
        self.reasons = {}  # name: what the test said of being skipped
        self.section = None
        self.quiet = False

    def read(self, line, now):
        """Whether the line is to be shown."""
        if match := self.RUNNING.match(line):
            # Cargo runs a package's own unit tests before its integration tests.
            if match[1]:
                self.package = self.prefix = match[2]
            else:
                self.prefix = f"{self.package}::{match[2]}"
            self.is_doc_test = False
        elif match := self.DOC_TESTS.match(line):
            self.prefix, self.is_doc_test = f"{match[1]} (documentation)", True
        elif re.match(r"^running \d+ tests?$", line):
            self.reset(now)
        elif line == "successes:":
            self.quiet = True
        elif line == "failures:":
            self.quiet = False
        elif line.startswith("test result:"):
            self.quiet = False
            self.finish(line)
        elif self.quiet:
            self.read_output(line)
        elif match := self.ENDED.match(line):
            self.ended[match[1]] = (self.OUTCOMES[match[2]], now, match[3] or "no reason given")
        return not self.quiet

    def read_output(self, line):
        if match := self.OUTPUT.match(line):
            self.section = match[1]
        elif line.startswith("skipped: ") and self.section:
            self.reasons.setdefault(self.section, []).append(line.removeprefix("skipped: "))

    def finish(self, line):
        ends = sorted(end for _, end, _ in self.ended.values())
        for index, name in enumerate(sorted(self.ended)):
            outcome, end, reason = self.ended[name]
            start = self.started if index < self.threads else ends[index - self.threads]
            reasons = [reason] if outcome == "skipped" else self.reasons.pop(name, [])
            seconds = None if self.is_doc_test else max(0.0, end - start)
            self.results.add(f"{self.prefix}::{name}", "skipped" if reasons else outcome, seconds, reasons)
        # A test's line can be lost where a child process wrote into it: its count and a skip must not be.
        for name, reasons in self.reasons.items():
            self.ended[name] = ("passed", None, None)
            self.results.add(f"{self.prefix}::{name}", "skipped", None, reasons)
        counts = {what: int(number) for number, what in re.findall(r"(\d+) (passed|failed|ignored)", line)}
        read = [outcome for outcome, _, _ in self.ended.values()]
        for what, outcome in (("passed", "passed"), ("failed", "failed"), ("ignored", "skipped")):
            for number in range(counts.get(what, 0) - read.count(outcome)):
                reasons = ["its line could not be read"] if outcome == "skipped" else []
                self.results.add(f"{self.prefix}::? ({number + 1})", outcome, None, reasons)


def write(folder, tests):
    (folder / f"cargo-{os.getpid()}.results").write_text(json.dumps(tests))


def cargo(folder):
    reader = CargoReader(int(os.environ["RUST_TEST_THREADS"]))
    for line in sys.stdin.buffer:
        text = line.decode(errors="replace").rstrip("\r\n")
        if reader.read(text, time.monotonic()):
            print(text, flush=True)
    write(folder, reader.results.tests)


def test_programs():
    """(name, executable, folder of its package) of every program of tests, built where it was not."""
    command = ["cargo", "test", "--workspace", "--no-run", "--message-format=json-render-diagnostics"]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    built = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    built = [it for it in built if it.get("executable") and it["profile"]["test"]]
    names = {}
    # As cargo calls them: integration tests by the package's program, else by its library.
    for kinds in ({"lib", "rlib", "cdylib", "staticlib"}, {"bin"}):
        for it in built:
            if kinds & set(it["target"]["kind"]):
                names[it["manifest_path"]] = it["target"]["name"].replace("-", "_")
    for it in built:
        target = it["target"]["name"].replace("-", "_")
        package = names.get(it["manifest_path"], target)
        is_unit = "test" not in it["target"]["kind"]
        yield target if is_unit else f"{package}::{target}", it["executable"], Path(it["manifest_path"]).parent


def workspace(folder):
    threads = int(os.environ["RUST_TEST_THREADS"])

    def run(name, executable, package):
        reader, shown = CargoReader(threads), [f"\n     Running {name} ({executable})"]
        reader.prefix = name
        environment = {**os.environ, "CARGO_MANIFEST_DIR": str(package)}
        with subprocess.Popen(
            [executable, "--show-output"], cwd=package, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        ) as process:
            for line in process.stdout:
                text = line.decode(errors="replace").rstrip("\r\n")
                if reader.read(text, time.monotonic()):
                    shown.append(text)
        return name, process.returncode, reader.results.tests, shown

    order = {name: number for number, name in enumerate(LONGEST)}
    programs = sorted(test_programs(), key=lambda program: order.get(program[0], len(order)))
    on_one_thread = [program for program in programs if program[0] in ON_ONE_THREAD]
    alone = [program for program in programs if program[0] in ALONE]
    others = [program for program in programs if program not in on_one_thread + alone]
    failed, tests = [], []
    for at_a_time, group in ((AT_A_TIME, others), (AT_A_TIME, on_one_thread), (1, alone)):
        with ThreadPoolExecutor(at_a_time) as pool:
            for done in as_completed([pool.submit(run, *program) for program in group]):
                name, status, found, shown = done.result()
                print(*shown, sep="\n", flush=True)
                tests += found
                if status != 0:
                    failed.append(name)
    write(folder, tests)
    if failed:
        sys.exit(f"steno: tests failed in {', '.join(failed)}")


def read_tap(file, results):
    """TAP as node writes it: a test's line, its duration below, its suites' lines after those of their tests."""
    line = re.compile(r"^( *)(not )?ok \d+ - (.*?)(?: # (SKIP|TODO)(?: (.*))?)?$")
    suite, pending = [], []  # results at the depth of each line, until their suite's line names them
    for text in file.read_text().splitlines():
        if match := line.match(text):
            depth = len(match[1]) // 4
            name = match[3].replace("\\#", "#").replace("\\\\", "\\")
            skipped = match[4] == "SKIP"
            reason = (match[5] or "no reason given").removeprefix("skipped: ")
            test = {
                "name": name, "outcome": "skipped" if skipped else "failed" if match[2] and match[4] != "TODO" else "passed",
                "seconds": None, "reasons": [reason] if skipped else [], "depth": depth,
            }
            suite = test
            # What is deeper belongs to this one.
            inner = []
            while pending and pending[-1]["depth"] > depth:
                inner.insert(0, pending.pop())
            for one in inner:
                one["name"], one["depth"] = f"{name} > {one['name']}", depth
            pending += inner + [test]
        elif suite and (match := re.match(r"^ *duration_ms: ([0-9.]+)$", text)):
            suite["seconds"] = float(match[1]) / 1000
        elif suite and re.match(r"^ *type: 'suite'$", text):
            suite["is_suite"] = True
    for test in pending:
        if not test.get("is_suite") or test["reasons"]:
            results.add(f"{file.stem}: {test['name']}", test["outcome"], test["seconds"], test["reasons"])


def read_vitest(file, results):
    outcomes = {"passed": "passed", "failed": "failed"}
    for one in json.loads(file.read_text())["testResults"]:
        for test in one["assertionResults"]:
            outcome = outcomes.get(test["status"], "skipped")
            seconds = (test.get("duration") or 0) / 1000
            reasons = ["no reason given"] if outcome == "skipped" else []
            results.add(f"{Path(one['name']).name}: {test['fullName']}", outcome, seconds, reasons)


def allowed_patterns(file):
    """Pairs of patterns, for a test's name and for its reason."""
    lines = [line.strip() for line in file.read_text().splitlines()]
    return [tuple(part.strip() for part in line.split(" | ")) for line in lines if line and not line.startswith("#")]


def summary(folder, allowed):
    results = Results()
    for file in sorted(folder.iterdir()):
        if file.suffix == ".results":
            results.tests += json.loads(file.read_text())
        elif file.suffix == ".tap":
            read_tap(file, results)
        elif file.suffix == ".json":
            read_vitest(file, results)

    print(f"\nThe slowest {SLOWEST} tests:")
    timed = [test for test in results.tests if test["seconds"] is not None and test["outcome"] != "skipped"]
    for test in sorted(timed, key=lambda test: -test["seconds"])[:SLOWEST]:
        print(f"{test['seconds']:7.1f} s  {test['name']}")

    patterns = allowed_patterns(allowed)
    skips = {True: [], False: []}
    for test in results.tests:
        for reason in dict.fromkeys(test["reasons"]):
            is_allowed = any(
                fnmatch.fnmatchcase(test["name"], name) and fnmatch.fnmatchcase(reason, why) for name, why in patterns
            )
            skips[is_allowed].append(f"  {test['name']}: {reason}")
    for is_allowed, title in ((True, f"Skipped, as {allowed} allows"), (False, f"Skipped, and not allowed by {allowed}")):
        if skips[is_allowed]:
            print(f"\n{title}:", *skips[is_allowed], sep="\n")

    count = lambda outcome: sum(test["outcome"] == outcome for test in results.tests)
    print(f"\n{count('passed')} passed, {count('failed')} failed, {count('skipped')} skipped")
    if skips[False]:
        sys.exit("steno: tests were skipped that must run; install what they lack (scripts/setup.sh test)")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["cargo", folder]:
            cargo(Path(folder))
        case ["workspace", folder]:
            workspace(Path(folder))
        case ["summary", folder, allowed]:
            summary(Path(folder), Path(allowed))
        case _:
            sys.exit(__doc__)
