"""Simulates ten seconds of a conversation of up to three people, with who speaks in each frame of the network."""

import glob
import random

import numpy as np
import soundfile

RATE = 16000
SAMPLES = 10 * RATE
SPEAKERS = 3
# Frame i of the network is centred on sample 495 + 270 i (kernels and strides of SincNet).
FRAMES, FRAME_STEP, FRAME_CENTRE = 589, 270, 495
BLOCK = RATE // 100


def utterances(folder):
    """Samples and, for each of them, whether there is speech: one utterance per file and speaker."""
    found = []
    for path in sorted(glob.glob(f"{folder}/*.flac")):
        samples, rate = soundfile.read(path, dtype="float32")
        if rate != RATE or samples.ndim != 1:
            raise SystemExit(f"{path}: {RATE} Hz and one channel are needed.")
        samples = samples / (np.abs(samples).max() + 1e-9)
        found.append((samples, speech(samples)))
    if len(found) < 2 * SPEAKERS:
        raise SystemExit(f"{folder} has {len(found)} FLAC files, too few speakers.")
    return found


def speech(samples):
    """Blocks of 10 ms within 34 dB of the loudest, and 100 ms around them."""
    count = len(samples) // BLOCK
    energy = 10 * np.log10((samples[: count * BLOCK].reshape(count, BLOCK) ** 2).mean(1) + 1e-10)
    energy = np.convolve(energy, np.ones(3) / 3, "same")
    voiced = energy > max(energy.max() - 34, np.percentile(energy, 5) + 6)
    voiced = np.repeat(np.convolve(voiced, np.ones(21), "same") > 0, BLOCK)
    return np.concatenate([voiced, np.zeros(len(samples) - len(voiced), bool)])


def room(r):
    """An impulse response: the sound itself, then noise that fades within 0.1 to 0.5 s."""
    length = int(RATE * r.uniform(0.1, 0.5))
    response = np.random.randn(length).astype(np.float32) * np.exp(-6.9 * np.arange(length) / length)
    response[: int(RATE * 0.002)] = 0
    response *= r.uniform(0.1, 0.8) / np.sqrt((response**2).sum())
    response[0] = 1
    return response


def convolved(samples, response):
    size = 1 << (len(samples) + len(response) - 2).bit_length()
    spectrum = np.fft.rfft(samples, size) * np.fft.rfft(response, size)
    return np.fft.irfft(spectrum, size)[: len(samples)].astype(np.float32)


def pause(r, overlapping):
    """Seconds to the next turn; below zero it begins before the last one ends."""
    if overlapping and r.random() < 0.4:
        return r.uniform(-2.5, 0.3)
    return r.choice([r.uniform(0.05, 0.4), r.uniform(0.1, 1), r.uniform(0.3, 3)])


def turns(sources, r):
    """Turns of one to three people, mixed, and who speaks at each sample; never three at once."""
    count = r.choices([1, 2, 3], [0.25, 0.45, 0.3])[0]
    people = r.sample(range(len(sources)), count)
    gains = [10 ** (r.uniform(-9, 0) / 20) for _ in people]
    speeds = [r.choice([1, 1, r.uniform(0.88, 1.12)]) for _ in people]
    overlapping = r.random() < 0.55
    mix, speaks = np.zeros(SAMPLES, np.float32), np.zeros((SPEAKERS, SAMPLES), bool)
    at, last = int(r.uniform(-4, 2) * RATE), None
    while at < SAMPLES:
        others = [person for person in range(count) if person != last] or [0]
        who = last = r.choice(others) if r.random() < 0.85 else r.randrange(count)
        samples, voiced = sources[people[who]]
        length = int(r.choice([r.uniform(0.3, 1.5), r.uniform(1, 6), r.uniform(2, 8)]) * RATE)
        offset = r.randrange(max(1, len(samples) - length))
        part, said = samples[offset : offset + length], voiced[offset : offset + length]
        if speeds[who] != 1:
            places = np.arange(0, len(part) - 1, speeds[who])
            part = np.interp(places, np.arange(len(part)), part).astype(np.float32)
            said = said[np.minimum(places.astype(int), len(said) - 1)]
        start, end = max(0, at), min(SAMPLES, at + len(part))
        if end > start:
            said = said[start - at : end - at]
            rest = [speaker for speaker in range(SPEAKERS) if speaker != who]
            if not (speaks[rest, start:end].sum(0)[said] >= 2).any():
                mix[start:end] += gains[who] * part[start - at : end - at]
                speaks[who, start:end] |= said
        at += len(part) + int(pause(r, overlapping) * RATE)
    return mix, speaks


def conversation(sources, r):
    """Samples, and 589 frames of three speakers, 0 or 1."""
    mix, speaks = turns(sources, r)
    if r.random() < 0.4:
        mix = convolved(mix, room(r))
    if r.random() < 0.7:
        noise = np.random.randn(SAMPLES).astype(np.float32)
        colour = r.randrange(3)
        if colour:
            noise = np.convolve(noise, np.ones(4 * colour) / 4 / colour, "same").astype(np.float32)
        noise /= np.sqrt((noise**2).mean()) + 1e-9
        mix = mix + noise * (np.sqrt((mix**2).mean()) + 1e-4) * 10 ** (-r.uniform(5, 35) / 20)
    if r.random() < 0.3:
        # A telephone's band.
        spectrum = np.fft.rfft(mix)
        hertz = np.linspace(0, RATE / 2, len(spectrum))
        spectrum[(hertz < r.uniform(0, 300)) | (hertz > r.uniform(3400, 8000))] *= 0.05
        mix = np.fft.irfft(spectrum, SAMPLES).astype(np.float32)
    mix = mix * r.uniform(0.05, 1) / (np.abs(mix).max() + 1e-6)
    centres = (np.arange(FRAMES) * FRAME_STEP + FRAME_CENTRE).clip(0, SAMPLES - 1)
    return mix, speaks[:, centres].T.astype(np.int64)
