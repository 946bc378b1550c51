#!/bin/bash
# check.sh [all|engine]: formatting, lints with warnings as errors, documentation,
# types; nothing is run. `engine` lints and documents no more than the engine, for
# CUDA: a build that follows can lint the rest (see .ci/run).
. "$(dirname "$0")/lib.sh"

documentation() { RUSTDOCFLAGS="-D warnings" cargo doc --locked --workspace --no-deps --document-private-items --quiet; }

must "Set-up" scripts/setup.sh engine window check
phase "Formatting" cargo fmt --all --check
# The window's pages must be there for it to compile.
must "Pages" npm --prefix ui run build --silent
phase "Types of the pages" npm --prefix ui run check --silent
phase "Licences of dependencies" node scripts/licences.mjs
case ${1:-all} in
all)
    phase "Lints" cargo clippy --locked --workspace --all-targets --quiet -- -D warnings
    # After the lints, whose view of the dependencies it shares.
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
