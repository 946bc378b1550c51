"""Word error rate and language detection of an exported model on single sentences.

usage: python3 evaluate.py MODEL [--pool-folder pool] [--pools dev,held] [--count 60]

openai-whisper decodes the first COUNT utterances of each pool, greedily and with timestamps.
"""

import argparse
import json

import jiwer
import numpy as np
import torch
import whisper
from whisper.normalizers import BasicTextNormalizer

from reference_whisper import load


def main(folder, pool_folder, pools, count):
    torch.set_num_threads(1)
    model, _ = load(folder)
    normalized = BasicTextNormalizer()
    for pool in pools:
        sound = np.fromfile(f"{pool_folder}/{pool}.pcm", dtype=np.int16)
        with open(f"{pool_folder}/{pool}.json") as file:
            utterances = json.load(file)[:count]
        wanted, written, detected = {}, {}, 0
        for language, text, _, first, length in utterances:
            window = np.zeros(480000, dtype=np.float32)
            window[8000 : 8000 + length] = sound[first : first + length].astype(np.float32) / 32768 * 0.6
            mel = whisper.log_mel_spectrogram(torch.from_numpy(window))
            options = whisper.DecodingOptions(fp16=False, task="transcribe", language=None, without_timestamps=False)
            result = whisper.decode(model, mel, options)
            detected += result.language == language
            wanted.setdefault(language, []).append(normalized(text))
            written.setdefault(language, []).append(normalized(result.text))
        for language in wanted:
            rate = jiwer.wer(wanted[language], written[language])
            print(f"{pool}, {language}: {len(wanted[language])} sentences, word error rate {rate:.3f}")
        print(f"{pool}: language right in {detected} of {len(utterances)}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Word error rate and language detection of an exported model.")
    parser.add_argument("model", help="folder of a model in Hugging Face's layout")
    parser.add_argument("--pool-folder", default="pool")
    parser.add_argument("--pools", default="dev,held")
    parser.add_argument("--count", type=int, default=60)
    arguments = parser.parse_args()
    main(arguments.model, arguments.pool_folder, arguments.pools.split(","), arguments.count)
