"""Makes dialogues of two voices with exact transcripts and turns, to check with whose words are whose.

usage: python3 make_dialogues.py OUT SEED

Each NAME.flac has NAME.json as make_sets.py writes it, with the "speaker" of every segment, from 0. `call` has two
channels with one voice on each, who interrupt each other now and then; the others have one channel.
tests/data/corpus/audio/dialogues was made by this script with the seed 5.
"""

import argparse
import json
import os
import random
import subprocess

import numpy as np
import soundfile

import synth
from text import GENERATORS

RATE = synth.RATE
# A woman and a man, two men, two women; espeak-ng's names, or flite's with a mean pitch.
PAIRS = {
    "woman_and_man": (("en-us+f2", 165, 60), ("flite:rms", 100, 0)),
    "two_men": (("flite:awb", 130, 0), ("en-us+m3", 160, 30)),
    "two_women": (("flite:slt", 185, 0), ("en-us+f5", 160, 70)),
}
SECONDS = 45


def said(text, voice):
    """The text in one of the voices above, with the same loudness for all of them."""
    name, first, second = voice
    if name.startswith("flite:"):
        command = ["flite", "-voice", name[6:], "--setf", f"int_f0_target_mean={first}", "-t", text, "/dev/stdout"]
    else:
        command = ["espeak-ng", "-v", name, "-s", str(first), "-p", str(second), "--stdout", text]
    samples = synth.resampled(*synth.samples_of(subprocess.run(command, capture_output=True, check=True).stdout))
    heard = np.flatnonzero(np.abs(samples) > 0.01 * np.abs(samples).max())
    samples = samples[max(0, heard[0] - 160) : heard[-1] + 320]
    return samples * 0.08 / np.sqrt((samples**2).mean())


def dialogue(r, voices, gaps, channels):
    """Turns of one to three sentences each, with pauses of `gaps` seconds between turns; below zero they overlap."""
    at, speaker, segments, parts = 0.4, 0, [], []
    while at < SECONDS - 6:
        for _ in range(r.randint(1, 3)):
            text = GENERATORS["en"](r)
            samples = said(text, voices[speaker])
            end = at + len(samples) / RATE
            segments.append(
                {
                    "start": round(at, 3),
                    "end": round(end, 3),
                    "text": text,
                    "language": "en",
                    "voice": voices[speaker][0],
                    "speaker": speaker,
                }
            )
            parts.append((int(at * RATE), speaker % channels, samples))
            at = end + r.uniform(0.15, 0.4)
        at += r.uniform(*gaps)
        speaker = 1 - speaker
    mix = np.zeros((int((segments[-1]["end"] + 0.5) * RATE), channels), dtype=np.float32)
    for start, channel, samples in parts:
        mix[start : start + len(samples), channel] += samples[: len(mix) - start]
    segments.sort(key=lambda segment: segment["start"])
    return np.clip(mix, -1, 1), {"language": "en", "duration": round(len(mix) / RATE, 3), "segments": segments}


def main(out, seed):
    os.makedirs(out, exist_ok=True)
    r = random.Random(seed)
    made = {name: dialogue(r, PAIRS[name], (0.1, 0.8), 1) for name in ("woman_and_man", "two_women")}
    made["call"] = dialogue(r, PAIRS["two_men"], (-1.5, 0.4), 2)
    for name, (mix, truth) in made.items():
        soundfile.write(f"{out}/{name}.flac", mix, RATE, subtype="PCM_16")
        with open(f"{out}/{name}.json", "w") as file:
            json.dump(truth, file, ensure_ascii=False, indent=1)
        print(f"{name}: {truth['duration']:.1f} s, {len(truth['segments'])} sentences")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Makes dialogues of two voices with exact transcripts and turns.")
    parser.add_argument("out", help="folder to write to")
    parser.add_argument("seed", type=int)
    arguments = parser.parse_args()
    main(arguments.out, arguments.seed)
