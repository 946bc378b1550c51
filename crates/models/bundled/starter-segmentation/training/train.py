"""Trains the segmentation: who of up to three people speaks in each frame of ten seconds.

usage: python3 train.py --speech FOLDER --minutes 240 --out checkpoint.pt [--resume checkpoint.pt]

The layout and the names of the weights are those of pyannote.audio's PyanNet (MIT), smaller: 3 bidirectional layers of
64 and linear layers of 128. Classes are sets of speakers ("powerset", Plaquet and Bredin, Interspeech 2023); which
speaker is which does not matter, so the loss is that of the best of six orders. Several processes share a step:
RANK and WORLD_SIZE in the environment, one thread each.
"""

import argparse
import itertools
import math
import os
import random
import time

import numpy as np
import torch
import torch.distributed as distributed
from asteroid_filterbanks import Encoder, ParamSincFB
from torch import nn
from torch.nn import functional as F

from conversations import FRAMES, RATE, SPEAKERS, conversation, utterances

BATCH = 16
LEARNING_RATE = 2e-3
WARM_UP_STEPS = 100
# Nobody, each one, each two.
CLASSES = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 0), (1, 0, 1), (0, 1, 1)]
CLASS_OF = {speakers: number for number, speakers in enumerate(CLASSES)}
ORDERS = list(itertools.permutations(range(SPEAKERS)))


class SincNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.wav_norm1d = nn.InstanceNorm1d(1, affine=True)
        sinc = ParamSincFB(80, 251, stride=10, sample_rate=RATE, min_low_hz=50, min_band_hz=50)
        self.conv1d = nn.ModuleList([Encoder(sinc), nn.Conv1d(80, 60, 5), nn.Conv1d(60, 60, 5)])
        self.norm1d = nn.ModuleList([nn.InstanceNorm1d(width, affine=True) for width in (80, 60, 60)])

    def forward(self, samples):
        # The filters stay as they begin, spaced as mel bands: without their gradients a step takes half the time.
        with torch.no_grad():
            samples = self.wav_norm1d(samples)
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=self.training):
                filtered = self.conv1d[0](samples)
            pooled = F.max_pool1d(filtered.float().abs(), 3, 3)
        x = F.leaky_relu(self.norm1d[0](pooled))
        for convolution, norm in zip(self.conv1d[1:], self.norm1d[1:]):
            x = F.leaky_relu(norm(F.max_pool1d(convolution(x), 3, 3)))
        return x


class PyanNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.sincnet = SincNet()
        self.lstm = nn.LSTM(60, 64, 3, batch_first=True, bidirectional=True, dropout=0.05)
        self.linear = nn.ModuleList([nn.Linear(128, 128), nn.Linear(128, 128)])
        self.classifier = nn.Linear(128, len(CLASSES))
        for fixed in [*self.sincnet.wav_norm1d.parameters(), *self.sincnet.conv1d[0].parameters()]:
            fixed.requires_grad_(False)

    def forward(self, samples):
        x, _ = self.lstm(self.sincnet(samples).transpose(1, 2))
        for linear in self.linear:
            x = F.leaky_relu(linear(x))
        return F.log_softmax(self.classifier(x), -1)


def targets(speaks):
    """The classes of (batch, frames, speakers) in each order of the speakers: (orders, batch, frames)."""
    code = lambda order: speaks[..., order[0]] * 4 + speaks[..., order[1]] * 2 + speaks[..., order[2]]
    # Three at once, which no conversation has, would count as two.
    table = np.array([CLASS_OF.get((n >> 2 & 1, n >> 1 & 1, n & 1), CLASS_OF[1, 1, 0]) for n in range(8)])
    return torch.tensor(np.stack([table[code(order)] for order in ORDERS]))


def loss_of(found, expected):
    """The loss of the best order of each conversation, and which that is."""
    each = [F.nll_loss(found.transpose(1, 2), order, reduction="none").mean(1) for order in expected]
    return torch.stack(each).min(0)


