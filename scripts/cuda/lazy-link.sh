#!/bin/bash
# lazy-link.sh FOLDER: makes archives libcuda.a, libcublas.a and so on, to be linked instead of the libraries.
# Each of their functions opens the library at the first call and jumps there; if the library or the function
# is missing, the call returns an ordinary error. So one executable starts with and without a driver.
# x86-64, System V calling convention.
. "$(dirname "$0")/../lib.sh"
. scripts/cuda/bindings.sh

folder=$1
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The part that finds a function, in C.
resolver() {
    local library=$1 error=$2 count=$3
    shift 3
    cat <<C
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

__attribute__((visibility("hidden"))) void *${library}_entries[$count];
static const char *const names[] = {
$(sed 's/.*/    "&",/' "$work/names")
};
static const char *const files[] = { $(printf '"%s", ' "$@")NULL };

static int missing(void) { return $error; }

__attribute__((visibility("hidden"))) void *${library}_resolve(unsigned long index) {
    void *library = NULL, *function = NULL;
    for (size_t i = 0; files[i] && !library; i++) library = dlopen(files[i], RTLD_NOW | RTLD_GLOBAL);
    if (library) function = dlsym(library, names[index]);
    if (!function) return (void *)missing; /* not remembered: it may be there the next time */
    __atomic_store_n(&${library}_entries[index], function, __ATOMIC_RELEASE);
    return function;
}
C
}

# The functions themselves. A first call must leave every register that carries
# an argument as it was: they are saved around the search.
trampolines() {
    local library=$1 integers="rdi rsi rdx rcx r8 r9 rax r10" register i=0 name
    printf '.text\n'
    while read -r name; do
        printf '.globl %s\n.type %s, @function\n.p2align 4\n%s:\n' "$name" "$name" "$name"
        printf '\tmov %s_entries+%d(%%rip), %%r11\n\ttest %%r11, %%r11\n\tje 1f\n\tjmp *%%r11\n' "$library" $((8 * i))
        printf '1:\tmov $%d, %%r11d\n\tjmp %s_first_call\n.size %s, .-%s\n' "$i" "$library" "$name" "$name"
        i=$((i + 1))
    done <"$work/names"
    printf '%s_first_call:\n\tpush %%rbp\n\tmov %%rsp, %%rbp\n' "$library"
    for register in $integers; do printf '\tpush %%%s\n' "$register"; done
    printf '\tsub $128, %%rsp\n\tand $-16, %%rsp\n'
    for i in 0 1 2 3 4 5 6 7; do printf '\tmovups %%xmm%d, %d(%%rsp)\n' "$i" $((16 * i)); done
    printf '\tmov %%r11, %%rdi\n\tcall %s_resolve\n\tmov %%rax, %%r11\n' "$library"
    for i in 0 1 2 3 4 5 6 7; do printf '\tmovups %d(%%rsp), %%xmm%d\n' $((16 * i)) "$i"; done
    # Eight registers of eight bytes lie below the frame pointer.
    printf '\tlea -64(%%rbp), %%rsp\n'
    for register in $(printf '%s\n' $integers | tac); do printf '\tpop %%%s\n' "$register"; done
    printf '\tpop %%rbp\n\tjmp *%%r11\n.section .note.GNU-stack,"",@progbits\n'
}

# archive MODULE LIBRARY ERROR FILE...: ERROR is what the library itself returns if it can't work.
archive() {
    local module=$1 library=$2 error=$3
    shift 3
    functions "$module" >"$work/names"
    [ -s "$work/names" ] || fail "cudarc declares no function of $library any more."
    resolver "$library" "$error" "$(wc -l <"$work/names")" "$@" >"$work/resolver.c"
    trampolines "$library" >"$work/trampolines.s"
    gcc -O2 -fPIC -c "$work/resolver.c" -o "$work/resolver.o"
    gcc -c "$work/trampolines.s" -o "$work/trampolines.o"
    rm -f "$folder/lib$library.a"
    ar rcs "$folder/lib$library.a" "$work/resolver.o" "$work/trampolines.o"
    say "lib$library.a: $(wc -l <"$work/names") functions"
}

# CUDA_ERROR_NO_DEVICE, CUBLAS_STATUS_NOT_INITIALIZED twice, CURAND_STATUS_INITIALIZATION_FAILED,
# NVRTC_ERROR_BUILTIN_OPERATION_FAILURE.
archive driver cuda 100 libcuda.so.1
archive cublas cublas 1 libcublas.so.13
archive cublaslt cublasLt 1 libcublasLt.so.13
archive curand curand 203 libcurand.so.10
archive nvrtc nvrtc 7 libnvrtc.so.13
