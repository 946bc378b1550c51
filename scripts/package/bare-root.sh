#!/bin/bash
# The engine for NVIDIA cards where nothing else is: in a root with `steno`, the C library and a driver, the emulated
# one, `steno gpu install` downloads the engine of a release from a local server, and a recording is transcribed on the
# card. No compiler, no shell, no other program. Needs the right to make such a root: Linux user namespaces, or root.
. "$(dirname "$0")/../lib.sh"

scripts/cuda/mock/build.sh
cargo build --quiet --locked --workspace --bin steno
work=$(mktemp -d)
server=''
trap '[ -z "$server" ] || kill "$server"; rm -rf "$work"' EXIT
driver=target/cuda-mock/driver
scripts/package/engine.sh --program target/debug/examples/emulated --libraries "$driver" --output "$work/release"

bare=$work/root
mkdir -p "$bare"/{bin,home,proc,dev,tmp,usr/lib,etc/ssl/certs,models}
cp target/debug/steno "$bare/bin/"
cp -r models/starter-whisper "$bare/models/"
cp tests/data/sample.flac "$bare/home/"
cp -L /etc/ssl/certs/ca-certificates.crt "$bare/etc/ssl/certs/"
cp "$driver/libcuda.so.1" "$bare/usr/lib/"
gcc -O1 -shared -fPIC -w scripts/cuda/mock/nvml.c -o "$bare/usr/lib/libnvidia-ml.so.1"
printf 'gpu GPU-1 0:1:0.0 25769803776 24696061952 Emulated Card\ncapability GPU-1 8.0\n' \
    >"$bare/usr/lib/libnvidia-ml.so.1.conf"
for file in target/debug/steno target/debug/examples/emulated "$driver"/*; do
    { LD_LIBRARY_PATH='' ldd "$file" || true; } | grep -o '/[^ ]*' || true
done | sort -u | while read -r library; do
    mkdir -p "$bare$(dirname "$library")"
    cp -L "$library" "$bare$library"
done

python3 -u -m http.server 0 --bind 127.0.0.1 --directory "$work/release" >"$work/served" 2>&1 &
server=$!
for _ in $(seq 100); do
    port=$(sed -n 's/.*port \([0-9]*\).*/\1/p' "$work/served")
    [ -z "$port" ] || break
    sleep 0.1
done

chroot=$(PATH=$PATH:/usr/sbin command -v chroot)
within=(unshare --mount)
[ "$(id -u)" = 0 ] || within=(unshare --mount --map-root-user)
# bare_steno ARGUMENT...: steno in the bare root.
bare_steno() {
    "${within[@]}" bash -c 'mount --rbind /proc "$0/proc"; mount --rbind /dev "$0/dev"
        exec env -i HOME=/home MOCK_CUDA_BYTES=4294967296 "$1" "$0" /bin/steno "${@:2}"' "$bare" "$chroot" "$@"
}
bare_steno gpu install --manifest "http://127.0.0.1:${port:?the server did not start}/manifest.json"
bare_steno gpu | grep -q 'It can compute' || fail "The card can't compute: $(bare_steno gpu)"
bare_steno transcribe /home/sample.flac --model /models/starter-whisper --format json --quiet
grep -q '"device": *"cuda:0"' "$bare/home/sample.json" || fail "The card did not compute."
bare_steno gpu remove
say "the downloaded engine computed on the card, in a root without a compiler"
