#!/bin/bash
# Speed and memory of models with random weights and true dimensions. Arguments: sizes, else tiny, base and
# small. docs/measurements.md has the results.
. "$(dirname "$0")/lib.sh"

[ $# -gt 0 ] || set -- tiny base small
scripts/setup.sh
cargo build --quiet --workspace --bin random-models --example bench

say "$(nproc) threads, $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)"
printf '%s\n' \
    '| model | precision | encoder ms | GFLOP/s | share of the matrix peak | greedy ms per token after 10 | after 200 | ratio | 5 beams ms per step | times real time, greedy | 5 beams | peak MB |' \
    '|-|-|-|-|-|-|-|-|-|-|-|-|'
for size in "$@"; do
    target/debug/random-models "$size" "target/models/$size" >/dev/null
    target/debug/examples/bench "target/models/$size"
done
say "Times real time: 30 s of speech with 110 tokens, without decoding the file and without its log-mel."
