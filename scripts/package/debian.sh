#!/bin/bash
# Makes a Debian package in target/package: the window, the command line, the engine for the CPU, the player,
# the demonstration models. And where NVIDIA's compiler is installed (scripts/cuda/toolkit.sh), the package steno-cuda:
# the engine for NVIDIA cards with NVIDIA's libraries for it.
# debian.sh                    builds the programs in release mode first
# debian.sh --programs FOLDER  packages the programs in FOLDER
#   --cuda FOLDER packages the engine in FOLDER, which scripts/package/engine.sh made
#   --output FOLDER writes elsewhere; --fast does not compress
. "$(dirname "$0")/../lib.sh"

programs='' cuda='' output=target/package
compression=-Zxz
while [ $# -gt 0 ]; do
    case $1 in
    --programs)
        programs=$(cd "${2:?--programs FOLDER}" && pwd)
        shift
        ;;
    --cuda)
        cuda=$(cd "${2:?--cuda FOLDER}" && pwd)
        shift
        ;;
    --output)
        output=${2:?--output FOLDER}
        shift
        ;;
    --fast) compression=-Znone ;;
    *) fail "debian.sh [--programs FOLDER] [--cuda FOLDER] [--output FOLDER] [--fast]" ;;
    esac
    shift
done
for tool in dpkg-deb dpkg-shlibdeps strip; do
    command -v "$tool" >/dev/null || fail "$tool is missing: apt-get install dpkg-dev binutils"
done

if [ -z "$programs" ]; then
    scripts/setup.sh engine window
    npm --prefix ui run build --silent
    cargo build --locked --release -p steno -p steno-engine -p steno-player -p steno-window
    programs=$root/target/release
    if [ -z "$cuda" ] && [ -f cuda/.installed-for ]; then
        scripts/package/engine.sh
        cuda=$root/target/package/cuda
    fi
fi

version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
architecture=$(dpkg --print-architecture)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tree=$work/tree
share=$tree/usr/share

# put MODE SOURCE TARGET
put() { install -D -m "$1" "$2" "$tree/$3"; }

put 755 "$programs/steno-window" usr/bin/steno-window
put 755 "$programs/steno" usr/bin/steno
put 755 "$programs/steno-engine" usr/lib/steno/steno-engine
put 755 "$programs/steno-player" usr/lib/steno/steno-player
strip --strip-debug "$tree"/usr/bin/* "$tree"/usr/lib/steno/*

# The training code of each lies in a folder of its own and is not part of the package.
for file in models/starter-*/*; do
    [ ! -f "$file" ] || put 644 "$file" "usr/share/steno/$file"
done
put 644 tests/data/sample.flac usr/share/steno/sample.flac
put 644 scripts/package/steno-window.desktop usr/share/applications/steno-window.desktop
icons=usr/share/icons/hicolor
put 644 icons/steno.svg "$icons/scalable/apps/steno.svg"
put 644 icons/32x32.png "$icons/32x32/apps/steno.png"
put 644 icons/128x128.png "$icons/128x128/apps/steno.png"
put 644 icons/128x128@2x.png "$icons/256x256/apps/steno.png"
put 644 icons/icon.png "$icons/512x512/apps/steno.png"

documents=usr/share/doc/steno
put 644 scripts/package/copyright "$documents/copyright"
put 644 LICENSE-MIT "$documents/LICENSE-MIT"
put 644 LICENSE-APACHE "$documents/LICENSE-APACHE"
put 644 README.md "$documents/README.md"
gzip -9n <CHANGELOG.md >"$tree/$documents/changelog.gz"
node scripts/licences.mjs --notices | gzip -9n >"$tree/$documents/third-party.txt.gz"

