#!/bin/bash
# Steno beside faster-whisper (CTranslate2) and whisper.cpp, by turns, on the same machine, with the same weights
# and threads. First whole recordings from file to text, with the demonstration model; then the parts of the
# network with random weights, for the sizes given as arguments, else tiny, base and small: five minutes with as
# many tokens as speech has, then the parts alone. ROUNDS (5) is how often each recording is transcribed,
# ROUNDS_WHOLE (3) how often with random weights, SECONDS_LONG (600) the length of the longer recording.
# Installs the peers from PyPI, once.
. "$(dirname "$0")/lib.sh"

[ $# -gt 0 ] || set -- tiny base small
scripts/setup.sh engine peers
cargo build --quiet --workspace --bin steno --bin steno-engine --bin random-models --example bench --example whole
export STENO_ENGINE=$root/target/debug/steno-engine
work=target/peers
if [ ! -x $work/venv/bin/python ]; then
    python3 -m venv $work/venv
    $work/venv/bin/pip install --quiet faster-whisper pywhispercpp safetensors numpy
fi
python=$work/venv/bin/python

# The peers know special tokens by their numbers in a public model.
starter=$work/starter-wide
[ -e $starter/model.safetensors ] || $python scripts/peers/convert.py widen models/starter-whisper $starter
# recording SECONDS FILE: the sample, over and over.
recording() {
    [ -e "$2" ] || ffmpeg -loglevel error -stream_loop -1 -i tests/data/sample.flac -t "$1" -ac 1 -b:a 96k "$2"
}
recording 60 $work/minute.mp3
recording "${SECONDS_LONG:-600}" "$work/${SECONDS_LONG:-600}-seconds.mp3"

say "$(nproc) threads, $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), load $(cut -d ' ' -f 1 /proc/loadavg)"
$work/venv/bin/pip list 2>/dev/null | grep -iE '^(ctranslate2|faster-whisper|pywhispercpp) ' || true
$python scripts/peers/bench.py files $starter $work "${ROUNDS:-5}" $work/minute.mp3 "$work/${SECONDS_LONG:-600}-seconds.mp3"
printf '\n'
for size in "$@"; do
    target/debug/random-models "$size" "target/models/$size" >/dev/null
done
recording 300 $work/300-seconds.mp3
$python scripts/peers/bench.py whole target/models $work "${ROUNDS_WHOLE:-3}" $work/300-seconds.mp3 "$@"
printf '\n'
$python scripts/peers/bench.py networks target/models $work "$@"
