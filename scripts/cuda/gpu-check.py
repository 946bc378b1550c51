"""Runs the checks of scripts/cuda/gpu-check.sh, which builds what they need, and writes what they found."""

import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
import wave
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
STENO = ROOT / "target/debug/steno"
TABLE = ROOT / "docs/measurements.md"
BEGIN, END = "<!-- make gpu-check: begin -->", "<!-- make gpu-check: end -->"
# What is predicted that a process holds besides its tensors, and what is kept free besides: crates/memory, in MiB.
FIXED = (ROOT / "crates/memory/src/footprint.rs", r"const GPU_FIXED: u64 = (\d+) \* MIB;")
RESERVE = (ROOT / "crates/memory/src/fit.rs", r"const RESERVE: u64 = (\d+) \* MIB;")
SAMPLE = ROOT / "tests/data/sample.flac"
STARTER = ROOT / "models/starter-whisper"
# Of crates/pipeline/tests/emulated: what asks nothing of the emulated driver.
TESTS = ["numbers_are_those_of_the_cpu_in_every", "a_card_chooses", "rows_depend", "jobs_give_the_words_of_the_cpu_in_every", "texts_have_the_vectors", "a_parakeet_have_the_numbers", "a_parakeet_gives"]
MB = 1 << 20

failures: list[str] = []


def run(what: str, command: list, **more) -> subprocess.CompletedProcess:
    """What a command says; one that fails is a failed check, and the others still run."""
    started = time.monotonic()
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=900, **more)
    print(f"{what}: {time.monotonic() - started:.1f} s", file=sys.stderr)
    if done.returncode != 0:
        failures.append(f"{what}: {(done.stderr.strip() or done.stdout.strip())[-600:]}")
    return done


def card() -> str:
    done = run("self-test", [STENO, "doctor", "--json"])
    report = json.loads(done.stdout) if done.returncode == 0 else {}
    engine = report.get("engine") or {}
    names = [device["name"] for device in engine.get("devices", []) if device["id"].startswith("cuda")]
    if not names:
        failures.append(f"self-test: the engine computes on the CPU: {engine.get('cpu_reason')}")
    return (report.get("device") or {}).get("name") or (names[0] if names else "no card")


def numbers(program: str) -> list[str]:
    environment = {**os.environ, "STENO_TEST_CARDS": "0"}
    done = run(
        "numbers",
        [program, *TESTS, "--include-ignored", "--nocapture", "--test-threads=1"],
        env=environment,
        cwd=ROOT / "crates/pipeline",
    )
    rows = []
    for line in done.stdout.splitlines():
        found = re.search(r"cuda:0 (\S+) held in (\S+): \{(.*)\}", line)
        if found is None:
            continue
        parts = re.findall(r'"(\w+)": \(([\d.e-]+), ([\d.e-]+)\)', found[3])
        worst = {name: 100 * float(apart) / max(float(largest), 1e-9) for name, apart, largest in parts}
        rows.append(f"| {found[1]} | {worst.get('encoder', 0):.4f} | {worst.get('logits', 0):.4f} | {worst.get('scores', 0):.4f} |")
    if not rows:
        failures.append("numbers: nothing was compared")
    return ["| precision | encoder, % of the largest number | logits | alignment |", "|-|-|-|-|", *rows]


def memory_and_speed(sizes: list[str], folder: Path, emulated: bool) -> list[str]:
    rows = []
    for size in sizes:
        model = folder / size
        if run(f"random weights, {size}", [ROOT / "target/debug/random-models", size, model]).returncode != 0:
            continue
        # The emulated card computes one window after the other.
        fewer = ["--batch-size", "2"] if emulated else []
        fit = run(f"memory, {size}", [STENO, "doctor", "--fit", model, "--device", "cuda:0", *fewer]).stdout
        stage = re.search(r"^transcription\s+([\d.]+ \w+)\s+([\d.]+ \w+)\s+([+-]\d+ %)", fit, re.MULTILINE)
        probed = run(f"speed, {size}", [STENO, "models", "probe", "--model", model, "--device", "cuda:0", "--json"])
        speed = json.loads(probed.stdout) if probed.returncode == 0 else {}
        print(speed, file=sys.stderr)
        predicted, used, off = stage.groups() if stage else ("?", "?", "?")
        if stage is None:
            failures.append(f"memory, {size}: {fit[-300:]}")
        # What a driver holds for itself is a card's own.
        elif abs(int(off.split()[0])) > 15 and not emulated:
            failures.append(f"memory, {size}: the prediction is off by {off}")
        rows.append(f"| {size} | {predicted} | {used} | {off} | {speed.get('speed', 0):.1f} | {speed.get('useful_batch', '?')} |")
    head = "| model, random weights, F16 | predicted peak | used | off by | times real time, one window at a time | most useful batch |"
    return [head, "|-|-|-|-|-|-|", *rows]


