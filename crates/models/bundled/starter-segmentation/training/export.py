"""Writes a checkpoint of train.py as the model.safetensors that Steno embeds, and outputs to compare with.

usage: python3 export.py checkpoint.pt RECORDING OUT

OUT/model.safetensors has the weights; OUT/segmentation.safetensors the log-probabilities of seconds 20 to 30 of
RECORDING, which tests/data/corpus/reference/speakers has for audio/conversations/overlap.flac.
"""

import argparse
import os

import soundfile
import torch
from safetensors.torch import save_file

from conversations import RATE
from train import PyanNet


def main(checkpoint, recording, out):
    network = PyanNet().eval()
    network.load_state_dict(torch.load(checkpoint))
    os.makedirs(out, exist_ok=True)
    weights = {name: tensor.contiguous() for name, tensor in network.state_dict().items()}
    save_file(weights, f"{out}/model.safetensors", metadata={"format": "pt"})
    samples, _ = soundfile.read(recording, start=20 * RATE, stop=30 * RATE, dtype="float32")
    with torch.no_grad():
        found = network(torch.tensor(samples)[None, None])[0]
    save_file({"log_probabilities": found}, f"{out}/segmentation.safetensors")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Writes the network that Steno embeds.")
    parser.add_argument("checkpoint")
    parser.add_argument("recording")
    parser.add_argument("out", help="folder to write to")
    arguments = parser.parse_args()
    main(arguments.checkpoint, arguments.recording, arguments.out)
