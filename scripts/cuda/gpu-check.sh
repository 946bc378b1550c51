#!/bin/bash
# What only a graphics card can show, in one run of under ten minutes: the self-test, the network's numbers beside the
# CPU's in every precision, predicted and used memory, real running out of memory at each step of the ladder, what is
# left after a job, and speed, beside transformers where python3 has it. Writes the table "On a graphics card" of
# docs/measurements.md. The most useful batch is another for every model: `steno models probe` measures a user's own.
#   --emulated   runs all of it on the emulated card, with a small model, and writes nothing: so it is known to work
. "$(dirname "$0")/../lib.sh"

if [ "${1:-}" = --emulated ]; then
    scripts/cuda/mock/build.sh
    . scripts/cuda/mock/environment.sh
    export LIBRARY_PATH=$root/target/cuda-mock/link
    cargo build --quiet --locked --workspace --features steno-engine/cuda --bin steno --bin random-models \
        --example out_of_memory --example whole --test emulated
    numbers=$(cargo test --quiet --locked --workspace --features steno-engine/cuda --test emulated --no-run \
        --message-format=json 2>/dev/null | sed -n 's/.*"executable":"\([^"]*emulated-[^"]*\)".*/\1/p' | tail -n 1)
    export STENO_ENGINE=$root/target/debug/examples/emulated
    export LD_LIBRARY_PATH=$root/target/cuda-mock/driver MOCK_CUDA_BYTES=$((4 << 30))
    exec python3 scripts/cuda/gpu-check.py --emulated --numbers "$numbers" \
        --out-of-memory target/debug/examples/out_of_memory --whole target/debug/examples/whole --sizes micro
fi
scripts/setup.sh engine cuda
scripts/cuda/build.sh --check
cargo build --quiet --locked --workspace --bin steno --bin random-models
numbers=$(find target-cuda/debug/deps -name 'emulated-*' -executable -type f -printf '%T@ %p\n' | sort -n | tail -n 1 | cut -d ' ' -f 2)
export STENO_ENGINE=$root/target/debug/steno-engine-cuda LD_LIBRARY_PATH=$root/cuda/home/lib
exec python3 scripts/cuda/gpu-check.py --numbers "$numbers" \
    --out-of-memory target-cuda/debug/examples/out_of_memory --whole target-cuda/debug/examples/whole --sizes tiny base small medium large-v3-turbo
