"""Makes recordings with exact transcripts, to check a model or a program with.

usage: python3 make_sets.py OUT SEED [--held]

Each NAME.flac has NAME.json: {"language", "duration", "segments": [{"start", "end", "text", "language", "voice"}]},
times in seconds. tests/data/sample.flac was made by this script.
"""

import argparse
import json
import os
import random

import numpy as np
import soundfile

import synth
from text import GENERATORS

RATE = synth.RATE


class Recordings:
    def __init__(self, folder, seed, held):
        self.folder, self.held = folder, held
        self.r = random.Random(seed)
        np.random.seed(seed)
        os.makedirs(folder, exist_ok=True)

    def save(self, name, samples, truth):
        soundfile.write(f"{self.folder}/{name}.flac", samples, RATE, subtype="PCM_16")
        with open(f"{self.folder}/{name}.json", "w") as file:
            json.dump(truth, file, ensure_ascii=False, indent=1)

    def speech(self, name, languages, seconds, noise=None, gaps=(0.2, 1.5), loudness=1.0):
        """Sentences with pauses of `gaps` seconds between them; `noise` in dB of full scale."""
        r = self.r
        at, segments, parts = r.uniform(0.2, 0.8), [], []
        while True:
            language = r.choice(languages)
            text = GENERATORS[language](r)
            samples, voice = synth.speak(text, language, r, self.held)
            if samples is None:
                continue
            end = at + len(samples) / RATE
            if end > seconds - 0.3:
                break
            segments.append(
                {"start": round(at, 3), "end": round(end, 3), "text": text, "language": language, "voice": voice}
            )
            parts.append((int(at * RATE), samples))
            at = end + r.uniform(*gaps)
        mix = np.zeros(int((at + 0.6) * RATE), dtype=np.float32)
        for start, samples in parts:
            mix[start : start + len(samples)] += samples[: len(mix) - start]
        mix *= 0.6 * loudness
        if noise is not None:
            mix += np.random.randn(len(mix)).astype(np.float32) * 10 ** (noise / 20)
        truth = {
            "language": languages[0] if len(languages) == 1 else "mixed",
            "duration": round(len(mix) / RATE, 3),
            "segments": segments,
        }
        self.save(name, np.clip(mix, -1, 1), truth)
        print(f"{name}: {len(mix) / RATE:.1f} s, {len(segments)} sentences", flush=True)

    def no_speech(self, name, samples):
        self.save(f"no_speech_{name}", samples.astype(np.float32), {"language": None, "duration": 20.0, "segments": []})


def main(out, seed, held):
    recordings = Recordings(out, seed, held)
    for number in range(6):
        recordings.speech(f"en_short_{number + 1}", ["en"], recordings.r.uniform(6, 12))
    for number in range(4):
        recordings.speech(f"en_minute_{number + 1}", ["en"], 60)
    for language in ("de", "es", "fr"):
        for number in range(2):
            recordings.speech(f"{language}_half_minute_{number + 1}", [language], 30)
    recordings.speech("en_noisy", ["en"], 45, noise=-38)
    recordings.speech("en_long_pauses", ["en"], 90, gaps=(4, 14))
    recordings.speech("en_five_minutes", ["en"], 300)
    recordings.speech("mixed_languages", ["en", "de", "es", "fr"], 90, gaps=(1, 3))
    recordings.speech("en_quiet", ["en"], 30, loudness=0.05)
    length = 20 * RATE
    wave = lambda hertz: np.sin(2 * np.pi * hertz * np.arange(length) / RATE)
    recordings.no_speech("silence", np.zeros(length))
    recordings.no_speech("white_noise", np.random.randn(length) * 0.03)
    recordings.no_speech("hum", 0.05 * wave(50) + 0.01 * wave(150))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Makes recordings with exact transcripts.")
    parser.add_argument("out", help="folder to write to")
    parser.add_argument("seed", type=int)
    parser.add_argument("--held", action="store_true", help="use the voices that no model is trained on")
    arguments = parser.parse_args()
    main(arguments.out, arguments.seed, arguments.held)
