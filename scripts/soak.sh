#!/bin/bash
# Damages recordings and models by the thousand; transcribes 200 files in a row; kills engines 200 times
# and hosts 20 times over queues of recordings, downloads 50 times; an hour of speech; then loads and runs every size
# with random weights, whole and sharded, through the command line and the engine; sizes as arguments,
# else all. Needs 10 GB of disk and of memory.
. "$(dirname "$0")/lib.sh"

[ $# -gt 0 ] || set -- tiny tiny.en base small medium large-v3-turbo large-v3
scripts/setup.sh
# With an example, so that features are the tests' and nothing is compiled twice.
cargo build --quiet --workspace --bin steno --bin steno-engine --bin random-models --example bench

# Random text fails every threshold: one temperature, and no repair of what can't be repaired.
transcribe() {
    target/debug/steno transcribe tests/data/sample.flac --model "$1" --output "$1/out" --format json \
        --force --quiet --language en --temperature 0 --beam-size 1 --no-repair
}

phase "damaged recordings and models" env STENO_DAMAGE_ROUNDS=1000 cargo test --quiet --workspace --test damage
phase "exporters" env PROPTEST_CASES=20000 cargo test --quiet --workspace --test round_trip
phase "predictions for large models" env STENO_FOOTPRINT_MODELS=small,large-v3-turbo \
    cargo test --quiet --workspace --test footprint -- --nocapture
phase "logits of a larger model in fewer bits" env STENO_PRECISION_MODELS=small \
    cargo test --quiet --workspace --test precisions logits -- --nocapture
phase "200 files in a row" env STENO_ENDURANCE_FILES=200 cargo test --quiet --workspace --test memory file_after -- --nocapture
phase "downloads killed" env STENO_KILL_ROUNDS=50 cargo test --quiet --workspace --test processes
phase "engines and hosts killed" env STENO_KILL_ROUNDS=200 cargo test --quiet --workspace --test it kills::

hour=${STENO_SHARED:-../shared}/audio/synthetic/en_five_minutes.flac
if [ -e "$hour" ]; then
    [ -e target/hour.wav ] || ffmpeg -loglevel error -stream_loop 11 -i "$hour" -ac 1 -ar 16000 target/hour.wav
    phase "an hour of speech" python3 scripts/hour.py target/debug/steno target/hour.wav
fi

for size in "$@"; do
    case $size in
    medium | large*) shards=3 ;;
    *) shards=1 ;;
    esac
    phase "$size: written" target/debug/random-models "$size" "target/models/$size-$shards" --shards "$shards"
    phase "$size: run" transcribe "target/models/$size-$shards"
done
finish
