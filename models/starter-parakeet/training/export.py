"""Writes a checkpoint of train.py in the layout of the released Parakeet models, weights in 16 bits.

usage: python3 export.py checkpoint.pt OUT
"""

import json
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer

from windows import FFT, HOP, MELS, RATE, WINDOW

FILES = {
    "generation_config.json": lambda config: {
        "decoder_start_token_id": config["blank_token_id"],
        "pad_token_id": config["pad_token_id"],
        # Without these the class takes the logits of durations for those of tokens.
        "suppress_tokens": [config["vocab_size"] + number for number in range(len(config["durations"]))],
    },
    "processor_config.json": lambda config: {
        "feature_extractor": {
            "feature_extractor_type": "ParakeetFeatureExtractor",
            "feature_size": MELS,
            "hop_length": HOP,
            "n_fft": FFT,
            "win_length": WINDOW,
            "preemphasis": 0.97,
            "sampling_rate": RATE,
        },
        "processor_class": "ParakeetProcessor",
    },
    "tokenizer_config.json": lambda config: {
        "tokenizer_class": "ParakeetTokenizer",
        "pad_token": "<pad>",
        "unk_token": "<unk>",
    },
}


def main(path, out):
    checkpoint = torch.load(path, map_location="cpu", weights_only=False)
    out = Path(out)
    out.mkdir(parents=True, exist_ok=True)
    config = checkpoint["config"]
    config["architectures"] = ["ParakeetForTDT"]
    # Read by Steno, which takes a vocabulary of this size for that of an English model.
    config["is_multilingual"] = True
    for name, content in {"config.json": lambda config: config, **FILES}.items():
        (out / name).write_text(json.dumps(content(config), indent=2) + "\n")
    Tokenizer.from_str(checkpoint["tokenizer"]).save(str(out / "tokenizer.json"))
    weights = {
        name: tensor.half().contiguous() if tensor.is_floating_point() else tensor
        for name, tensor in checkpoint["model"].items()
        if not name.endswith(("num_batches_tracked", "inv_freq"))
    }
    save_file(weights, out / "model.safetensors", metadata={"format": "pt"})
    print(f"{sum(tensor.numel() for tensor in weights.values()) / 1e6:.1f} million values")


if __name__ == "__main__":
    main(*sys.argv[1:])
