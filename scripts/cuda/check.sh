#!/bin/bash
# Lints the CUDA engine on any machine, without CUDA software. Its target
# folder is its own: what a stand-in compiled must not reach a real build.
. "$(dirname "$0")/../lib.sh"

NVCC=$root/scripts/cuda/fake-nvcc CUDARC_CUDA_VERSION=13000 CUDA_COMPUTE_CAP=90 \
    CARGO_TARGET_DIR=$root/target-cuda-check \
    cargo clippy --locked --quiet -p models -p pipeline -p steno-engine --features cuda -- -D warnings
