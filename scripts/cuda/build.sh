#!/bin/bash
# Builds target/debug/steno-engine-cuda for this machine's GPUs, or for CUDA_COMPUTE_CAP. The window and the
# command line find it beside themselves; the file beside it has the library path that only the engine gets.
#   --if-driver   does nothing and exits with status 1 if there is no NVIDIA driver
#   --check       also builds what scripts/cuda/gpu-check.sh runs, in target-cuda/debug
#   --all         builds target/release/steno-engine-cuda for every card from compute capability 7.5 on, which takes
#                 three times as long; needs no GPU
# candle's build script knows one capability. For several, scripts/cuda/nvcc-for-all has the compiler make code for each.
# Arithmetic in bfloat16 is left out where 7.5 is among them: candle decides that for all of them by the lowest.
# On failure it prints the reason in one sentence and exits with status 1; Steno then uses the CPU.
. "$(dirname "$0")/../lib.sh"

# CUDA 13.0 in the driver's own notation.
driver_least=13000

# Of --all: every generation that CUDA 13 compiles for and whose cards users have; later ones by PTX.
every_capability=75,80,86,89,90,100,120+

driver_present() {
    { /sbin/ldconfig -p 2>/dev/null || true; } | grep -q 'libcuda\.so\.1 ' && return
    local folder folders=${LD_LIBRARY_PATH:-}
    for folder in ${folders//:/ } /usr/lib/wsl/lib; do
        [ ! -e "$folder/libcuda.so.1" ] || return 0
    done
    return 1
}

cpu_serves() { fail "the CUDA engine was not built, so the CPU is used: $*"; }

profile=debug check=false capabilities=${STENO_CUDA_CAPABILITIES:-${CUDA_COMPUTE_CAP:-}}
case ${1:-} in
--if-driver) driver_present || exit 1 ;;
--all) profile=release capabilities=$every_capability ;;
--check) check=true ;;
esac

# attempt COMMAND...: if it fails, its last line becomes the reason.
attempt() {
    local messages
    { messages=$("$@" 2>&1 >&3); } 3>&1 || {
        messages=${messages##*$'\n'}
        cpu_serves "${messages#steno: }"
    }
}

attempt scripts/setup.sh engine cuda
if [ -z "$capabilities" ]; then
    found=$(python3 scripts/cuda/probe.py 2>&1) || cpu_serves "$found"
    read -r capabilities driver <<<"$found"
    [ "$driver" -ge "$driver_least" ] ||
        cpu_serves "The NVIDIA driver serves CUDA $((driver / 1000)).$((driver % 1000 / 10)); 13.0 or newer is needed."
fi
attempt scripts/cuda/toolkit.sh

say "building the CUDA engine for compute capability $capabilities (the first time takes 10 minutes and more)"
export CUDA_HOME=$root/cuda/home CUDA_PATH=$root/cuda/home CUDA_ROOT=$root/cuda/home
export NVCC=$CUDA_HOME/bin/nvcc PATH=$CUDA_HOME/bin:$PATH LIBRARY_PATH=$root/cuda/link
# Without it the GPU code is four times as large.
export NVCC_APPEND_FLAGS=--compress-mode=size
# The lowest, for which candle's PTX is compiled: a driver compiles it for its own card.
export CUDA_COMPUTE_CAP=${capabilities%%[,+]*}
case $capabilities in
*[,+]*) export STENO_CUDA_CAPABILITIES=$capabilities STENO_NVCC=$NVCC NVCC=$root/scripts/cuda/nvcc-for-all ;;
*) unset STENO_CUDA_CAPABILITIES ;;
esac
cargo=(cargo build --locked -p steno-engine --features cuda --bin steno-engine-cuda)
[ "$profile" = debug ] || cargo+=(--release)
export CUDAFORGE_THREADS CARGO_TARGET_DIR=target-cuda
CUDAFORGE_THREADS=$(nproc)
# cudaforge keeps what it compiled and does not see that it was for other cards.
stamp=target-cuda/.$profile-capabilities
if [ -f "$stamp" ] && [ "$(cat "$stamp")" != "$capabilities" ]; then
    rm -rf "target-cuda/$profile/build/candle-kernels"-*
fi
mkdir -p target-cuda
printf '%s\n' "$capabilities" >"$stamp"
"${cargo[@]}" || cpu_serves "The compiler failed (its messages are above)."
if "$check"; then
    # Cargo's `test` would make a test of the examples.
    cargo build --locked -p pipeline --features cuda --example out_of_memory --example whole &&
        cargo test --locked -p pipeline --features cuda --no-run --test emulated ||
        cpu_serves "The compiler failed (its messages are above)."
fi

# Moved there in one step, so that it is never half-written.
mkdir -p "target/$profile"
cp "target-cuda/$profile/steno-engine-cuda" "target/$profile/steno-engine-cuda.partial"
mv "target/$profile/steno-engine-cuda.partial" "target/$profile/steno-engine-cuda"
printf '%s\n' '# Written by scripts/cuda/build.sh.' 'LD_LIBRARY_PATH=../../cuda/home/lib' \
    >"target/$profile/steno-engine-cuda.env"