def recording(path: Path, seconds: int) -> Path:
    """Noise: what the network is given is the same work, and the number of tokens is fixed."""
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, 16_000, 0, "NONE", ""))
        loud = random.Random(1).randbytes(2 * 16_000 * 30)
        for _ in range(seconds // 30):
            file.writeframes(loud)
    return path


def whole(program: str, sizes: list[str], folder: Path, emulated: bool, batch: int) -> list[str]:
    """A whole recording, and the network alone beside transformers where python3 has it."""
    tokens, seconds = ("5", 60) if emulated else ("110", 960)
    sound = recording(folder / "noise.wav", seconds)
    peers = {}
    for windows in (1, batch):
        done = subprocess.run(
            ["python3", ROOT / "scripts/cuda/peer.py", str(windows), tokens, *sizes], capture_output=True, text=True
        )
        for line in done.stdout.splitlines() if not emulated else []:
            found = json.loads(line)
            peers[found["size"], windows] = found
            print(found, file=sys.stderr)
        print(f"transformers: {done.stderr.strip()[-300:] or 'measured'}", file=sys.stderr)
    # A program goes on while the card computes: what is the encoder's and what the decoder's can't be told apart.
    head = "| model, F16 | windows at once | times real time, file to text | on the card, MB | encoder and decoder, ms per window | transformers |"
    rows = [head, "|-|-|-|-|-|-|"]
    for size in sizes:
        for windows in (1, batch):
            strategy = "sequential" if windows == 1 else "batched"
            command = [program, folder / size, sound, "f16", strategy, tokens, "cuda", str(windows)]
            done = run(f"whole, {size}, {windows}", command)
            if done.returncode != 0:
                continue
            found = json.loads(done.stdout.splitlines()[-1])
            took = {stage["name"]: stage["seconds"] for stage in found["stages"]}
            network = 1000 * (took.get("encode", 0) + took.get("decode", 0)) / found["windows"]
            peer = peers.get((size, windows))
            theirs = (
                f"{(peer['encoder'] + int(tokens) * peer['token']) / windows:.1f}" if peer else "not installed"
            )
            rows.append(
                f"| {size} | {windows} | {seconds / found['seconds']:.0f} | {found['on_card']}"
                f" | {network:.1f} | {theirs} |"
            )
            print(found, file=sys.stderr)
    return rows


def out_of_memory(program: str) -> dict:
    done = run("out of memory", [program, STARTER, SAMPLE], cwd=ROOT)
    found = json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else {}
    if found and found["left"] > 0:
        failures.append(f"release: {found['left']} bytes are left of decoding")
    if found and found["fixed"] > (number(FIXED) + number(RESERVE)) * MB:
        failures.append(f"memory: a process holds {found['fixed'] / MB:.0f} MB besides its tensors, more than is expected")
    if found and not found["same_words"]:
        failures.append("out of memory: other words than undisturbed")
    return found


def number(place: tuple[Path, str]) -> int:
    path, pattern = place
    found = re.search(pattern, path.read_text())
    if found is None:
        sys.exit(f"{path}: there is no {pattern}")
    return int(found[1])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--emulated", action="store_true")
    parser.add_argument("--numbers", required=True)
    parser.add_argument("--out-of-memory", required=True)
    parser.add_argument("--whole", required=True)
    parser.add_argument("--sizes", nargs="+", required=True)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"XDG_STATE_HOME": folder, "XDG_CONFIG_HOME": folder, "XDG_DATA_HOME": folder}
        name = card()
        lines = [BEGIN, "", f"`make gpu-check` on {name}, {time.strftime('%Y-%m-%d')}. Differences are from the CPU in 32 bits.", ""]
        lines += [*numbers(asked.numbers), ""]
        lines += [*memory_and_speed(asked.sizes, Path(folder), asked.emulated), ""]
        # Two of the emulated card's, else as many as `Auto` takes on a card that was not probed.
        batch = 2 if asked.emulated else 16
        lines += [*whole(asked.whole, asked.sizes, Path(folder), asked.emulated, batch), ""]
        found = out_of_memory(asked.out_of_memory)
    if found:
        steps = ", ".join(step.replace("_", " ") for step in found["steps"])
        lines += [
            f"Memory taken away while it decodes: {steps}; the same {found['words']} words. "
            f"A process holds {found['fixed'] / MB:.0f} MB besides its tensors, and nothing is left of decoding.",
            "",
        ]
    lines.append(END)
    print("\n".join(lines))
    for failure in failures:
        print(f"failed: {failure}", file=sys.stderr)
    if not asked.emulated and not failures:
        text = TABLE.read_text()
        start, end = text.index(BEGIN), text.index(END) + len(END)
        TABLE.write_text(text[:start] + "\n".join(lines) + text[end:])
    sys.exit(1 if failures else 0)


main()
