#!/bin/bash
# The long runs: the full corpus; every precision and many failing allocations of an emulated graphics card;
# speakers of eight hours; thousands of damaged recordings and models; hubs and engines that send anything; small
# disks; 200 files in a row; 200 kills of engines, 20 of hosts, 50 of servers, 50 of downloads; 200 recordings by three
# workers that are killed; an hour of speech; then every size of model with random weights, whole and sharded, from the
# command line. Sizes as arguments, else all.
# Needs 10 GB of disk and of memory, and the folder of recordings that STENO_SHARED names (else ../shared).
. "$(dirname "$0")/lib.sh"

[ $# -gt 0 ] || set -- tiny tiny.en base small medium large-v3-turbo large-v3
export STENO_SHARED=${STENO_SHARED:-$root/../shared}
speech=$STENO_SHARED/audio/synthetic/en_five_minutes.flac
[ -e "$speech" ] || fail "$speech is missing. Set STENO_SHARED to the folder that holds the recordings."
scripts/setup.sh engine test
scripts/cuda/mock/build.sh
# With an example, so that the features are those of the tests and nothing is compiled twice.
cargo build --quiet --workspace --bin steno --bin steno-engine --bin steno-player --bin random-models --example bench
export STENO_ENGINE=$root/target/debug/steno-engine

# Random text fails every threshold: one temperature, and no repair.
transcribe() {
    target/debug/steno transcribe tests/data/sample.flac --model "$1" --output "$1/out" --format json \
        --force --quiet --language en --temperature 0 --beam-size 1 --no-repair
}

# tests VARIABLE=VALUE NAME...: the tests whose names contain one of these, as large as the variable says.
tests() {
    local size=$1
    shift
    env "$size" cargo test --quiet --workspace --no-fail-fast -- --include-ignored --nocapture "$@"
}

phase "the full corpus" cargo test --quiet --workspace --no-fail-fast -- --ignored
phase "damaged recordings and models" tests STENO_DAMAGE_ROUNDS=1000 damage
phase "exporters" tests PROPTEST_CASES=20000 is_read_back are_read_back txt_has_a_line shaped_subtitles \
    pages_and_documents reading_never_panics
phase "predictions for large models" tests STENO_FOOTPRINT_MODELS=small,large-v3-turbo decoding_takes_what_was_predicted
phase "logits of a larger model in fewer bits" tests STENO_PRECISION_MODELS=small logits_stay_near
phase "the emulated card, every precision" scripts/cuda/mock/test.sh --include-ignored
phase "the checks for a real card, on the emulated one" scripts/cuda/gpu-check.sh --emulated
phase "the downloaded engine in a bare root" scripts/package/bare-root.sh
phase "allocations of the emulated card fail" tests STENO_MOCK_ROUNDS=400 allocation_may_fail
phase "200 files in a row" tests STENO_ENDURANCE_FILES=200 file_after_file
phase "downloads killed" tests STENO_KILL_ROUNDS=50 a_program_killed
phase "hostile hubs and engines" tests STENO_HOSTILE_ROUNDS=1000 hostile_hubs hostile_engines
phase "small disks" tests STENO_DISK_SIZES=64 small_disks
phase "engines and hosts killed" tests STENO_KILL_ROUNDS=200 engines_killed hosts_killed no_engine_survives
phase "servers killed" tests STENO_KILL_ROUNDS=50 servers_killed
phase "an hour of speech" an_hour

for size in "$@"; do
    case $size in
    medium | large*) shards=3 ;;
    *) shards=1 ;;
    esac
    phase "$size: written" target/debug/random-models "$size" "target/models/$size-$shards" --shards "$shards"
    phase "$size: run" transcribe "target/models/$size-$shards"
done
finish