def errors(found, expected, best):
    """Missed, false and confused speech over all speech, per window: what is printed while it trains."""
    sets = np.array(CLASSES)
    heard = sets[found.argmax(-1).numpy()]
    said = sets[np.stack([expected[order, row].numpy() for row, order in enumerate(best.tolist())])]
    wrong = np.abs(heard.sum(-1) - said.sum(-1)).sum()
    wrong += np.minimum((heard > said).sum(-1), (said > heard).sum(-1)).sum()
    return wrong / max(1, said.sum())


def average_gradients(parameters, world):
    flat = torch.cat([parameter.grad.reshape(-1) for parameter in parameters])
    distributed.all_reduce(flat)
    flat /= world
    at = 0
    for parameter in parameters:
        parameter.grad = flat[at : at + parameter.numel()].view_as(parameter)
        at += parameter.numel()


def train(speech, minutes, out, resume):
    rank, world = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    torch.set_num_threads(1)
    if world > 1:
        distributed.init_process_group("gloo", init_method="tcp://127.0.0.1:29617", rank=rank, world_size=world)
    torch.manual_seed(0)
    network = PyanNet()
    if resume:
        network.load_state_dict(torch.load(resume))
    # Every 25th speaker is left out, to check the result with.
    sources = [source for number, source in enumerate(utterances(speech)) if number % 25]
    r = random.Random(time.time_ns() + rank)
    np.random.seed(r.randrange(1 << 30))
    parameters = [parameter for parameter in network.parameters() if parameter.requires_grad]
    optimiser = torch.optim.AdamW(parameters, lr=LEARNING_RATE, weight_decay=0.01)
    started = saved = time.time()
    step, mean = 0, None
    while True:
        # One clock for all processes, so that they end at the same step.
        done = torch.tensor([(time.time() - started) / 60 / minutes])
        if world > 1:
            distributed.broadcast(done, 0)
        if done.item() >= 1:
            break
        cosine = 0.5 * (1 + math.cos(math.pi * done.item())) * 0.98 + 0.02
        for group in optimiser.param_groups:
            group["lr"] = LEARNING_RATE * min(1, (step + 1) / WARM_UP_STEPS) * cosine
        batch = [conversation(sources, r) for _ in range(BATCH)]
        found = network(torch.tensor(np.stack([samples for samples, _ in batch]))[:, None])[:, :FRAMES]
        expected = targets(np.stack([speaks for _, speaks in batch])[:, : found.shape[1]])
        losses, best = loss_of(found, expected)
        optimiser.zero_grad()
        losses.mean().backward()
        if world > 1:
            average_gradients(parameters, world)
        nn.utils.clip_grad_norm_(parameters, 1.0)
        optimiser.step()
        step += 1
        now = np.array([losses.mean().item(), errors(found.detach(), expected, best)])
        mean = now if mean is None else 0.98 * mean + 0.02 * now
        if rank == 0 and step % 20 == 0:
            print(f"{100 * done.item():.1f} %, step {step}: loss {mean[0]:.3f}, {100 * mean[1]:.1f} % wrong", flush=True)
        if rank == 0 and time.time() - saved > 200:
            saved = time.time()
            torch.save(network.state_dict(), out)
    if rank == 0:
        torch.save(network.state_dict(), out)
        print(f"saved {out} after {step} steps")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Trains the segmentation.")
    parser.add_argument("--speech", required=True, help="folder of FLAC files, one speaker each, 16 kHz, one channel")
    parser.add_argument("--minutes", type=float, required=True)
    parser.add_argument("--out", required=True, help="checkpoint to write, every few minutes and at the end")
    parser.add_argument("--resume", help="checkpoint to begin with")
    arguments = parser.parse_args()
    train(arguments.speech, arguments.minutes, arguments.out, arguments.resume)
