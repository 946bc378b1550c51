#!/bin/bash
# Steno beside faster-whisper (CTranslate2) and whisper.cpp, in turns, with the same weights and threads;
# sizes as arguments, else tiny, base and small. Takes what it needs of Python from PyPI, once.
. "$(dirname "$0")/lib.sh"

[ $# -gt 0 ] || set -- tiny base small
scripts/setup.sh
cargo build --quiet --workspace --bin steno --bin steno-engine --bin random-models --example bench
work=target/peers
if [ ! -x $work/venv/bin/python ]; then
    python3 -m venv $work/venv
    $work/venv/bin/pip install --quiet faster-whisper pywhispercpp safetensors numpy
fi
for size in "$@"; do
    target/debug/random-models "$size" "target/models/$size" >/dev/null
done
# Their vocabulary is a public one's: the starter's own is known to no peer.
starter=${STENO_SHARED:-../shared}/models/starter-full
recording=$work/recording.wav
[ -e $recording ] || ffmpeg -loglevel error -stream_loop 8 -i tests/data/sample.flac -t 60 -ac 1 -ar 16000 $recording
say "$(nproc) threads, $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)"
$work/venv/bin/pip list 2>/dev/null | grep -iE '^(ctranslate2|faster-whisper|pywhispercpp) ' || true
$work/venv/bin/python scripts/peers/bench.py target/models "$starter" $work $recording "$@"
