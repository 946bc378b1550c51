#!/bin/bash
# Builds Steno and starts the window with a sample. Without a display, transcribes the sample on the command line.
. "$(dirname "$0")/lib.sh"

sample=$root/tests/data/sample.flac

if has_display; then
    scripts/setup.sh engine window
    scripts/build.sh all
else
    scripts/setup.sh engine
    scripts/build.sh bare
fi

# The window and the command line use the CUDA engine if it is there and works, else the CPU's.
if [ "${BACKEND:-auto}" = cpu ] || ! scripts/cuda/build.sh --if-driver; then
    export STENO_BACKEND=cpu
fi

if has_display; then
    say "drop a recording on the window, for instance $sample"
    exec target/debug/steno-window
fi
say "there is no display (DISPLAY and WAYLAND_DISPLAY are empty): transcribing the sample here instead of in the window."
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
target/debug/steno transcribe "$sample" --model models/starter-whisper --format txt --output "$out"
say "the transcript of $sample:"
cat "$out"/*.txt
