#!/bin/bash
# Builds the emulated card and the CUDA engine for it, both of which only tests use; does nothing where nothing changed.
#   target/cuda-mock/driver         libcuda.so.1, libcublas.so.13 and so on: LD_LIBRARY_PATH of what is to use the card
#   target/debug/examples/emulated  the engine
# The driver's kernels are candle's own, compiled by g++ for the processor, so that their numbers are those of their
# source. It shows wrong arguments, layouts and types, missing kernels, memory that is read before it was written or
# after it was freed, and how often the driver is called. It can't show races (everything happens in order), what
# NVIDIA's compilers make of the source, the products of tensor cores, or speed.
. "$(dirname "$0")/../../lib.sh"
. scripts/cuda/mock/environment.sh

# What these files were written for; other kernels may use more of CUDA than include/cuda_on_cpu.h has.
kernels_version=0.11.1
kernels_expected=948
# The slowest to compile first.
sources=(mmvq_gguf quantized reduce unary binary cast conv indexing affine fill sort ternary)
# Steno's own.
own=(choose attend finish)
mock=scripts/cuda/mock
out=$root/target/cuda-mock
work=$out/work

[ "$(uname -sm)" = "Linux x86_64" ] || fail "The emulated card needs Linux on x86-64."
found=$(sed -n '/^name = "candle-kernels"$/{n;s/^version = "\(.*\)"$/\1/p}' Cargo.lock)
[ "$found" = "$kernels_version" ] ||
    fail "candle-kernels is $found and the emulated card is for $kernels_version. Compare what changed, then raise kernels_version in $mock/build.sh."

