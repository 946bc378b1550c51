#!/bin/bash
# check.sh [doc]: lints the CUDA engine, or checks its documentation, on any machine without CUDA software.
# Real CUDA builds have a target folder of their own, so that nothing made by fake-nvcc gets into one.
. "$(dirname "$0")/../lib.sh"
. scripts/cuda/mock/environment.sh

cuda=(--locked --features steno-engine/cuda --quiet -p steno-engine -p pipeline -p models)
case ${1:-} in
doc)
    RUSTDOCFLAGS="-D warnings" cargo doc "${cuda[@]}" --no-deps --document-private-items \
        -p audio -p memory -p transcript -p wire
    ;;
*) cargo clippy "${cuda[@]}" --all-targets -- -D warnings ;;
esac
