"""Steno beside onnx-asr, which computes with ONNX Runtime, on the same random weights of a Parakeet.

    parakeet.py FOLDER WORK RECORDING [ROUNDS [WHISPER]]

FOLDER: a model of `random-models parakeet-tdt-0.6b-v3 FOLDER --precision f32`; WORK gets its copies: in 8 bits for
Steno, and in the layout of onnx-asr in 32 and 8 bits, the latter made by ONNX Runtime's dynamic quantisation as those
that onnx-asr downloads. RECORDING: FLAC or WAV, 16 kHz, one channel. ROUNDS (3) processes of each program by turns.
WHISPER: a model of `random-models small WHISPER --precision f32`, which Steno reads in the same run, with as many forced
tokens.

First a window of 30.5 s: the encoder, and the decoder for as many tokens as speech has, best of three runs after a
warm-up. Then the recording from file to text with one text followed: Steno's whole command, which finds speech and cuts
the recording at pauses; onnx-asr from before the model is loaded, without Python's imports and without looking for
speech, in pieces of 30 s. Of the whole, peaks of what all processes have in memory, without what Python's
imports take.

Python with torch, transformers, onnx, onnxscript, onnx-asr, onnxruntime and soundfile;
`cargo build --workspace --bins --example bench_parakeet --example bench --example whole`.
"""

import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

import bench
import numpy as np

FRAMES = 3050
PIECE = 30
RATE = 16000
# Of 30 s of speech, as in bench_parakeet.
TOKENS, STEPS = 110, 190
THREADS = os.cpu_count()
# Steno's precision, and what onnx-asr calls that of its files.
CLASSES = [("f32", None), ("q8_0", "int8")]
FILES = ["encoder-model", "decoder_joint-model"]


def named(file, quantization):
    return f"{file}.{quantization}.onnx" if quantization else f"{file}.onnx"


def lively(folder, recording, out):
    """A copy that writes about as many tokens as there are in speech. What a random encoder makes of a recording is nearly
    the same in all of it, of which each frame would be the same token: frames are spread out. Each step goes two frames
    on, and how likely no token is decides how many there are."""
    import soundfile
    import torch
    from onnx_asr.preprocessors.preprocessor import OnnxPreprocessor
    from safetensors.torch import load_file, save_file
    from transformers import ParakeetForTDT

    samples, _ = soundfile.read(recording, dtype="float32", frames=PIECE * RATE)
    sound, length = samples[None], np.array([len(samples)])
    features, _ = OnnxPreprocessor("nemo128", {"providers": ["CPUExecutionProvider"]})(sound, length)
    model = ParakeetForTDT.from_pretrained(folder, dtype=torch.float32).eval()
    blank, weights = model.config.blank_token_id, load_file(folder / "model.safetensors")
    projector, head = model.encoder_projector, model.joint.head

    def tokens(frames):
        found, last, state = 0, torch.tensor([[blank]]), None
        for frame in frames[::2]:
            hidden, after = model.decoder.lstm(model.decoder.embedding(last), state)
            logits = head((frame + model.decoder.decoder_projector(hidden[0, 0])).relu())
            token = logits[:blank + 1].argmax()
            if token != blank:
                found, last, state = found + 1, token[None, None], after
        return found

    with torch.no_grad():
        frames = model.encoder(input_features=torch.from_numpy(features).transpose(1, 2)).last_hidden_state[0]
        mean, spread = frames.mean(0), frames.std(0)
        projector.weight /= spread
        projector.bias -= projector.weight @ mean
        head.weight[blank + 1:] = 0
        head.bias[blank + 1:] = torch.eye(head.out_features - blank - 1)[2]
        frames, low, high = projector(frames), -100.0, 100.0
        while high - low > 0.01:
            head.bias[blank] = (low + high) / 2
            low, high = (low, (low + high) / 2) if tokens(frames) < TOKENS else ((low + high) / 2, high)
        for name, changed in [("encoder_projector", projector), ("joint.head", head)]:
            weights[f"{name}.weight"], weights[f"{name}.bias"] = changed.weight.data, changed.bias.data
    out.mkdir()
    save_file(weights, out / "model.safetensors")
    for name in ["tokenizer.json", "config.json"]:
        shutil.copy(folder / name, out)


