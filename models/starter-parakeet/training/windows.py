"""Windows of speech mixed from pools of synth.py on the device that trains, and their log-mel spectrograms."""

import json
import random
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from transformers.audio_utils import mel_filter_bank

RATE, HOP, FFT, WINDOW, MELS = 16000, 160, 512, 400, 80
# How far the frequency axis is stretched: another vocal tract, as far as a spectrogram can tell.
STRETCHES = [0.86, 0.9, 0.94, 0.97, 1.0, 1.0, 1.0, 1.03, 1.06, 1.1, 1.14]
NO_SPEECH = 0.04


class Utterance(NamedTuple):
    """Tokens that are said in a row of a batch, from a sample on for so many samples."""

    row: int
    start: int
    heard: int
    tokens: list


class Pools:
    """The utterances of all pools in a folder; the samples of all of them lie on the device, 2 bytes each."""

    def __init__(self, folder, device):
        self.folder, self.device = Path(folder), device
        self.known, self.utterances, self.sound = set(), [], torch.zeros(0, dtype=torch.int16, device=device)

    def look(self):
        """Takes in the pools that were finished since the last look."""
        for index in sorted(self.folder.glob("train*.json")):
            if index in self.known:
                continue
            try:
                utterances = json.loads(index.read_text())
            except ValueError:
                continue  # still being written
            self.known.add(index)
            sound = torch.from_numpy(np.fromfile(index.with_suffix(".pcm"), dtype=np.int16)).to(self.device)
            base = len(self.sound)
            self.sound = torch.cat([self.sound, sound])
            self.utterances += [(text, base + first, length) for _, text, _, first, length in utterances]

    def hours(self):
        return len(self.sound) / RATE / 3600


