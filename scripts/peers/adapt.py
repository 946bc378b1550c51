"""Training low-rank adapters: Steno beside transformers with peft, on the same random weights.

    adapt.py MODELS RECORDING [SIZE...]

MODELS has the folders of `random-models SIZE MODELS/SIZE --precision f32`; sizes are tiny, base and small. RECORDING has
its text beside it in JSON. Adapters of rank 8 of all matrices of attention and feed-forward, one window of 30 s per step, in
32 bits, by turns, each in a process of its own: with all activations kept, and with those of each layer computed a second
time. Steno learns the recording as it is; the other windows have random sound and as many tokens. Peaks are of what
the process has in memory, without what Python's imports take. What Steno predicts is without the program itself.

Python with torch, transformers, peft and tokenizers; `cargo build --workspace --example bench_adapt`.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

from parakeet import resident, watched

RANK = 8


def peft(folder, tokens, keep):
    """Of transformers with peft, in this process: seconds per window."""
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import WhisperForConditionalGeneration

    torch.set_num_threads(os.cpu_count())
    before = resident()
    model = WhisperForConditionalGeneration.from_pretrained(folder, dtype=torch.float32)
    matrices = ["q_proj", "k_proj", "v_proj", "out_proj", "fc1", "fc2"]
    model = get_peft_model(model, LoraConfig(r=RANK, lora_alpha=2 * RANK, target_modules=matrices))
    if keep == "inputs":
        model.gradient_checkpointing_enable({"use_reentrant": False})
    model.train()
    optimiser = torch.optim.AdamW([each for each in model.parameters() if each.requires_grad], lr=1e-3)
    times = []
    for _ in range(4):
        started = time.perf_counter()
        sound = torch.randn(1, model.config.num_mel_bins, 3000)
        labels = torch.randint(0, 50000, (1, tokens))
        model(input_features=sound, labels=labels, use_cache=False).loss.backward()
        optimiser.step()
        optimiser.zero_grad()
        times.append(time.perf_counter() - started)
    # The first one is slower.
    print(json.dumps({"seconds": sum(times[1:]) / len(times[1:]), "before": before}))


def steno(folder, recording, precision, keep):
    written, _, _, peak = watched("target/debug/examples/bench_adapt", str(folder), recording, precision, keep, "encoder")
    return json.loads(written) | {"peak": peak}


def main(models, recording, sizes):
    from tokenizers import Tokenizer

    text = [part["text"] for part in json.loads(Path(recording).with_suffix(".json").read_text())["segments"]]
    print("| model | program | frozen matrices | kept | seconds per window of 30 s | peak MB | predicted MB |\n|-|-|-|-|-|-|-|")
    for size in sizes:
        folder = Path(models) / size
        count = len(Tokenizer.from_file(str(folder / "tokenizer.json")).encode(" ".join(text)).ids)
        for keep in ["everything", "inputs"]:
            for precision in ["f32", "bf16"]:
                found = steno(folder, recording, precision, keep)
                print(f"| {size} | Steno | {precision} | {keep} | {found['seconds']:.2f} | {found['peak'] >> 20} |"
                      f" {found['predicted'] >> 20} |", flush=True)
            # Two time stamps for each sentence besides, and the prompt.
            tokens = (count + 2 * len(text)) // found["windows"] + 4
            written, _, _, peak = watched(sys.executable, __file__, "peft", str(folder), str(tokens), keep)
            other = json.loads(written.strip().splitlines()[-1])
            print(f"| {size} | transformers, peft | f32 | {keep} | {other['seconds']:.2f} | {peak - other['before'] >> 20} | |",
                  flush=True)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["peft", folder, tokens, keep]:
            peft(folder, int(tokens), keep)
        case [models, recording, *sizes]:
            main(models, recording, sizes or ["tiny", "base", "small"])
        case _:
            sys.exit(__doc__)
