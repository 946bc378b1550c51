#!/bin/bash
# Builds target/debug/steno-engine-cuda for this machine's GPU, or for CUDA_COMPUTE_CAP. The window and the
# command line find it beside themselves; the file beside it has the library path that only the engine gets.
#   --if-driver   does nothing and exits with status 1 if there is no NVIDIA driver
# On failure it prints the reason in one sentence and exits with status 1; Steno then uses the CPU.
. "$(dirname "$0")/../lib.sh"

# CUDA 13.0 in the driver's own notation.
driver_least=13000

driver_present() {
    { /sbin/ldconfig -p 2>/dev/null || true; } | grep -q 'libcuda\.so\.1 ' && return
    local folder folders=${LD_LIBRARY_PATH:-}
    for folder in ${folders//:/ } /usr/lib/wsl/lib; do
        [ ! -e "$folder/libcuda.so.1" ] || return 0
    done
    return 1
}

cpu_serves() { fail "the CUDA engine was not built, so the CPU is used: $*"; }

if [ "${1:-}" = --if-driver ]; then
    driver_present || exit 1
fi

# attempt COMMAND...: if it fails, its last line becomes the reason.
attempt() {
    local messages
    { messages=$("$@" 2>&1 >&3); } 3>&1 || {
        messages=${messages##*$'\n'}
        cpu_serves "${messages#steno: }"
    }
}

attempt scripts/setup.sh engine cuda
if [ -z "${CUDA_COMPUTE_CAP:-}" ]; then
    found=$(python3 scripts/cuda/probe.py 2>&1) || cpu_serves "$found"
    read -r CUDA_COMPUTE_CAP driver <<<"$found"
    [ "$driver" -ge "$driver_least" ] ||
        cpu_serves "The NVIDIA driver serves CUDA $((driver / 1000)).$((driver % 1000 / 10)); 13.0 or newer is needed."
fi
attempt scripts/cuda/toolkit.sh

say "building the CUDA engine for compute capability $CUDA_COMPUTE_CAP (the first time takes 10 minutes and more)"
export CUDA_COMPUTE_CAP CUDA_HOME=$root/cuda/home CUDA_PATH=$root/cuda/home CUDA_ROOT=$root/cuda/home
export NVCC=$CUDA_HOME/bin/nvcc PATH=$CUDA_HOME/bin:$PATH LIBRARY_PATH=$root/cuda/link
# Without it the GPU code is four times as large.
export NVCC_APPEND_FLAGS=--compress-mode=size
CUDAFORGE_THREADS=$(nproc) CARGO_TARGET_DIR=target-cuda cargo build --locked -p steno-engine --features cuda --bin steno-engine-cuda ||
    cpu_serves "The compiler failed (its messages are above)."

# Moved there in one step, so that it is never half-written.
mkdir -p target/debug
cp target-cuda/debug/steno-engine-cuda target/debug/steno-engine-cuda.partial
mv target/debug/steno-engine-cuda.partial target/debug/steno-engine-cuda
printf '%s\n' '# Written by scripts/cuda/build.sh.' 'LD_LIBRARY_PATH=../../cuda/home/lib' >target/debug/steno-engine-cuda.env
