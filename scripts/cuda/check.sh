#!/bin/bash
# Lints the CUDA engine on any machine, without CUDA software. It shares what
# the other lints compiled; real CUDA builds have a target folder of their own,
# so that nothing made by the stand-in can reach one.
. "$(dirname "$0")/../lib.sh"

NVCC=$root/scripts/cuda/fake-nvcc CUDARC_CUDA_VERSION=13000 CUDA_COMPUTE_CAP=90 \
    cargo clippy --locked --workspace --all-targets --features steno-engine/cuda --quiet -- -D warnings
