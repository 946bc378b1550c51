#!/bin/bash
# The real window: time to the first frame; processor and memory at rest; milliseconds per action on a
# transcript of 20,000 segments; time until a place late in a 3-hour recording (VBR mp3, and mkv) is heard,
# and the growth of the window's processes meanwhile. docs/measurements.md has the results.
. "$(dirname "$0")/lib.sh"

scripts/setup.sh engine window test
npm --prefix ui run build --silent
cargo build --quiet --workspace --all-targets
export STENO_ENGINE=$root/target/debug/steno-engine

say "$(nproc) threads, $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)"
tests/window/with-display.sh node tests/window/idle.mjs
tests/window/with-display.sh node tests/window/long-text.mjs

recordings=$(mktemp -d)
trap 'rm -rf "$recordings"' EXIT
three_hours() { ffmpeg -v error -stream_loop -1 -i tests/data/sample.flac -t 10800 -ac 1 "$@"; }
three_hours -c:a libmp3lame -q:a 5 "$recordings/long.mp3"
three_hours -c:a libopus -b:a 32k "$recordings/long.mkv"
for recording in "$recordings"/long.*; do
    say "$(basename "$recording"), $(($(stat -c %s "$recording") / 1000000)) MB"
    tests/window/with-display.sh node tests/window/long-player.mjs "$recording"
done
