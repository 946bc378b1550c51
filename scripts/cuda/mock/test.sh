#!/bin/bash
# test.sh [ARGUMENT...]: runs the tests of numbers and texts on the emulated card; arguments are those of the test
# program. Those of the engine's process, in crates/engine/tests/mock_gpu.rs, are run with all others.
. "$(dirname "$0")/../../lib.sh"

scripts/cuda/mock/build.sh
. scripts/cuda/mock/environment.sh
export LIBRARY_PATH=$root/target/cuda-mock/link LD_LIBRARY_PATH=$root/target/cuda-mock/driver
export MOCK_CUDA_BYTES=$((4 << 30))
cargo test --locked --workspace --features steno-engine/cuda --test emulated -- "$@"
