#!/bin/bash
# setup.sh WHAT...: installs what is missing and names it; does nothing if nothing is missing.
#   engine   to build the engine and the command line
#   window   to build and show the window (Node packages included)
#   test     to run every test, without a screen
#   check    for `make check`
#   cuda     to build the engine for NVIDIA's GPUs
#   peers    to measure Steno beside other programs
. "$(dirname "$0")/lib.sh"

# Vite needs this version of Node; Svelte's and Tauri's packages need an older one.
node_least=20.19.0

packages=() reasons=()

# need REASON PACKAGE PROBE...: adds the package to those to install if the probe fails.
need() {
    local reason=$1 package=$2
    shift 2
    "$@" >/dev/null 2>&1 && return
    packages+=("$package")
    reasons+=("  $package: $reason")
}

# exists PATTERN...: whether a file matches one of the patterns.
exists() { compgen -G "$1" || { [ $# -gt 1 ] && shift && exists "$@"; }; }
# Programs alone: `command -v` finds functions of this script too, such as chromium.
has() { type -P "$1"; }
library() { pkg-config --exists "$1"; }
plugin() { exists "/usr/lib*/gstreamer-1.0/libgst$1.so" "/usr/lib/*/gstreamer-1.0/libgst$1.so"; }

# at_least VERSION LEAST: compares dotted numbers.
at_least() { [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]; }

rust() {
    local least version
    least=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
    has cargo >/dev/null || fail "Rust $least or newer is needed and there is no cargo. Install it from https://rustup.rs, open a new terminal and try again."
    version=$(cargo --version | cut -d ' ' -f 2)
    at_least "${version%%-*}" "$least" && return
    if has rustup >/dev/null; then
        fail "Rust $least or newer is needed; this is $version. Run: rustup update stable"
    fi
    fail "Rust $least or newer is needed; this is $version. Install a newer one from https://rustup.rs (distributions lag behind)."
}

rust_components() {
    local missing=()
    cargo clippy --version >/dev/null 2>&1 || missing+=(clippy)
    cargo fmt --version >/dev/null 2>&1 || missing+=(rustfmt)
    [ ${#missing[@]} -gt 0 ] || return 0
    has rustup >/dev/null || fail "Rust's ${missing[*]} is missing: install it the way Rust was installed."
    say "installing Rust's ${missing[*]} with rustup"
    rustup component add "${missing[@]}" || fail "rustup could not install ${missing[*]}; is there a network?"
}

node() {
    local version
    has node >/dev/null && has npm >/dev/null ||
        fail "Node $node_least or newer with npm is needed for the window. Install it from https://nodejs.org (Debian 13 and newer: apt-get install nodejs npm) and try again. The command line needs no Node: cargo run -p steno -- --help"
    version=$(command node --version)
    at_least "${version#v}" "$node_least" ||
        fail "Node $node_least or newer is needed; this is ${version#v}. Install a newer one from https://nodejs.org."
}

compiler() {
    need "the linker and libraries written in C" gcc has cc
    need "the C library's headers" libc6-dev exists /usr/include/stdio.h
    need "building the opus decoder" cmake has cmake
    need "building the opus decoder" make has make
    need "finding libraries" pkg-config has pkg-config
}

window() {
    need "the window" libwebkit2gtk-4.1-dev library webkit2gtk-4.1
    need "the window and its file dialogs" libgtk-3-dev library gtk+-3.0
    need "the window's icon" librsvg2-dev library librsvg-2.0
    need "playing recordings" gstreamer1.0-plugins-base plugin playback
    need "playing recordings" gstreamer1.0-plugins-good plugin wavparse
}

test_tools() {
    need "driving the window" webkit2gtk-driver has WebKitWebDriver
    need "a virtual screen for the window" xvfb has Xvfb
    need "a session bus for the window" dbus has dbus-run-session
    need "a bus with a simulated logind" dbus-daemon has dbus-daemon
    need "the simulated logind" python3-gi /usr/bin/python3 -c 'from gi.repository import Gio, GLib'
    need "fonts for the window" fonts-dejavu-core exists '/usr/share/fonts/truetype/dejavu/*.ttf' '/usr/share/fonts/dejavu*/*.ttf'
    need "dropping files on the window" python3-xlib /usr/bin/python3 -c 'import Xlib'
    need "codecs that Steno leaves to ffmpeg" ffmpeg has ffmpeg
    need "making the Debian package" dpkg-dev has dpkg-shlibdeps
    need "making the Debian package" binutils has strip
    need "checking the package's desktop entry" desktop-file-utils has desktop-file-validate
    need "detecting network connections" strace has strace
    need "compiling the emulated graphics card" g++ has g++
    need "asking the server as the guide does" curl has curl
    # Neither may be in the path of a user who is not root.
    need "workers that take jobs from NATS" nats-server exists /usr/sbin/nats-server /usr/bin/nats-server /usr/local/bin/nats-server
    need "fetching recordings over SFTP" openssh-server exists /usr/sbin/sshd
    need "fetching recordings over SFTP" openssh-client has ssh
    need "the official client of OpenAI's API" python3-venv python3 -c 'import ensurepip, venv'
    chromium
}

# Looks where ui/browser/page.mjs looks. Ubuntu has Chromium as a snap only, which can't be installed here.
chromium() {
    [ ! -x "${CHROMIUM:-}" ] || return 0
    ! exists /usr/bin/chromium /usr/bin/chromium-browser /usr/bin/google-chrome >/dev/null || return 0
    grep -qs '^ID=debian' /etc/os-release ||
        fail "Chromium or Google Chrome is needed to test the window's pages. Install one, or set CHROMIUM to its program, and try again."
    need "the window's pages in a browser" chromium has chromium
}

cuda() {
    need "NVIDIA's compiler" g++ has g++
    need "fetching NVIDIA's compiler" python3-venv python3 -c 'import ensurepip, venv'
}

peers() {
    need "the peers, from PyPI" python3-venv python3 -c 'import ensurepip, venv'
    need "recordings to measure" ffmpeg has ffmpeg
}

install_packages() {
    [ ${#packages[@]} -gt 0 ] || return 0
    say "these packages are missing:"
    printf '%s\n' "${reasons[@]}"
    local apt=(apt-get -o DPkg::Lock::Timeout=600)
    local command="${apt[0]} install --no-install-recommends ${packages[*]}"
    has apt-get >/dev/null ||
        fail "This script can install them on Debian and Ubuntu only. Install the matching packages of your distribution and try again."
    local as_root=(env DEBIAN_FRONTEND=noninteractive)
    if [ "$(id -u)" -ne 0 ]; then
        has sudo >/dev/null || fail "Installing them needs root and there is no sudo. Run as root: $command"
        # Without a terminal sudo can't ask for the password.
        [ -t 0 ] || sudo -n true 2>/dev/null || fail "Installing them needs a password and there is no terminal. Run as root: $command"
        as_root=(sudo "${as_root[@]}")
    fi
    say "installing them with apt-get"
    local log
    log=$(mktemp)
    if ! { "${as_root[@]}" "${apt[@]}" update && "${as_root[@]}" "${apt[@]}" install -y --no-install-recommends "${packages[@]}"; } >"$log" 2>&1 </dev/null; then
        tail -n 15 "$log" >&2
        rm -f "$log"
        fail "apt-get failed (its last lines are above). Is there a network? The command was: $command"
    fi
    rm -f "$log"
    say "installed: ${packages[*]}"
}

# npm ci deletes and reinstalls everything, so it runs only if the lock file changed.
node_packages() {
    local folder=$1 stamp="$1/node_modules/.installed-for"
    [ -f "$folder/package-lock.json" ] || return 0
    local wanted
    wanted=$(sha256sum <"$folder/package-lock.json")
    [ "$(cat "$stamp" 2>/dev/null)" != "$wanted" ] || return 0
    say "installing the Node packages of $folder with npm ci"
    npm --prefix "$folder" ci --no-audit --no-fund --loglevel=error ||
        fail "npm ci failed in $folder. Is there a network?"
    printf '%s\n' "$wanted" >"$stamp"
}

# The official client of OpenAI's API, which the tests of the server use.
openai_client() {
    local folder=target/openai-client wanted=openai==3.57.0
    [ "$(cat $folder/.installed-for 2>/dev/null)" != $wanted ] || return 0
    say "installing $wanted with pip"
    python3 -m venv $folder && $folder/bin/pip install --quiet --disable-pip-version-check $wanted ||
        fail "pip could not install $wanted. Is there a network?"
    printf '%s\n' $wanted >$folder/.installed-for
}

[ $# -gt 0 ] || set -- engine window test check
wants() { case " $wanted " in *" $1 "*) ;; *) return 1 ;; esac; }
wanted="$*"

rust
! wants check || rust_components
! { wants window || wants test; } || node
! wants engine || compiler
! wants window || window
! wants test || test_tools
! wants cuda || cuda
! wants peers || peers
install_packages
if wants window || wants test; then
    node_packages ui
    node_packages tests/window
fi
! wants test || openai_client