# kernels NAME...: compiles the kernels of these files to $work/NAME.o, with a table of them.
kernels() {
    local name arch file
    # As both devices see them: the newest has all, and what the oldest lacks is marked.
    for name in "$@"; do
        # Two things are not C++: launches, and shared memory whose size the launch gives.
        file=$source/$name.cu
        [ -f "$file" ] || file=crates/models/kernels/$name.cu
        sed -E 's/extern __shared__ ([a-z_0-9]+) ([a-z_0-9]+)\[\];/\1 *\2 = (\1 *)mock_dynamic_shared();/
                s/([A-Za-z_0-9#]+)<<<(.*)>>>/mock_launch(MOCK_TEXT(\1), \1, \2)/' "$file" >"$work/$name.cpp"
        for arch in 750 800; do
            # The kernels' names, after the macros that make them.
            g++ "${flags[@]}" -D__CUDA_ARCH__=$arch -DMOCK_NAMES -include cuda_on_cpu.h -E "$work/$name.cpp" | tr '\n' ' ' |
                grep -oE 'MOCK_KERNEL\s+(void\s+)?[A-Za-z_0-9]+(\s*\([0-9, a-z_A-Z*+]*\)\s*[A-Za-z_0-9 ]+)?\s*\(' |
                grep -oE '[A-Za-z_0-9]+\s*\($' | tr -d ' (' | sort -u >"$work/$name.$arch"
        done
        {
            printf '#include "%s.cpp"\n' "$name"
            echo "extern \"C\" const mock_kernel mock_table_${name}[] = {"
            comm -13 "$work/$name.750" "$work/$name.800" | sed 's/.*/    mock_entry("&", 80, \&&),/'
            comm -12 "$work/$name.750" "$work/$name.800" | sed 's/.*/    mock_entry("&", 0, \&&),/'
            echo '    {nullptr, nullptr, nullptr, 0}};'
        } >"$work/$name.table.cpp"
        g++ "${flags[@]}" -D__CUDA_ARCH__=800 -include cuda_on_cpu.h -c "$work/$name.table.cpp" -o "$work/$name.all.o"
        # Modules have functions of the same names.
        ld -r --force-group-allocation "$work/$name.all.o" -o "$work/$name.o"
        objcopy --wildcard --keep-global-symbol='mock_table_*' --keep-global-symbol='launch_*' "$work/$name.o"
    done
}

# library MODULE FILE STATUS OBJECT...: what the objects do not define returns STATUS.
library() {
    local module=$1 file=$2 status=$3
    shift 3
    : >"$work/written"
    [ $# -eq 0 ] || nm "$@" | awk '$2 == "T" { print $3 }' | sort -u >"$work/written"
    functions "$module" | comm -23 - "$work/written" | sed "s/.*/int &(void) { return $status; }/" >"$work/rest.c"
    gcc -O1 -fPIC -w -c "$work/rest.c" -o "$work/rest.o"
    g++ -shared -Wl,-Bsymbolic "$@" "$work/rest.o" -lpthread -ldl -Wl,-soname,"$file" -o "$out/driver/$file"
}

driver() {
    . scripts/cuda/bindings.sh
    source=$(dirname "$(manifest candle-kernels)")/src
    rm -rf "$work" "$out/driver" "$out/link"
    mkdir -p "$work" "$out/driver" "$out/link"
    flags=(-std=c++20 -w -fPIC -fno-strict-aliasing -O2 -mavx2 -mfma -mf16c -ffp-contract=fast
        "-I$mock/include" "-I$mock" "-I$source" "-I$work")
    export source work mock
    export -f kernels
    # An array is not inherited, and no folder's name has a space here.
    printf '%s\n' "${sources[@]}" "${own[@]}" | FLAGS=${flags[*]} xargs -n 1 -P "$(nproc)" bash -euo pipefail -c 'flags=($FLAGS); kernels "$1"' kernels
    for part in runtime launch; do
        g++ "${flags[@]}" -c "$mock/$part.cpp" -o "$work/$part.o"
    done
    g++ "${flags[@]}" -O3 -c "$mock/cublas.cpp" -o "$work/cublas.o"
    gcc -O1 -fPIC -w -c "$mock/driver.c" -o "$work/driver.o"
    echo 'int curandCreateGenerator(void **out, int kind) { *out = (void *)0x8000; return 0; }' >"$work/curand.c"
    gcc -O1 -fPIC -w -c "$work/curand.c" -o "$work/curand.o"

    local count objects=("${sources[@]/#/$work/}" "${own[@]/#/$work/}")
    objects=("${objects[@]/%/.o}")
    count=$(for name in "${sources[@]}"; do cat "$work/$name.800"; done | wc -l)
    [ "$count" = "$kernels_expected" ] || fail "candle-kernels has $count kernels, $kernels_expected were expected."

    # CUDA_ERROR_NOT_SUPPORTED
    library driver libcuda.so.1 801 "$work"/{driver,launch,runtime}.o "${objects[@]}"
    library cublas libcublas.so.13 0 "$work/cublas.o"
    library cublaslt libcublasLt.so.13 0
    library nvrtc libnvrtc.so.13 0
    library curand libcurand.so.10 0 "$work/curand.o"
    # What programs are linked with: as a real engine, which starts without a driver.
    scripts/cuda/lazy-link.sh "$out/link"
    # The stand-in of the compiler leaves nothing of it to be linked.
    ar rcs "$out/link/libcudart.a"
}

# changed NAME: whether what is on standard input is not what it was when `made NAME` was called.
changed() {
    sums[$1]=$(sha256sum)
    [ "$(cat "$out/.$1" 2>/dev/null)" != "${sums[$1]}" ]
}
made() { printf '%s\n' "${sums[$1]}" >"$out/.$1"; }

declare -A sums
if changed driver < <(
    find "$mock" crates/models/kernels scripts/cuda/bindings.sh scripts/cuda/lazy-link.sh -type f | sort | xargs cat
    grep -A 1 '^name = "cudarc"' Cargo.lock
); then
    say "compiling candle's kernels for the processor"
    driver
    made driver
fi
# A build script does not see that the compiler is another one.
if changed compiler <scripts/cuda/fake-nvcc; then
    cargo clean --quiet -p candle-kernels
    made compiler
fi

export LIBRARY_PATH=$out/link
# With the tests' features, so that nothing is compiled twice.
cargo build --quiet --locked --workspace --features steno-engine/cuda --example emulated --test emulated
