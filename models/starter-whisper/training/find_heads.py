"""Chooses the heads of cross-attention that word times come from.

usage: python3 find_heads.py MODEL RECORDINGS [--out heads.json]

MODEL is a folder of export.py, RECORDINGS one of make_sets.py. Each head is scored by how close the times of
dynamic time warping come to the true beginnings and ends of the sentences; then the best one to four heads
together. The mean error, of which more than 1 s counts as 1 s, decides.
"""

import argparse
import glob
import json

import numpy as np
import soundfile
import torch
import whisper
from whisper.timing import find_alignment

from reference_whisper import load, set_alignment_heads


def cases_of(folder):
    """Log-mel, sentences and frames of the first 30 s of recordings."""
    files = sorted(glob.glob(f"{folder}/en_minute_*.flac"))[:3] + sorted(glob.glob(f"{folder}/en_short_*.flac"))
    for path in files:
        with open(path.removesuffix(".flac") + ".json") as file:
            segments = [segment for segment in json.load(file)["segments"] if segment["end"] < 29.5]
        samples = soundfile.read(path, dtype="float32")[0][:480000]
        mel = whisper.log_mel_spectrogram(whisper.pad_or_trim(torch.from_numpy(samples)))
        yield mel, segments, min(3000, len(samples) // 160)


def errors(model, tokenizer, mel, segments, frames):
    """Seconds between each sentence's true beginning and end and those of its first and last word."""
    sentences = [tokenizer.encode(" " + segment["text"]) for segment in segments]
    tokens = [token for sentence in sentences for token in sentence]
    words = find_alignment(model, tokenizer, tokens, mel, frames)
    starts = np.cumsum([0] + [len(word) for word in tokenizer.split_to_word_tokens(tokens)[1]])
    found, at = [], 0
    for segment, sentence in zip(segments, sentences):
        first = int(np.searchsorted(starts, at))
        at += len(sentence)
        last = int(np.searchsorted(starts, at)) - 1
        while last > first and not any(letter.isalnum() for letter in words[last].word):
            last -= 1
        if first < len(words):
            found.append(words[first].start - segment["start"])
            found.append(words[min(last, len(words) - 1)].end - segment["end"])
    return found


def main(folder, recordings, out):
    torch.set_num_threads(2)
    model, get_tokenizer = load(folder)
    tokenizer = get_tokenizer(language="en")
    cases = list(cases_of(recordings))

    def score(heads):
        set_alignment_heads(model, heads)
        off = np.abs([error for case in cases for error in errors(model, tokenizer, *case)])
        mean = float(np.mean(np.minimum(off, 1)))
        print(f"{heads}: median {np.median(off):.3f} s, mean {mean:.3f} s", flush=True)
        return mean

    single = {}
    for layer in range(model.dims.n_text_layer):
        for head in range(model.dims.n_text_head):
            single[layer, head] = score([(layer, head)])
    order = sorted(single, key=single.get)
    best = min((order[:count] for count in range(1, 5)), key=score)
    with open(out, "w") as file:
        json.dump([list(head) for head in sorted(best)], file)
    print(f"chosen: {sorted(best)}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Chooses the heads of cross-attention that word times come from.")
    parser.add_argument("model", help="folder of a model in Hugging Face's layout")
    parser.add_argument("recordings", help="folder of make_sets.py")
    parser.add_argument("--out", default="heads.json")
    arguments = parser.parse_args()
    main(arguments.model, arguments.recordings, arguments.out)
