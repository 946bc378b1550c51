#!/bin/bash
# build.sh all|bare: builds the programs in target/debug; `bare` leaves the window out and needs neither Node nor
# WebKit.
. "$(dirname "$0")/lib.sh"

# The features of a dependency are the union of what the selected packages and, once a test or an example is
# built, their tests ask for. With the whole workspace and one small example they are those of `make test`, which
# then compiles no dependency again.
build() { cargo build --workspace --example history "$@"; }

case ${1:-all} in
all)
    # The window's pages are embedded when it is compiled.
    npm --prefix ui run build --silent
    build --bin steno --bin steno-engine --bin steno-player --bin steno-window
    ;;
bare) build --bin steno --bin steno-engine ;;
*) fail "build.sh all|bare" ;;
esac
