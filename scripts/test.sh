#!/bin/bash
# Runs every test: Rust, the CUDA engine on an emulated card, the window's pages, the real window. Prints the
# slowest and the skipped tests, and fails where a skipped test is not in scripts/skips-allowed.txt.
. "$(dirname "$0")/lib.sh"

results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT
# Stated, because the report derives each test's time from it.
export RUST_TEST_THREADS=${RUST_TEST_THREADS:-$(nproc)} NO_COLOR=1 CARGO_TERM_COLOR=never

rust_tests() (
    # One thread for each test and more tests than cores, since many wait for processes and servers. With a thread per
    # core in each, threads only wait for each other. What depends on the number of threads sets it.
    export RAYON_NUM_THREADS=1 RUST_TEST_THREADS=$((RUST_TEST_THREADS + 1))
    local outcome=0
    python3 scripts/test-report.py workspace "$results" || outcome=1
    cargo test --workspace --doc --no-fail-fast -- --show-output 2>&1 |
        python3 scripts/test-report.py cargo "$results" || outcome=1
    return $outcome
)

has_emulated_card() { [ "$(uname -sm)" = "Linux x86_64" ]; }

emulated_tests() {
    scripts/cuda/mock/test.sh --show-output 2>&1 | python3 scripts/test-report.py cargo "$results"
}

# Those of the emulated card compute on one thread, beside tests that wait.
all_rust_tests() {
    local outcome=0 emulated=
    if has_emulated_card; then
        emulated_tests >"$results/emulated.out" 2>&1 &
        emulated=$!
    fi
    rust_tests || outcome=1
    if [ -n "$emulated" ]; then
        wait "$emulated" || outcome=1
        cat "$results/emulated.out"
    fi
    return $outcome
}

page_tests() {
    npm --prefix ui test --silent -- --reporter=default --reporter=json --outputFile.json="$results/vitest.json"
}

browser_tests() {
    (cd ui && node --test --test-reporter=spec --test-reporter-destination=stdout \
        --test-reporter=tap "--test-reporter-destination=$results/browser.tap" browser/*.test.mjs)
}

window_tests() {
    # The longest first, so that none of them is left to run alone.
    local longest=(tests/window/{speakers,queue,lifetime}.test.mjs) others
    mapfile -t others < <(printf '%s\n' tests/window/*.test.mjs | grep -vxF "$(printf '%s\n' "${longest[@]}")")
    RAYON_NUM_THREADS=1 tests/window/test-files.sh "$results" "${longest[@]}" "${others[@]}"
}

all_page_tests() {
    local outcome=0
    page_tests || outcome=1
    browser_tests || outcome=1
    return $outcome
}

# Chromium waits for half of its time.
interface_tests() {
    local outcome=0 pages
    all_page_tests >"$results/pages.out" 2>&1 &
    pages=$!
    window_tests || outcome=1
    wait "$pages" || outcome=1
    cat "$results/pages.out"
    return $outcome
}

must "Set-up" scripts/setup.sh engine window test
must "Pages" npm --prefix ui run build --silent
# All targets in one build, so that the programs and the tests share one set of features.
must "Build" cargo build --workspace --all-targets
export STENO_ENGINE=$root/target/debug/steno-engine
if has_emulated_card; then
    must "The emulated graphics card" scripts/cuda/mock/build.sh
fi
phase "Rust tests, those of the emulated graphics card too" all_rust_tests
phase "The pages, in Chromium too, and the real window" interface_tests
phase "Skipped tests" python3 scripts/test-report.py summary "$results" scripts/skips-allowed.txt
finish
