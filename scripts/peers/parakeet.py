"""Steno's Parakeet encoder beside ONNX Runtime, which onnx-asr computes with, on the same random weights.

    parakeet.py FOLDER WORK [ROUNDS]

FOLDER: a model of `random-models parakeet-tdt-0.6b-v3 FOLDER --precision f32`; WORK gets its ONNX files, the one in 8
bits made by ONNX Runtime's dynamic quantisation, as those that onnx-asr downloads. One window of 30.5 s, best of
three runs after a warm-up, ROUNDS (3) processes of each by turns; the table has the best and the worst of them.
Python with torch, transformers, onnx, onnxscript and onnxruntime; `cargo build --workspace --example bench_parakeet`.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

FRAMES = 3050
THREADS = os.cpu_count()
CLASSES = [("f32", "encoder.onnx"), ("q8_0", "encoder.int8.onnx")]


def export(folder, work):
    import torch
    from onnxruntime.quantization import QuantType, quantize_dynamic
    from transformers import ParakeetForTDT

    model = ParakeetForTDT.from_pretrained(folder, dtype=torch.float32).eval()
    model.set_attn_implementation("eager")

    class Encoder(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder, self.projector = model.encoder, model.encoder_projector

        def forward(self, features):
            return self.projector(self.encoder(input_features=features).last_hidden_state)

    features = torch.randn(1, FRAMES, model.config.encoder_config.num_mel_bins)
    whole, small = (str(work / name) for _, name in CLASSES)
    torch.onnx.export(
        Encoder(), (features,), whole, input_names=["features"], output_names=["frames"], dynamo=True,
        opset_version=18, external_data=True,
    )
    quantize_dynamic(whole, small, weight_type=QuantType.QUInt8, op_types_to_quantize=["MatMul"], use_external_data_format=True)


def measure(file):
    import numpy as np
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = THREADS
    session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
    bands = session.get_inputs()[0].shape[2]
    features = np.random.default_rng(1).normal(0, 1, (1, FRAMES, bands)).astype(np.float32)
    times = []
    for _ in range(4):
        started = time.perf_counter()
        session.run(None, {"features": features})
        times.append(time.perf_counter() - started)
    with open("/proc/self/status") as status:
        anonymous = next(int(line.split()[1]) for line in status if line.startswith("RssAnon"))
    print(json.dumps({"ms": 1000 * min(times[1:]), "mb": anonymous // 1024}))


def last_line(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip().splitlines()[-1]


def steno(folder, precision):
    cells = [cell.strip() for cell in last_line("target/debug/examples/bench_parakeet", folder, precision).split("|")]
    return {"ms": float(cells[3]), "mb": int(cells[8])}


def peer(file):
    return json.loads(last_line(sys.executable, __file__, "measure", str(file)))


def main(folder, work, rounds=3):
    work = Path(work)
    work.mkdir(parents=True, exist_ok=True)
    if not all((work / name).exists() for _, name in CLASSES):
        export(folder, work)
    print("| program | weights | encoder, one window, ms | anonymous MB |\n|-|-|-|-|")
    for precision, name in CLASSES:
        ours, theirs = [], []
        for _ in range(int(rounds)):
            ours.append(steno(folder, precision))
            theirs.append(peer(work / name))
        for program, weights, found in (("Steno", precision, ours), ("ONNX Runtime", name, theirs)):
            times = [one["ms"] for one in found]
            print(f"| {program} | {weights} | {min(times):.0f} to {max(times):.0f} | {max(one['mb'] for one in found)} |", flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "measure":
        measure(sys.argv[2])
    else:
        main(*sys.argv[1:])
