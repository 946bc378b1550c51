#!/bin/bash
# build.sh all|bare: builds the programs in target/debug. `bare` leaves out the window and needs neither Node nor WebKit.
. "$(dirname "$0")/lib.sh"

case ${1:-all} in
all)
    # The window embeds its pages when it is compiled.
    npm --prefix ui run build --silent
    cargo build --workspace --bins
    ;;
bare) cargo build -p steno -p steno-engine ;;
*) fail "build.sh all|bare" ;;
esac
