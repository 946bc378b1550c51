"""Speaks sentences of text.py with espeak-ng and flite and stores them as a pool.

usage: python3 synth.py SEED COUNT OUT [--held]

Writes OUT.pcm (16 kHz, mono, 16 bits, one utterance after another) and OUT.json, a list of
[language, text, voice, first sample, number of samples].
"""

import argparse
import json
import random
import subprocess
import time
from math import gcd

import numpy as np

from text import GENERATORS

RATE = 16000
# Voices of espeak-ng that can be understood.
VOICES = """
    f1 f2 f3 f4 f5 m1 m2 m3 m4 m5 m6 m7 m8 Alex Alicia Andrea Andy Annie adam antonio belinda benjamin boris
    caleb david Denis Diogo ed edward Gene Gene2 gustave announcer Henrique Hugo iven iven2 john kaukovalta
    Lee linda marcelo Marco Mario max Michael michel miguel Mike Mr Nguyen pablo paul pedro quincy rob robert
    steph steph2 steph3 Storm Tweaky zac anika AnxiousAndy grandpa grandma klatt klatt2 klatt3 klatt4 klatt5
    klatt6 norbert sandro shelby travis victor croak
""".split()
# Kept for checking the result: no model is trained on them.
HELD_VOICES = {"f3", "m5", "linda", "robert", "steph2"}
TRAINING_VOICES = [voice for voice in VOICES if voice not in HELD_VOICES]
FLITE_VOICES = ["kal16", "awb", "rms", "slt"]
DIALECTS = {
    "en": ["en-us", "en-gb", "en-gb-scotland", "en-gb-x-rp", "en-gb-x-gbclan", "en-us-nyc"],
    "de": ["de"],
    "es": ["es", "es-419"],
    "fr": ["fr-fr", "fr-be", "fr-ch"],
}
LANGUAGES, WEIGHTS = ["en", "de", "es", "fr"], [0.64, 0.12, 0.12, 0.12]
LEAST, MOST = RATE // 4, RATE * 14


def samples_of(wav):
    """Samples from -1 to 1 and their rate. espeak-ng streams and states no length, so none is read."""
    start = wav.find(b"data") + 8
    rate = int.from_bytes(wav[24:28], "little")
    end = len(wav) - (len(wav) - start) % 2
    return np.frombuffer(wav[start:end], dtype=np.int16).astype(np.float32) / 32768, rate


def resampled(samples, rate):
    if rate == RATE:
        return samples
    from scipy.signal import resample_poly

    divisor = gcd(rate, RATE)
    return resample_poly(samples, RATE // divisor, rate // divisor).astype(np.float32)


def speak(text, language, r, held=False):
    """Samples at 16 kHz without the silence around them (None where nothing was said), and the voice."""
    if language == "en" and r.random() < 0.22:
        voice = r.choice(FLITE_VOICES)
        stretch, pitch = f"{r.uniform(0.8, 1.25):.2f}", f"{r.uniform(85, 190):.0f}"
        command = [
            "flite", "-voice", voice, "--setf", f"duration_stretch={stretch}",
            "--setf", f"int_f0_target_mean={pitch}", "-t", text, "/dev/stdout",
        ]
    else:
        voice = r.choice(sorted(HELD_VOICES) if held else TRAINING_VOICES)
        command = [
            "espeak-ng", "-v", f"{r.choice(DIALECTS[language])}+{voice}", "-s", str(r.randint(130, 205)),
            "-p", str(r.randint(20, 80)), "-g", str(r.choice([0, 0, 0, 1, 2, 4])), "--stdout", text,
        ]
    samples = resampled(*samples_of(subprocess.run(command, capture_output=True, check=True).stdout))
    heard = np.flatnonzero(np.abs(samples) > 0.01 * max(1e-6, np.abs(samples).max()))
    if len(heard) == 0:
        return None, voice
    samples = samples[max(0, heard[0] - 160) : heard[-1] + 320]
    return samples / (np.abs(samples).max() + 1e-6) * 0.8, voice


def make_pool(seed, count, out, held):
    r, started = random.Random(seed), time.time()
    sound, index, length = [], [], 0
    for number in range(count):
        language = r.choices(LANGUAGES, WEIGHTS)[0]
        text = GENERATORS[language](r)
        try:
            samples, voice = speak(text, language, r, held)
        except (subprocess.CalledProcessError, ValueError) as error:
            print(f"left out: {text} ({error})")
            continue
        if samples is None or not LEAST <= len(samples) <= MOST:
            continue
        sound.append((samples * 32767).astype(np.int16))
        index.append((language, text, voice, length, len(samples)))
        length += len(samples)
        if number % 2000 == 0:
            print(f"{number} sentences, {length / RATE / 3600:.1f} h of speech, {time.time() - started:.0f} s", flush=True)
    np.concatenate(sound).tofile(f"{out}.pcm")
    with open(f"{out}.json", "w") as file:
        json.dump(index, file, ensure_ascii=False)
    print(f"{len(index)} sentences, {length / RATE / 3600:.2f} h of speech, {time.time() - started:.0f} s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Speaks generated sentences and stores them as OUT.pcm and OUT.json.")
    parser.add_argument("seed", type=int)
    parser.add_argument("count", type=int, help="sentences to generate")
    parser.add_argument("out", help="path of the pool without an ending")
    parser.add_argument("--held", action="store_true", help="use the voices that no model is trained on")
    arguments = parser.parse_args()
    make_pool(arguments.seed, arguments.count, arguments.out, arguments.held)
