#!/bin/bash
# Makes the files of a release that `steno gpu install` downloads, in target/package/cuda: the engine for NVIDIA cards,
# NVIDIA's libraries that it needs (its licence lets them be passed on with a program), and their list, manifest.json.
# To be put on a server as they are; the address of manifest.json is then what STENO_GPU_RELEASE is when the programs
# of that release are compiled.
# engine.sh                    builds the engine for every card first (scripts/cuda/build.sh --all)
# engine.sh --program FILE     takes this engine; --libraries FOLDER takes NVIDIA's libraries from there
#   --output FOLDER writes elsewhere
. "$(dirname "$0")/../lib.sh"

program='' libraries=$root/cuda/home/lib output=target/package/cuda
while [ $# -gt 0 ]; do
    case $1 in
    --program) program=${2:?--program FILE} ;;
    --libraries) libraries=${2:?--libraries FOLDER} ;;
    --output) output=${2:?--output FOLDER} ;;
    *) fail "engine.sh [--program FILE] [--libraries FOLDER] [--output FOLDER]" ;;
    esac
    shift 2
done
if [ -z "$program" ]; then
    scripts/cuda/build.sh --all
    program=target/release/steno-engine-cuda
fi
[ -f "$program" ] || fail "There is no engine at $program."

# What scripts/cuda/lazy-link.sh has the engine open, less the driver's own; cuBLAS needs cuBLASLt.
needed=(libcublas.so.13 libcublasLt.so.13 libcurand.so.10)
# Beside them, so that a user's system of another year has them too.
optional=(libnvrtc.so.13)

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/cuda-libs"
install -m 755 "$program" "$work/steno-engine-cuda"
strip --strip-debug "$work/steno-engine-cuda" 2>/dev/null || say "the engine could not be stripped; it is as it was"
for library in "${needed[@]}"; do
    [ -f "$libraries/$library" ] || fail "NVIDIA's $library is not in $libraries."
    install -m 644 "$libraries/$library" "$work/cuda-libs/$library"
done
for library in "${optional[@]}"; do
    [ ! -f "$libraries/$library" ] || install -m 644 "$libraries/$library" "$work/cuda-libs/$library"
done

version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
architecture=$(uname -m)
# As Rust calls it.
[ "$architecture" != arm64 ] || architecture=aarch64
{
    printf '{\n  "format": 1,\n  "steno": "%s",\n  "system": "linux",\n  "architecture": "%s",\n  "files": [' \
        "$version" "$architecture"
    separator=''
    while read -r name; do
        sum=$(sha256sum "$work/$name")
        printf '%s\n    { "name": "%s", "size": %s, "sha256": "%s" }' \
            "$separator" "$name" "$(stat -c %s "$work/$name")" "${sum%% *}"
        separator=,
    done < <(cd "$work" && find . -type f ! -name 'manifest.json*' -printf '%P\n' | LC_ALL=C sort)
    printf '\n  ]\n}\n'
} >"$work/manifest.json.new"
mv "$work/manifest.json.new" "$work/manifest.json"

mkdir -p "$(dirname "$output")"
rm -rf "$output.partial"
cp -r "$work" "$output.partial"
chmod -R u=rwX,go=rX "$output.partial"
rm -rf "$output"
mv "$output.partial" "$output"
say "$output/manifest.json: $(du -m -s "$output" | cut -f 1) MB"
