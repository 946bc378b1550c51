#!/bin/bash
# build.sh FOLDER: builds libcuda.so.1, libcublas.so.13 and libcurand.so.10 that compute nothing and count memory
# (driver.c). With FOLDER in LD_LIBRARY_PATH, the CUDA engine allocates, frees, trims and runs out of memory on
# a machine without a GPU. Its results mean nothing. Keep MOCK_CUDA_BYTES small: it is real memory.
. "$(dirname "$0")/../../lib.sh"
. scripts/cuda/bindings.sh

folder=$1
mkdir -p "$folder"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# library MODULE FILE STATUS SOURCE: what SOURCE does not define returns STATUS.
library() {
    local module=$1 file=$2 status=$3 source=$4
    gcc -O1 -fPIC -w -c "$source" -o "$work/written.o"
    nm "$work/written.o" | awk '$2 == "T" { print $3 }' | sort >"$work/written"
    functions "$module" | comm -23 - "$work/written" | sed "s/.*/int &(void) { return $status; }/" >"$work/rest.c"
    gcc -O1 -fPIC -w -shared "$work/rest.c" "$work/written.o" -lpthread -Wl,-soname,"$file" -o "$folder/$file"
}

# CUBLAS_STATUS_ALLOC_FAILED, where it is asked for.
cat >"$work/cublas.c" <<'C'
#include <stdlib.h>
int cublasCreate_v2(void **out) { *out = (void *)0x7000; return getenv("MOCK_CUBLAS_FULL") ? 3 : 0; }
C
cat >"$work/curand.c" <<'C'
int curandCreateGenerator(void **out, int kind) { *out = (void *)0x8000; return 0; }
C

# CUDA_ERROR_NOT_SUPPORTED
library driver libcuda.so.1 801 scripts/cuda/mock/driver.c
library cublas libcublas.so.13 0 "$work/cublas.c"
library curand libcurand.so.10 0 "$work/curand.c"
say "mock driver in $folder"
