"""Word error rate of a checkpoint or an exported model on a pool, sentence by sentence, greedy decoding.

usage: python3 evaluate.py MODEL POOL      MODEL: checkpoint.pt or a folder of export.py; POOL: pool/dev
"""

import json
import re
import sys
from pathlib import Path

import jiwer
import numpy as np
import torch
from tokenizers import Tokenizer
from transformers import ParakeetForTDT, ParakeetTDTConfig

from windows import RATE, LogMel


def load(path):
    if Path(path).is_dir():
        return ParakeetForTDT.from_pretrained(path, dtype=torch.float32).eval(), Tokenizer.from_file(f"{path}/tokenizer.json")
    checkpoint = torch.load(path, map_location="cpu", weights_only=False)
    model = ParakeetForTDT(ParakeetTDTConfig(**checkpoint["config"]))
    model.load_state_dict(checkpoint["model"])
    return model.eval(), Tokenizer.from_str(checkpoint["tokenizer"])


@torch.no_grad()
def greedy(model, samples, mel):
    """Tokens of one recording: the plain loop of token-and-duration decoding."""
    blank, durations = model.config.blank_token_id, model.config.durations
    pooled = model.get_audio_features(input_features=mel(torch.from_numpy(samples)[None])).pooler_output[0]
    decoder = model.decoder
    state, tokens, t, at_frame = None, [], 0, 0
    out, state = decoder.lstm(decoder.embedding(torch.tensor([[blank]])), state)
    predicted = decoder.decoder_projector(out)[0, 0]
    while t < len(pooled):
        logits = model.joint(encoder_hidden_states=pooled[t], decoder_hidden_states=predicted)
        token, duration = int(logits[: blank + 1].argmax()), durations[int(logits[blank + 1 :].argmax())]
        if token == blank:
            duration = max(1, duration)
        else:
            tokens.append(token)
            at_frame += 1
            if duration == 0 and at_frame >= model.config.max_symbols_per_step:
                duration = 1
            out, state = decoder.lstm(decoder.embedding(torch.tensor([[token]])), state)
            predicted = decoder.decoder_projector(out)[0, 0]
        if duration:
            t, at_frame = t + duration, 0
    return tokens


def words(text):
    return re.sub(r"[^\w' ]", " ", text.lower()).split()


def main(path, pool):
    model, tokenizer = load(path)
    mel = LogMel("cpu")
    sound = np.fromfile(f"{pool}.pcm", dtype=np.int16)
    # Half a second of silence on both sides, as behind a piece of a recording.
    quiet = np.zeros(RATE // 2, dtype=np.float32)
    said, heard, exact = [], [], 0
    for language, text, voice, first, length in json.loads(Path(f"{pool}.json").read_text()):
        samples = np.concatenate([quiet, sound[first : first + length].astype(np.float32) / 32768, quiet])
        got = tokenizer.decode(greedy(model, samples, mel))
        exact += got.strip() == text
        said.append(" ".join(words(text)))
        heard.append(" ".join(words(got)))
        if said[-1] != heard[-1]:
            print(f"{language} {voice}: {text} | {got}")
    print(f"word error rate {100 * jiwer.wer(said, heard):.2f} % of {len(said)} sentences, {exact} of them exact")


if __name__ == "__main__":
    main(*sys.argv[1:])
