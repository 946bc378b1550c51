#!/bin/bash
# Runs files of tests of the real window, two at a time, each with a screen and a session of its own, so that no file's
# leftovers disturb another. Prints what a file says when it has ended, and writes its results as RESULTS/NAME.tap.
# usage: test-files.sh RESULTS FILE...
set -u
here=$(dirname "$0")
results=$1
shift

run() {
    local name
    name=$(basename "$1" .test.mjs)
    "$here/with-display.sh" node --test --test-reporter=spec --test-reporter-destination=stdout \
        --test-reporter=tap "--test-reporter-destination=$results/$name.tap" "$1" >"$results/$name.out" 2>&1
}

# While one window waits for what it is told, the other is drawn.
declare -A files=()
outcome=0
end_one() {
    local ended
    wait -n -p ended || outcome=1
    cat "$results/$(basename "${files[$ended]}" .test.mjs).out"
}
for file in "$@"; do
    [ "$(jobs -rp | wc -l)" -lt 2 ] || end_one
    run "$file" &
    files[$!]=$file
done
while [ -n "$(jobs -p)" ]; do end_one; done
exit "$outcome"
