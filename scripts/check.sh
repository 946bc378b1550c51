#!/bin/bash
# check.sh [all|engine]: formatting, lints with warnings as errors, documentation, types.
# `engine` lints and documents the CUDA engine only: in .ci/run the build for the tests lints the rest.
. "$(dirname "$0")/lib.sh"

documentation() { RUSTDOCFLAGS="-D warnings" cargo doc --locked --workspace --no-deps --document-private-items --quiet; }

must "Set-up" scripts/setup.sh engine window check
phase "Formatting" cargo fmt --all --check
# The window compiles only if its pages are built.
must "Pages" npm --prefix ui run build --silent
phase "Types of the pages" npm --prefix ui run check --silent
phase "Licences of dependencies" node scripts/licences.mjs
case ${1:-all} in
all)
    phase "Lints" cargo clippy --locked --workspace --all-targets --quiet -- -D warnings
    # After the lints, so that it reuses what they compiled of the dependencies.
    phase "Documentation" documentation
    phase "CUDA, types only" scripts/cuda/check.sh
    ;;
engine)
    phase "CUDA, types only" scripts/cuda/check.sh
    phase "Documentation of the engine" scripts/cuda/check.sh doc
    ;;
*) fail "check.sh all|engine" ;;
esac
finish
