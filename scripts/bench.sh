#!/bin/bash
# Speed and memory of models with random weights and true dimensions, in 32 bits, in 16 and in 8. Arguments: sizes, else
# tiny, base and small. Fails where an encoder reaches a smaller share of the machine's matrix peak, measured in the same
# run, than it did when it was recorded. docs/measurements.md has the results.
. "$(dirname "$0")/lib.sh"

[ $# -gt 0 ] || set -- tiny base small
scripts/setup.sh
cargo build --quiet --workspace --bin random-models --example bench

say "$(nproc) threads, $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)"
printf '%s\n' \
    '| model | precision | encoder ms | GFLOP/s | share of the matrix peak | greedy ms per token after 10 | after 200 | ratio | 5 beams ms per step | times real time, greedy | 5 beams | peak MB |' \
    '|-|-|-|-|-|-|-|-|-|-|-|-|'
# recorded SIZE PRECISION: the least share of the peak in 32 bits that is no step back, in percent: three quarters of
# the least that an idle machine reached in several runs. In 8 bits more is
# reached with VNNI, in 16 with AVX-512 BF16.
recorded() {
    case $1-$2 in
    tiny-f32) echo 60 ;;
    base-f32) echo 62 ;;
    *-f32) echo 63 ;;
    tiny-bf16) $bf16 && echo 85 || echo 60 ;;
    base-bf16) $bf16 && echo 86 || echo 60 ;;
    *-bf16) $bf16 && echo 102 || echo 60 ;;
    tiny-q8_0) $vnni && echo 98 || echo 60 ;;
    base-q8_0) $vnni && echo 109 || echo 64 ;;
    *-q8_0) $vnni && echo 138 || echo 60 ;;
    esac
}
vnni=false
grep -qE '^flags.* avx(512)?_vnni( |$)' /proc/cpuinfo && vnni=true
bf16=false
grep -qE '^flags.* avx512_bf16( |$)' /proc/cpuinfo && bf16=true
slower=0
for size in "$@"; do
    target/debug/random-models "$size" "target/models/$size" >/dev/null
    for precision in f32 bf16 q8_0; do
        target/debug/examples/bench "target/models/$size" --precision "$precision" \
            --at-least "$(recorded "$size" "$precision")" || slower=1
    done
done
say "Times real time: 30 s of speech with 110 tokens, without decoding the file and without its log-mel."
[ "$slower" = 0 ] || fail "An encoder became slower. Is the machine idle?"