class Mixer:
    """Mixes windows that all last equally long, so that nothing is padding: what no sentence fills is silence."""

    def __init__(self, pools, encode, device, seed):
        self.pools, self.encode, self.device = pools, encode, device
        self.r = random.Random(seed)
        self.mel = LogMel(device)

    def plan(self, seconds):
        """Where utterances stand in a window: (text, first sample of the pool, samples, start, speed, gain)."""
        r, spans = self.r, []
        if r.random() < NO_SPEECH:
            return spans
        at = r.choice([0.0, r.uniform(0, 0.6), r.uniform(0, min(3, seconds / 3))])
        most = r.choice([1, 2, 99, 99, 99, 99])
        misses = 0
        while len(spans) < most and misses < 6:
            text, first, length = r.choice(self.pools.utterances)
            speed = r.uniform(0.88, 1.12) if r.random() < 0.5 else 1.0
            heard = int((length - 1) / speed)
            start = int(at * RATE)
            if start + heard > seconds * RATE:
                misses += 1
                continue
            spans.append((text, first, heard, start, speed, r.uniform(0.3, 1)))
            at = (start + heard) / RATE + r.choice([0.02, r.uniform(0.05, 0.5), r.uniform(0.2, 1.5), r.uniform(0.3, 3)])
        return spans

    def samples(self, count, seconds):
        """(count, samples) of speech with noise, and what is said in it."""
        length, device = int(seconds * RATE), self.device
        spans, said = [], []
        for row in range(count):
            for text, first, heard, start, speed, gain in self.plan(seconds):
                spans.append((first, heard, row * length + start, speed, gain))
                said.append(Utterance(row, start, heard, self.encode(text)))
        x = torch.zeros(count * length, device=device)
        if spans:
            first, heard, start = (torch.tensor(column, device=device) for column in list(zip(*spans))[:3])
            speed, gain = (torch.tensor(column, device=device) for column in list(zip(*spans))[3:])
            which = torch.repeat_interleave(torch.arange(len(spans), device=device), heard)
            offset = torch.arange(len(which), device=device) - (torch.cumsum(heard, 0) - heard)[which]
            source = offset * speed[which]
            whole = source.long()
            part = source - whole
            at = first[which] + whole
            sound = self.pools.sound
            value = sound[at] * (1 - part) + sound[(at + 1).clamp(max=len(sound) - 1)] * part
            x[start[which] + offset] = value * (gain[which] / 32768)
        x = self.disturbed(x.view(count, length))
        return x, said

    def disturbed(self, x):
        """Each by chance: an echo, a duller sound, noise of one of four colours, another loudness."""
        count, length = x.shape
        r, device = self.r, self.device
        rows = [row for row in range(count) if r.random() < 0.15]
        if rows:
            delay = torch.tensor([[r.randrange(200, 1600)] for _ in rows], device=device)
            share = torch.tensor([[r.uniform(0.1, 0.4)] for _ in rows], device=device)
            earlier = torch.arange(length, device=device)[None] - delay
            x[rows] += share * x[rows].gather(1, earlier.clamp(min=0)) * (earlier >= 0)
        for size in (3, 5, 7):
            rows = [row for row in range(count) if r.random() < 0.04]
            if rows:
                kernel = torch.hann_window(size + 2, periodic=False, device=device)[1:-1]
                x[rows] = F.conv1d(x[rows][:, None], (kernel / kernel.sum())[None, None], padding=size // 2)[:, 0]
        noise = torch.randn(count, length, device=device)
        colour = [r.randrange(4) for _ in range(count)]
        dull, hum, brown = ([row for row in range(count) if colour[row] == kind] for kind in (1, 2, 3))
        if dull:
            noise[dull] = F.avg_pool1d(noise[dull][:, None], 9, 1, 4)[:, 0]
        if hum:
            hertz = torch.tensor([[r.choice([50.0, 60.0, 100.0, 120.0, 440.0])] for _ in hum], device=device)
            noise[hum] = 0.3 * noise[hum] + torch.sin(2 * torch.pi * hertz * torch.arange(length, device=device) / RATE)
        if brown:
            walk = torch.cumsum(noise[brown], 1)
            noise[brown] = walk - F.avg_pool1d(walk[:, None], 401, 1, 200)[:, 0]
        noise = noise / noise.pow(2).mean(1, keepdim=True).sqrt()
        level = [[10 ** (-r.uniform(26, 75) / 20) if r.random() < 0.6 else 0.0] for _ in range(count)]
        loudness = [[r.uniform(0.1, 1) if r.random() < 0.8 else r.uniform(0.01, 0.1)] for _ in range(count)]
        x = x * torch.tensor(loudness, device=device) + noise * torch.tensor(level, device=device)
        # As in a file of 16 bits.
        return (x.clamp(-1, 1) * 32767).round() / 32768

    def batch(self, count, seconds):
        """Log-mel (count, frames, mels) of windows with bands and moments struck out, and what is said in them."""
        x, said = self.samples(count, seconds)
        mel = self.mel(x, [self.r.randrange(len(STRETCHES)) for _ in range(count)])
        for _ in range(2):
            mel = mel.masked_fill(self.struck(count, MELS, 9, 0.4)[:, None, :], 0)
        return mel.masked_fill(self.struck(count, mel.shape[1], 15, 0.3)[:, :, None], 0), said

    def struck(self, count, length, widest, share):
        """(count, length): true for up to `widest` neighbours in `share` of the rows."""
        r = self.r
        first = torch.tensor([[r.randrange(length - widest)] for _ in range(count)], device=self.device)
        width = torch.tensor([[r.randint(1, widest) if r.random() < share else 0] for _ in range(count)], device=self.device)
        at = torch.arange(length, device=self.device)[None]
        return (at >= first) & (at < first + width)


class LogMel:
    """Features as transformers' ParakeetFeatureExtractor makes them of windows without padding."""

    def __init__(self, device):
        filters = mel_filter_bank(
            FFT // 2 + 1, MELS, 0.0, RATE / 2, RATE, norm="slaney", mel_scale="slaney"
        ).T.astype(np.float32)
        bins = np.arange(FFT // 2 + 1)
        stretched = [
            np.stack([np.interp(bins * stretch, bins, band, right=0.0) for band in filters]) for stretch in STRETCHES
        ]
        self.filters = torch.from_numpy(np.stack(stretched).astype(np.float32)).to(device)
        self.window = torch.hann_window(WINDOW, periodic=False, device=device)

    def __call__(self, x, stretches=None):
        plain = STRETCHES.index(1.0)
        x = torch.cat([x[:, :1], x[:, 1:] - 0.97 * x[:, :-1]], 1)
        power = torch.stft(x, FFT, HOP, WINDOW, self.window, return_complex=True, pad_mode="constant").abs() ** 2
        filters = self.filters[[plain] * len(x) if stretches is None else stretches]
        mel = torch.log(filters @ power + 2**-24).transpose(1, 2)[:, : x.shape[1] // HOP]
        mean, deviation = mel.mean(1, keepdim=True), mel.std(1, keepdim=True)
        return (mel - mean) / (deviation + 1e-5)
