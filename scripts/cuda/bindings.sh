# Sourced: where the CUDA engine's dependencies are, and what cudarc declares of NVIDIA's libraries.
# shellcheck shell=bash

# manifest CRATE: the Cargo.toml of a dependency of the CUDA engine.
manifest() {
    local found
    found=$(cargo metadata --locked --format-version 1 --filter-platform x86_64-unknown-linux-gnu \
        --features steno-engine/cuda | grep -o "\"[^\"]*/$1-[0-9][^\"/]*/Cargo.toml\"" | head -n 1 | tr -d '"')
    [ -n "$found" ] || fail "cargo knows no $1; is the feature cuda still there?"
    printf '%s\n' "$found"
}

cudarc=$(manifest cudarc)

# functions MODULE: the names of a library's functions.
functions() {
    sed -n 's/.*pub unsafe fn \([A-Za-z_0-9]*\).*/\1/p' "$(dirname "$cudarc")/src/$1/sys/mod.rs" |
        grep -vxE 'is_culib_present|culib|load' | sort -u
}
