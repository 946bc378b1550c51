#!/bin/bash
# Every test: Rust, the window's pages, the real window. The engine is built first and passed by path.
. "$(dirname "$0")/lib.sh"

logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT

# logged NAME COMMAND...: keeps what it prints for the tally.
logged() {
    local log=$logs/$1
    shift
    NO_COLOR=1 "$@" 2>&1 | tee "$log"
}

# What passing tests print is left out, except why they were skipped.
rust_tests() {
    logged rust cargo test --workspace --no-fail-fast -- --show-output | awk '
        /^(successes|failures):$/ { quiet = /^successes/ }
        /^test result:/ { quiet = 0 }
        !quiet || /^skipped:/'
}

# Each file has a screen and a session of its own: what one leaves behind disturbs no other.
window_tests() {
    local file outcome=0
    for file in tests/window/*.test.mjs; do
        logged "$(basename "$file")" tests/window/with-display.sh node --test "$file" || outcome=1
    done
    return "$outcome"
}

must "Set-up" scripts/setup.sh engine window test
must "Pages" npm --prefix ui run build --silent
# With the tests, so that one choice of features serves programs and tests.
must "Build" cargo build --workspace --all-targets
export STENO_ENGINE=$root/target/debug/steno-engine
phase "Rust tests" rust_tests
phase "Types of the pages" npm --prefix ui run check --silent
phase "Tests of the pages" logged pages npm --prefix ui test --silent
phase "The pages in Chromium" logged browser npm --prefix ui run test:browser --silent
phase "The real window" window_tests

(finish) || status=$?
cat "$logs"/* | awk -f scripts/tally.awk
exit "${status:-0}"
