"""Steno beside its peers, in turns, as a table; scripts/bench-peers.sh prepares what it needs.

    bench.py MODELS STARTER WORK RECORDING SIZE...
"""

import json
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
THREADS = str(os.cpu_count())
# Steno's precision, CTranslate2's, whisper.cpp's; its convolution takes weights in 16 bits only.
CLASSES = [("f32", "float32", None), ("f16", None, "f16"), ("q8_0", "int8", "q8_0")]


def output(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        # A peer that crashes is a result, not a reason to stop.
        print(f"bench: {' '.join(command)}: ended with {done.returncode}: {done.stderr[-300:]}", file=sys.stderr)
        return None
    return done.stdout.strip().splitlines()[-1]


def peer(*arguments):
    line = output(sys.executable, str(HERE / "measure.py"), *arguments)
    return json.loads(line) if line else None


def steno(folder, precision):
    line = output("target/debug/examples/bench", str(folder), "--precision", precision)
    if line is None:
        return None
    # scripts/bench.sh has the names of the columns.
    _, _, _, encoder, _, share, _, greedy, _, beams, _, _, peak, _ = [cell.strip() for cell in line.split("|")]
    number = lambda text: float(text) if text != "?" else None
    return {"encoder": number(encoder), "share": share, "greedy": number(greedy), "beams": number(beams),
            "peak": number(peak)}


def row(size, name, precision, found):
    found = found or {}
    cells = [found.get(key) for key in ("encoder", "greedy", "beams", "peak")]
    text = ["-" if cell is None else f"{cell:g}" for cell in cells]
    print(f"| {size} | {name} | {precision} | " + " | ".join(text) + f" | {found.get('share', '')} |", flush=True)


def convert(form, folder, out, *kind):
    if not out.exists():
        partial = out.with_name(out.name + ".partial")
        subprocess.run([sys.executable, str(HERE / "convert.py"), form, str(folder), str(partial), *kind], check=True)
        partial.rename(out)
    return str(out)


def networks(models, work, sizes):
    print("| model | program | weights | encoder ms | greedy ms per token | 5 beams ms per step | peak MB | encoder's share of the matrix peak |")
    print("|-|-|-|-|-|-|-|-|")
    for size in sizes:
        folder = models / size
        for ours, theirs, ggml in CLASSES:
            row(size, "Steno", ours, steno(folder, ours))
            if theirs:
                converted = convert("ctranslate2", folder, work / f"{size}-ct2")
                row(size, "CTranslate2", theirs, peer("ctranslate2", converted, theirs, THREADS))
            if ggml:
                converted = convert("ggml", folder, work / f"{size}-{ggml}.bin", ggml)
                row(size, "whisper.cpp", ggml, peer("whisper.cpp", converted, THREADS))


def whole(starter, work, recording):
    """Seconds for a whole recording, models loaded before: decoding the file, spectrogram, text."""
    folder = convert("ctranslate2", starter, work / "starter-ct2")
    print("\n| program | weights | seconds for the recording | times real time |")
    print("|-|-|-|-|")
    for ours, theirs, ggml in CLASSES:
        report = output(
            "target/debug/steno", "transcribe", recording, "--model", str(starter), "--device", "cpu",
            "--precision", ours, "--temperature", "0", "--no-repair", "--no-word-times", "--vad", "off",
            "--language", "en", "--json-events", "--quiet", "--output", str(work), "--format", "json", "--force",
        )
        told = json.loads((work / (Path(recording).stem + ".json")).read_text()) if report is not None else None
        seconds = {}
        if told:
            stages = dict(told["run"]["stages"])
            seconds["Steno", ours] = stages["preprocess"] + stages["transcribe"]
            length = told["source"]["duration"]
        if theirs:
            found = peer("faster-whisper", folder, theirs, THREADS, recording)
            seconds["faster-whisper", theirs] = found and found["seconds"]
        if ggml:
            file = convert("ggml", starter, work / f"starter-{ggml}.bin", ggml)
            found = peer("whole", file, THREADS, recording)
            seconds["whisper.cpp", ggml] = found and found["seconds"]
        for (name, precision), taken in seconds.items():
            if taken:
                print(f"| {name} | {precision} | {taken:.2f} | {length / taken:.1f} |", flush=True)


if __name__ == "__main__":
    models, starter, work, recording, *sizes = sys.argv[1:]
    networks(Path(models), Path(work), sizes)
    whole(Path(starter), Path(work), recording)