"$tree/usr/bin/steno" man --output "$share/man/man1"
gzip -9n "$share"/man/man1/*.1
mkdir -p "$share/bash-completion/completions" "$share/zsh/vendor-completions" "$share/fish/vendor_completions.d"
"$tree/usr/bin/steno" completions bash >"$share/bash-completion/completions/steno"
"$tree/usr/bin/steno" completions zsh >"$share/zsh/vendor-completions/_steno"
"$tree/usr/bin/steno" completions fish >"$share/fish/vendor_completions.d/steno.fish"
chmod -R u=rwX,go=rX "$tree"

# The packages of the programs' libraries, with their lowest versions.
mkdir "$work/debian"
printf 'Source: steno\n\nPackage: steno\nArchitecture: any\n' >"$work/debian/control"
(cd "$work" && dpkg-shlibdeps -O tree/usr/bin/steno tree/usr/bin/steno-window tree/usr/lib/steno/steno-engine tree/usr/lib/steno/steno-player) >"$work/depends" 2>"$work/shlibdeps.log" ||
    { cat "$work/shlibdeps.log" >&2 && fail "dpkg-shlibdeps does not know where a library comes from"; }

mkdir "$tree/DEBIAN"
cat >"$tree/DEBIAN/control" <<CONTROL
Package: steno
Version: $version
Architecture: $architecture
Maintainer: The Steno authors <steno@localhost>
Installed-Size: $(du -k -s "$tree/usr" | cut -f 1)
Depends: $(sed -n 's/^shlibs:Depends=//p' "$work/depends"), gstreamer1.0-plugins-base, gstreamer1.0-plugins-good
Recommends: ffmpeg
Suggests: pulseaudio-utils | alsa-utils | pipewire-bin
Section: sound
Priority: optional
Description: turns recordings into transcripts on your own computer
 Steno runs Whisper and Parakeet models on the processor. Drop recordings on its window or
 name them on the command line. Recordings never leave the computer; the
 network is used only to download a model when you ask for it.
 .
 The models that come with it are demonstrations. Their text is not reliable.
CONTROL
(cd "$tree" && find usr -type f -print0 | sort -z | xargs -0 md5sum) >"$tree/DEBIAN/md5sums"

mkdir -p "$output"
package=$output/steno_${version}_${architecture}.deb
dpkg-deb --root-owner-group "$compression" --build "$tree" "$work/steno.deb" >/dev/null
mv "$work/steno.deb" "$package"
say "$package"

if [ -z "$cuda" ]; then
    say "WITHOUT steno-cuda: the engine for NVIDIA cards was left out. scripts/cuda/toolkit.sh gets the compiler for it."
    exit 0
fi
tree=$work/cuda
put 755 "$cuda/steno-engine-cuda" usr/lib/steno/steno-engine-cuda
for library in "$cuda"/cuda-libs/*; do
    put 644 "$library" "usr/lib/steno/cuda-libs/${library##*/}"
done
put 644 scripts/package/copyright-cuda usr/share/doc/steno-cuda/copyright
chmod -R u=rwX,go=rX "$tree"
mkdir "$tree/DEBIAN"
cat >"$tree/DEBIAN/control" <<CONTROL
Package: steno-cuda
Version: $version
Architecture: $architecture
Maintainer: The Steno authors <steno@localhost>
Installed-Size: $(du -k -s "$tree/usr" | cut -f 1)
Depends: steno (= $version)
Section: non-free/sound
Priority: optional
Description: the engine of steno for NVIDIA cards
 Has Steno compute on NVIDIA cards from compute capability 7.5 on. It needs
 NVIDIA's driver 580 or newer, which is not part of it, and holds NVIDIA's
 libraries cuBLAS and cuRAND.
CONTROL
(cd "$tree" && find usr -type f -print0 | sort -z | xargs -0 md5sum) >"$tree/DEBIAN/md5sums"
package=$output/steno-cuda_${version}_${architecture}.deb
dpkg-deb --root-owner-group "$compression" --build "$tree" "$work/steno-cuda.deb" >/dev/null
mv "$work/steno-cuda.deb" "$package"
say "$package"
