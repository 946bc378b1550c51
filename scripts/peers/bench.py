"""Steno beside its peers, in turns, as tables; scripts/bench-peers.sh prepares what it needs.

    bench.py files STARTER WORK ROUNDS RECORDING...
    bench.py lengths STARTER WORK ROUNDS RECORDING...   Steno alone
    bench.py networks MODELS WORK SIZE...
    bench.py whole MODELS WORK ROUNDS RECORDING SIZE...

The environment variable THREADS is how many threads each program has, if unset as many as there are cores; Steno's
command line, which `files` and `lengths` run, takes no more than there are cores.
"""

import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
THREADS = os.environ.get("THREADS") or str(os.cpu_count())
os.environ["RAYON_NUM_THREADS"] = THREADS
# Of one window of 30 s: what speech has.
TOKENS = "110"
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


def held_in(precision, folder, work):
    """In 8 bits a copy in a file of 8 bits, as whisper.cpp has: of another, pages are mapped beside the weights that are held."""
    copy = work / f"{folder.name}-{precision}"
    if precision != "q8_0":
        return folder
    if not copy.exists():
        partial = copy.with_name(copy.name + ".partial")
        shutil.rmtree(partial, ignore_errors=True)
        command = ["target/debug/steno", "models", "quantize", str(folder), "--to", precision, "--output", str(partial)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        partial.rename(copy)
    return copy


def networks(models, work, sizes):
    print("| model | program | weights | encoder ms | greedy ms per token | 5 beams ms per step | peak MB | encoder's share of the matrix peak |")
    print("|-|-|-|-|-|-|-|-|")
    for size in sizes:
        folder = models / size
        for ours, theirs, ggml in CLASSES:
            row(size, "Steno", ours, steno(held_in(ours, folder, work), ours))
            if theirs:
                converted = convert("ctranslate2", folder, work / f"{size}-ct2")
                row(size, "CTranslate2", theirs, peer("ctranslate2", converted, theirs, THREADS))
            if ggml:
                converted = convert("ggml", folder, work / f"{size}-{ggml}.bin", ggml)
                row(size, "whisper.cpp", ggml, peer("whisper.cpp", converted, THREADS))


def steno_file(starter, work, precision, recording):
    """The whole command: reading the file, loading the model, writing the text."""
    out = work / "steno"
    command = [
        "target/debug/steno", "transcribe", recording, "--model", str(starter), "--device", "cpu", "--threads", THREADS,
        "--precision", precision, "--temperature", "0", "--no-repair", "--no-word-times", "--vad", "off",
        "--language", "en", "--quiet", "--output", str(out), "--format", "txt,json", "--force",
    ]
    started = time.perf_counter()
    # The peak is that of the largest of its processes, the engine.
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    _, _, used = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - started
    written = out / (Path(recording).stem + ".json")
    if not written.exists():
        print(f"bench: {' '.join(command)}: {process.stderr.read()[-300:]}", file=sys.stderr)
        return None
    text = " ".join(segment["text"].strip() for segment in json.loads(written.read_text())["segments"])
    written.unlink()
    return {"seconds": seconds, "peak": used.ru_maxrss // 1024, "text": text}


def duration(recording):
    command = ["ffprobe", "-v", "error", "-show_entries", "format=duration", "-of", "csv=p=0", recording]
    return float(output(*command))


def files(starter, work, rounds, recordings, with_peers=True):
    """Whole recordings, by turns, so that a change of the machine's speed meets all programs alike."""
    folder = convert("ctranslate2", starter, work / "starter-ct2") if with_peers else None
    programs = []
    for ours, theirs, ggml in CLASSES:
        programs.append(("Steno", ours, lambda file, ours=ours: steno_file(starter, work, ours, file)))
        if not with_peers:
            continue
        if theirs:
            programs.append(("faster-whisper", theirs, lambda file, theirs=theirs: peer(
                "faster-whisper", folder, theirs, THREADS, file)))
        if ggml:
            model = convert("ggml", starter, work / f"starter-{ggml}.bin", ggml)
            programs.append(("whisper.cpp", ggml, lambda file, model=model: peer(
                "whisper.cpp-file", model, THREADS, file)))
    print(f"Median of {rounds} runs, least and most in brackets.\n")
    print("| recording | program | weights | seconds, file to text | times real time | peak MB | words |")
    print("|-|-|-|-|-|-|-|")
    for recording in recordings:
        length, found = duration(recording), {}
        for _ in range(rounds):
            for name, precision, run in programs:
                if result := run(recording):
                    found.setdefault((name, precision), []).append(result)
        for (name, precision), results in found.items():
            seconds = [result["seconds"] for result in results]
            median = statistics.median(seconds)
            words = len(re.findall(r"\w+", results[0]["text"]))
            print(
                f"| {Path(recording).name}, {length:.0f} s | {name} | {precision} | {median:.2f} ({min(seconds):.2f} to"
                f" {max(seconds):.2f}) | {length / median:.1f} | {max(result['peak'] for result in results)} | {words} |",
                flush=True,
            )


def steno_whole(folder, precision, strategy, recording):
    line = output("target/debug/examples/whole", str(folder), recording, precision, strategy, TOKENS)
    return json.loads(line) if line else None


def whole(models, work, rounds, recording, sizes):
    """A whole recording with the true dimensions, as many tokens in each window as speech has."""
    length = duration(recording)
    print(f"{TOKENS} tokens per window; median of {rounds} runs, least and most in brackets.\n")
    print("| model | program | weights | windows at once | seconds, file to text | times real time | peak MB |")
    print("|-|-|-|-|-|-|-|")
    for size in sizes:
        folder, found = models / size, {}
        converted = convert("ctranslate2", folder, work / f"{size}-ct2")
        for _ in range(rounds):
            for ours, theirs, _ in CLASSES:
                for strategy, windows in [("sequential", "1"), ("batched", "4")]:
                    result = steno_whole(held_in(ours, folder, work), ours, strategy, recording)
                    found.setdefault(("Steno", ours, windows), []).append(result)
                    if theirs:
                        result = peer("forced", converted, theirs, THREADS, recording, windows, TOKENS)
                        found.setdefault(("faster-whisper", theirs, windows), []).append(result)
        for (name, precision, windows), results in found.items():
            results = [result for result in results if result]
            if not results:
                continue
            seconds = [result["seconds"] for result in results]
            median = statistics.median(seconds)
            print(
                f"| {size} | {name} | {precision} | {windows} | {median:.1f} ({min(seconds):.1f} to {max(seconds):.1f})"
                f" | {length / median:.1f} | {max(result['peak'] for result in results)} |",
                flush=True,
            )


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["files", starter, work, rounds, *recordings]:
            files(Path(starter), Path(work), int(rounds), recordings)
        case ["lengths", starter, work, rounds, *recordings]:
            files(Path(starter), Path(work), int(rounds), recordings, with_peers=False)
        case ["whole", models, work, rounds, recording, *sizes]:
            whole(Path(models), Path(work), int(rounds), recording, sizes)
        case ["networks", models, work, *sizes]:
            networks(Path(models), Path(work), sizes)
        case _:
            sys.exit(__doc__)
