# Sourced by the other scripts: the project's folder, messages, phases with their times.
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

# phase NAME COMMAND...: runs the command and records its outcome and time; a failure does not stop the script.
phase() {
    local name=$1 start=$SECONDS outcome=ok
    shift
    printf '\n==> %s\n' "$name"
    "$@" || outcome=FAILED
    [ "$outcome" = ok ] || failed+=("$name")
    phases+=("$(printf '%5d s  %-6s  %s' $((SECONDS - start)) "$outcome" "$name")")
}

# must NAME COMMAND...: the same, but a failure ends the script.
must() {
    phase "$@"
    [ ${#failed[@]} -eq 0 ] || finish
}

# Prints all phases with their times; exits with status 1 if one failed.
finish() {
    printf '\n'
    printf '%s\n' "${phases[@]}"
    printf '%5d s  in all\n' "$SECONDS"
    [ ${#failed[@]} -eq 0 ] || exit 1
}

# Without a display the window can't be shown, so it is not built.
has_display() { [ -n "${DISPLAY:-}${WAYLAND_DISPLAY:-}" ]; }