def export(folder, out):
    import torch
    from onnxruntime.quantization import QuantType, quantize_dynamic
    from transformers import ParakeetForTDT

    model = ParakeetForTDT.from_pretrained(folder, dtype=torch.float32).eval()
    model.set_attn_implementation("eager")
    bands, width = model.config.encoder_config.num_mel_bins, model.config.encoder_config.hidden_size
    state = (model.config.num_decoder_layers, 1, model.config.decoder_hidden_size)

    class Encoder(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder = model.encoder

        def forward(self, audio_signal, length):
            frames = self.encoder(input_features=audio_signal.transpose(1, 2)).last_hidden_state
            return frames.transpose(1, 2), (length - 1) // 8 + 1

    class DecoderJoint(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.projector, self.decoder, self.joint = model.encoder_projector, model.decoder, model.joint

        def forward(self, encoder_outputs, targets, target_length, input_states_1, input_states_2):
            predicted, (hidden, cells) = self.decoder.lstm(
                self.decoder.embedding(targets), (input_states_1, input_states_2)
            )
            frames = self.projector(encoder_outputs.transpose(1, 2))
            sums = frames[:, :, None] + self.decoder.decoder_projector(predicted)[:, None]
            return self.joint.head(sums.relu()), target_length + 0, hidden, cells

    torch.onnx.export(
        Encoder(), (torch.randn(1, bands, FRAMES), torch.tensor([FRAMES])), str(out / named(FILES[0], None)),
        input_names=["audio_signal", "length"], output_names=["outputs", "encoded_lengths"], dynamo=True,
        dynamic_shapes={"audio_signal": {2: torch.export.Dim("frames", min=64, max=6000)}, "length": {}},
        opset_version=18, external_data=True,
    )
    torch.onnx.export(
        DecoderJoint(),
        (torch.randn(1, width, 1), torch.tensor([[1]]), torch.tensor([1]), torch.zeros(state), torch.zeros(state)),
        str(out / named(FILES[1], None)), dynamo=False, opset_version=18,
        input_names=["encoder_outputs", "targets", "target_length", "input_states_1", "input_states_2"],
        output_names=["outputs", "prednet_lengths", "output_states_1", "output_states_2"],
    )
    for file in FILES:
        quantize_dynamic(
            str(out / named(file, None)), str(out / named(file, "int8")), weight_type=QuantType.QUInt8,
            op_types_to_quantize=["MatMul"] if file == FILES[0] else None,
            use_external_data_format=file == FILES[0],
        )
    tokens = [piece for piece, _ in sorted(json.loads((folder / "tokenizer.json").read_text())["model"]["vocab"].items(),
                                           key=lambda entry: entry[1])]
    lines = [f"{piece} {number}" for number, piece in enumerate([*tokens, "<blk>"])]
    (out / "vocab.txt").write_text("\n".join(lines) + "\n")
    about = {"model_type": "nemo-conformer-tdt", "features_size": bands, "subsampling_factor": 8, "max_tokens_per_step": 10}
    (out / "config.json").write_text(json.dumps(about))


def resident(process="self"):
    """Bytes, those of mapped files as well, from which ONNX Runtime computes; 0 of a process that has ended."""
    try:
        with open(f"/proc/{process}/status") as status:
            return next((int(line.split()[1]) << 10 for line in status if line.startswith("VmRSS")), 0)
    except (FileNotFoundError, ProcessLookupError):
        return 0


def loaded(folder, quantization):
    import onnx_asr
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = THREADS
    return onnx_asr.load_model(
        "nemo-conformer-tdt", folder, quantization=quantization or None, sess_options=options,
        providers=["CPUExecutionProvider"],
    )


def best(work):
    work()
    times = []
    for _ in range(3):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return min(times)


def window(folder, quantization):
    """Of onnx-asr, in this process: ms of the encoder and of the decoder's steps."""
    asr = loaded(folder, quantization).asr
    features = np.random.default_rng(1).normal(0, 1, (1, asr.config["features_size"], FRAMES)).astype(np.float32)
    frames, _ = asr._encode(features, np.array([FRAMES]))
    encoding = best(lambda: asr._encode(features, np.array([FRAMES])))

    def read():
        tokens, state = [], asr._create_state()
        for step in range(STEPS):
            logits, _, after = asr._decode(tokens, state, frames[0, step])
            logits.argmax()
            if step < TOKENS:
                tokens, state = [*tokens, step], after

    print(json.dumps({"encoder": 1000 * encoding, "decoder": 1000 * best(read)}))


def whole(folder, quantization, recording):
    """Of onnx-asr, in this process, from file to text."""
    import onnx_asr  # noqa: F401  What it takes is not the model's.
    import soundfile

    before, started = resident(), time.perf_counter()
    model = loaded(folder, quantization)
    spent, counts = {"load": time.perf_counter() - started, "encoder": 0, "decoder": 0}, {"steps": 0, "tokens": 0}

    def timed(name, function):
        def call(*arguments, **options):
            begun = time.perf_counter()
            found = function(*arguments, **options)
            found = list(found) if name == "decoder" else found
            spent[name] += time.perf_counter() - begun
            return found
        return call

    def counted(*arguments):
        counts["steps"] += 1
        return step(*arguments)

    asr, step = model.asr, model.asr._decode
    asr._encode, asr._decoding, asr._decode = timed("encoder", asr._encode), timed("decoder", asr._decoding), counted
    samples, rate = soundfile.read(recording, dtype="float32")
    texts = []
    with_tokens = model.with_timestamps()
    for begin in range(0, len(samples), PIECE * rate):
        result = with_tokens.recognize(samples[begin:begin + PIECE * rate], sample_rate=rate)
        texts.append(result.text)
        counts["tokens"] += len(result.tokens)
    seconds = time.perf_counter() - started
    print(json.dumps({"seconds": seconds, "before": before, "words": len(" ".join(texts).split())} | spent | counts))


def tree(process):
    """The process and all that it began."""
    found = [process]
    for parent in found:
        try:
            for task in Path(f"/proc/{parent}/task").iterdir():
                found += map(int, (task / "children").read_text().split())
        except (FileNotFoundError, ProcessLookupError):
            pass
    return found


def watched(*command):
    """What a command wrote to its standard output and error, seconds, and the peak of what its processes had in memory."""
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    peak, is_over = 0, threading.Event()

    def watch():
        nonlocal peak
        while not is_over.wait(0.01):
            peak = max(peak, sum(map(resident, tree(process.pid))))

    watcher = threading.Thread(target=watch)
    watcher.start()
    written, notes = process.communicate()
    seconds = time.perf_counter() - started
    is_over.set()
    watcher.join()
    if process.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: {notes[-500:]}")
    return written, notes, seconds, peak


def steno_window(folder, precision):
    command = ["target/debug/examples/bench_parakeet", str(folder), precision]
    line = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip().splitlines()[-1]
    cells = [cell.strip() for cell in line.split("|")]
    return {"encoder": float(cells[3]), "decoder": TOKENS * float(cells[5]) + STEPS * float(cells[6])}


def steno_whole(folder, precision, recording, work, beams):
    out = work / "steno"
    _, notes, seconds, peak = watched(
        "target/debug/steno", "transcribe", recording, "--model", str(folder), "--precision", precision, "--device", "cpu",
        "--threads", str(THREADS), "--beam-size", str(beams), "--no-repair", "--timings", "--output", str(out),
        "--format", "json", "--force",
    )
    transcript = json.loads((out / (Path(recording).stem + ".json")).read_text())
    stage = lambda name: float(re.search(rf"^ *{name} +([\d.]+) s", notes, re.M)[1])
    words = sum(len(segment["text"].split()) for segment in transcript["segments"])
    return {"seconds": seconds, "peak": peak, "load": stage("reading the model"), "encoder": stage("encoder"),
            "decoder": stage("decoder"), "words": words}


def peer(what, *arguments):
    written, _, _, peak = watched(sys.executable, __file__, what, *map(str, arguments))
    found = json.loads(written.strip().splitlines()[-1])
    return found | {"peak": peak - found.get("before", 0)}


def whisper_window(folder, precision):
    found = bench.steno(folder, precision)
    return {"encoder": found["encoder"], "decoder": TOKENS * found["greedy"]}


def whisper_whole(folder, precision, recording):
    written, _, _, peak = watched(
        "target/debug/examples/whole", str(folder), recording, precision, "batched", str(TOKENS)
    )
    return {"seconds": json.loads(written.strip().splitlines()[-1])["seconds"], "peak": peak, "words": "-"}


def spread(values, digits):
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def main(folder, work, recording, rounds=3, whisper=None):
    folder, work, onnx = Path(folder), Path(work), Path(work) / "onnx"
    onnx.mkdir(parents=True, exist_ok=True)
    whole = work / "f32"
    if not (whole / "config.json").exists():
        lively(folder, recording, whole)
    if not (onnx / "config.json").exists():
        export(whole, onnx)
    small = work / "q8_0"
    if not (small / "config.json").exists():
        subprocess.run(["target/debug/steno", "models", "quantize", whole, "--to", "q8_0", "--output", small], check=True)
    held = {"f32": whole, "q8_0": small}
    of_whisper = {precision: bench.held_in(precision, Path(whisper), work) for precision in held} if whisper else {}

    print("| program | weights | encoder, one window, ms | decoder, one window, ms |\n|-|-|-|-|")
    for precision, quantization in CLASSES:
        found = {"Steno": [], "onnx-asr": []} | ({"Steno, Whisper": []} if whisper else {})
        for _ in range(int(rounds)):
            found["Steno"].append(steno_window(held[precision], precision))
            found["onnx-asr"].append(peer("window", onnx, quantization or ""))
            if whisper:
                found["Steno, Whisper"].append(whisper_window(of_whisper[precision], precision))
        for program, results in found.items():
            cells = [spread([result[key] for result in results], 0) for key in ("encoder", "decoder")]
            print(f"| {program} | {precision} | {' | '.join(cells)} |", flush=True)

    print("\n| program | weights | file to text, s | loading | encoder | decoder | words | peak MB |\n|-|-|-|-|-|-|-|-|")
    for precision, quantization in CLASSES:
        found = {}
        for _ in range(int(rounds)):
            runs = [
                ("Steno", lambda: steno_whole(held[precision], precision, recording, work, 1)),
                ("Steno, five beams", lambda: steno_whole(held[precision], precision, recording, work, 5)),
                ("onnx-asr", lambda: peer("whole", onnx, quantization or "", recording)),
            ]
            if whisper:
                runs.append(("Steno, Whisper", lambda: whisper_whole(of_whisper[precision], precision, recording)))
            for program, run in runs:
                found.setdefault(program, []).append(run())
        for program, results in found.items():
            of = lambda key: [result[key] for result in results]
            keys = ("load", "encoder", "decoder")
            parts = [f"{statistics.median(of(key)):.2f}" if key in results[0] else "-" for key in keys]
            print(
                f"| {program} | {precision} | {spread(of('seconds'), 2)} | {' | '.join(parts)} | {results[0]['words']} |"
                f" {max(of('peak')) >> 20} |", flush=True,
            )


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["window", folder, quantization]:
            window(folder, quantization)
        case ["whole", folder, quantization, recording]:
            whole(folder, quantization, recording)
        case [folder, work, recording, *rounds]:
            main(folder, work, recording, *rounds)
        case _:
            sys.exit(__doc__)
