# Sourced by the other scripts: where the project is, how they speak, how long things took.
# shellcheck shell=bash

set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"

say() { printf 'steno: %s\n' "$*"; }
fail() {
    printf 'steno: %s\n' "$*" >&2
    exit 1
}

phases=()
failed=()

# phase NAME COMMAND...: runs it, goes on where it fails, and remembers both outcome and time.
phase() {
    local name=$1 start=$SECONDS outcome=ok
    shift
    printf '\n==> %s\n' "$name"
    "$@" || outcome=FAILED
    [ "$outcome" = ok ] || failed+=("$name")
    phases+=("$(printf '%5d s  %-6s  %s' $((SECONDS - start)) "$outcome" "$name")")
}

# must NAME COMMAND...: the same, but nothing that follows makes sense without it.
must() {
    phase "$@"
    [ ${#failed[@]} -eq 0 ] || finish
}

# Says what ran and for how long; ends with status 1 where anything failed.
finish() {
    printf '\n'
    printf '%s\n' "${phases[@]}"
    printf '%5d s  in all\n' "$SECONDS"
    [ ${#failed[@]} -eq 0 ] || exit 1
}

# The window can only be shown, and is only worth building, where there is a display.
has_display() { [ -n "${DISPLAY:-}${WAYLAND_DISPLAY:-}" ]; }
