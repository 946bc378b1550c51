# Sourced: what cudarc declares of NVIDIA's libraries.
# shellcheck shell=bash

cudarc=$(cargo metadata --locked --format-version 1 --filter-platform x86_64-unknown-linux-gnu \
    --features steno-engine/cuda | grep -o '"[^"]*/cudarc-[^"/]*/Cargo.toml"' | head -n 1 | tr -d '"')
[ -n "$cudarc" ] || fail "cargo knows no cudarc; is the feature cuda still there?"

# functions MODULE: the names of a library's functions.
functions() {
    sed -n 's/.*pub unsafe fn \([A-Za-z_0-9]*\).*/\1/p' "$(dirname "$cudarc")/src/$1/sys/mod.rs" |
        grep -vxE 'is_culib_present|culib|load' | sort -u
}
