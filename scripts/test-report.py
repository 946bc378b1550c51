"""Collects the results of every test of one run: counts, skipped tests, slowest tests.

usage: cargo test ... 2>&1 | python3 scripts/test-report.py cargo FOLDER
       python3 scripts/test-report.py summary FOLDER ALLOWED

`cargo` passes the output of `cargo test -- --show-output` on, without what passing tests print, and
writes its results to FOLDER. `summary` adds the TAP files of `node --test` and the JSON files of vitest in
FOLDER, prints the counts, the slowest tests and the skipped tests, and ends with status 1 where a skipped
test matches no line of ALLOWED (scripts/skips-allowed.txt).
"""

import fnmatch
import json
import os
import re
import sys
import time
from pathlib import Path

SLOWEST = 20


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


def cargo(folder):
    reader = CargoReader(int(os.environ["RUST_TEST_THREADS"]))
    for line in sys.stdin.buffer:
        text = line.decode(errors="replace").rstrip("\r\n")
        if reader.read(text, time.monotonic()):
            print(text, flush=True)
    number = len(list(folder.glob("*.results")))
    (folder / f"cargo-{number}.results").write_text(json.dumps(reader.results.tests))


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
        case ["summary", folder, allowed]:
            summary(Path(folder), Path(allowed))
        case _:
            sys.exit(__doc__)
