#!/bin/bash
# build.sh all|bare: the programs in target/debug; `bare` leaves the window out and needs neither Node nor WebKit.
. "$(dirname "$0")/lib.sh"

case ${1:-all} in
all)
    # The window's pages are embedded when it is compiled.
    npm --prefix ui run build --silent
    cargo build --workspace --bins
    ;;
bare) cargo build -p steno -p steno-engine ;;
*) fail "build.sh all|bare" ;;
esac
