"""Trains the starter Whisper on pools of synth.py.

usage: python3 train.py --minutes 360 --out checkpoint.pt [--resume FILE]

The network is Whisper's, with 4 + 4 layers of width 192. Beside the decoder's loss a CTC head on the encoder
learns the characters of short windows, which makes the encoder listen from the start. Matrices are trained by
Muon (Jordan and others, 2024), everything else by AdamW. The learning rates follow a cosine to nearly zero
over the given time, which brings most of the gain in its last third.

Two processes of one thread each are faster than one of two threads:

    RANK=1 WORLD_SIZE=2 python3 train.py ... & RANK=0 WORLD_SIZE=2 python3 train.py ...

Seeds come from the clock: a second run gives another model of about the same quality.
"""

import argparse
import math
import os
import random
import time

import numpy as np


def parse_arguments():
    parser = argparse.ArgumentParser(description="Trains the starter Whisper on pools of synth.py.")
    parser.add_argument("--minutes", type=float, required=True, help="how long to train")
    parser.add_argument("--out", required=True, help="checkpoint to write; OUT.log has the losses")
    parser.add_argument("--resume", help="checkpoint to go on from")
    parser.add_argument("--keep-optimizer", action="store_true", help="take AdamW's state from the checkpoint too")
    parser.add_argument("--pool-folder", default="pool")
    parser.add_argument("--pools", default="train1,train2")
    parser.add_argument("--easy", action="store_true", help="short English utterances of a few voices, to see it learn")
    parser.add_argument("--rate", type=float, default=1.5e-3, help="highest learning rate of AdamW")
    parser.add_argument("--muon-rate", type=float, default=0.012, help="highest learning rate of Muon")
    parser.add_argument("--ctc-weight", type=float, default=0.5)
    parser.add_argument("--whole-windows-after", type=float, default=0.6, help="share of the time after which windows of 30 s join")
    parser.add_argument("--whole-windows", type=float, default=0.4, help="their share from then on")
    parser.add_argument("--whole-windows-batch", type=int, default=4)
    return parser.parse_args()


arguments = parse_arguments()
# After the arguments, since loading these takes seconds.
import torch
import torch.distributed as distributed
import torch.nn.functional as F
import whisper
from whisper.model import ModelDimensions, Whisper
from whisper.tokenizer import get_tokenizer

from corpus import VOCABULARY, Corpus

WIDTH, LAYERS, HEADS, MELS = 192, 4, 3, 80
ENCODER_FRAMES = 1500
RANK, WORLD = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
SAVE_EVERY = 240  # seconds
LOG_EVERY = 50  # steps


class Muon(torch.optim.Optimizer):
    """Momentum made orthogonal by five Newton-Schulz steps, for the matrices of hidden layers."""

    def __init__(self, parameters, lr):
        super().__init__(parameters, {"lr": lr})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                momentum = state.setdefault("momentum", torch.zeros_like(p))
                momentum.mul_(0.95).add_(p.grad)
                x = (p.grad + 0.95 * momentum).bfloat16()
                is_tall = x.shape[0] > x.shape[1]
                if is_tall:
                    x = x.T
                x = x / (x.norm() + 1e-7)
                for _ in range(5):
                    a = x @ x.T
                    x = 3.4445 * x + (-4.7750 * a + 2.0315 * (a @ a)) @ x
                if is_tall:
                    x = x.T
                scale = max(1, p.shape[0] / p.shape[1]) ** 0.5
                p.mul_(1 - group["lr"] * 0.1).add_(x.float(), alpha=-group["lr"] * scale)


def build(tokens):
    """A network with random weights that knows `tokens` tokens and one that stands for all others."""
    model = Whisper(
        ModelDimensions(MELS, ENCODER_FRAMES, WIDTH, HEADS, LAYERS, tokens + 1, 448, WIDTH, HEADS, LAYERS)
    )
    for name, p in model.named_parameters():
        if p.dim() > 1 and "positional" not in name:
            torch.nn.init.normal_(p, std=0.02 if "token_embedding" in name else 1 / math.sqrt(p[0].numel()))
    torch.nn.init.normal_(model.decoder.positional_embedding, std=0.01)
    return model


def load(model, checkpoint, used):
    """Takes the weights of a checkpoint; rows of tokens that it did not know stay random."""
    weights = checkpoint["model"]
    if checkpoint["used"] != used:
        rows = {token: row for row, token in enumerate(checkpoint["used"])}
        before = weights["decoder.token_embedding.weight"]
        embedding = model.decoder.token_embedding.weight.data.clone()
        for row, token in enumerate(used):
            if token in rows:
                embedding[row] = before[rows[token]]
        embedding[len(used)] = before[-1]
        weights["decoder.token_embedding.weight"] = embedding
    model.load_state_dict(weights)
    return checkpoint["step"]


def encoded(encoder, mel, offsets):
    """The encoder on windows shorter than 30 s, each at its place among the positions."""
    x = F.gelu(encoder.conv2(F.gelu(encoder.conv1(mel)))).permute(0, 2, 1)
    frames = x.shape[1]
    x = x + torch.stack([encoder.positional_embedding[offset : offset + frames] for offset in offsets])
    for block in encoder.blocks:
        x = block(x)
    return encoder.ln_post(x)


def decoded(decoder, tokens, audio):
    x = decoder.token_embedding(tokens) + decoder.positional_embedding[: tokens.shape[1]]
    for block in decoder.blocks:
        x = block(x, audio, mask=decoder.mask)
    x = decoder.ln(x)
    return x @ decoder.token_embedding.weight.to(x.dtype).T


FILTERS = whisper.audio.mel_filters("cpu", MELS)
HANN = torch.hann_window(400)


def log_mel(samples):
    power = torch.stft(samples, 400, 160, window=HANN, return_complex=True)[..., :-1].abs() ** 2
    mel = torch.clamp(FILTERS @ power, min=1e-10).log10()
    return (torch.maximum(mel, mel.amax((1, 2), keepdim=True) - 8) + 4) / 4


def batch(corpus, r, size, seconds, row_of, end):
    """Log-mel, inputs, targets (-100: none), offsets and texts of `size` windows of `seconds`."""
    frames = int(seconds * 50)
    sounds, inputs, targets, offsets, texts = [], [], [], [], []
    for _ in range(size):
        offset = r.randrange(0, ENCODER_FRAMES - frames + 1) if frames < ENCODER_FRAMES and r.random() < 0.7 else 0
        x, given, wanted, text = corpus.window(r, seconds, offset)
        sounds.append(x)
        inputs.append(given)
        targets.append(wanted)
        offsets.append(offset)
        texts.append(text)
    longest = max(map(len, inputs))
    given, wanted = np.full((size, longest), row_of[end]), np.full((size, longest), -100)
    for row, (one, other) in enumerate(zip(inputs, targets)):
        given[row, : len(one)] = row_of[one]
        wanted[row, : len(other)] = [row_of[token] if token >= 0 else -100 for token in other]
    mel = log_mel(torch.from_numpy(np.stack(sounds)))
    for row in range(size):
        if r.random() < 0.5:
            band = r.randrange(0, 70)
            mel[row, band : band + r.randrange(1, 10)] = mel[row].min()
    return mel, torch.from_numpy(given), torch.from_numpy(wanted), offsets, texts


def ctc_loss(head, audio, texts, characters):
    """Of the windows whose text is whole; None where there are none."""
    whole = [row for row, text in enumerate(texts) if text is not None]
    if not whole:
        return None
    probabilities = F.log_softmax(head(audio[whole].float()), -1).transpose(0, 1)
    targets = [[characters[character] for character in texts[row]] for row in whole]
    return F.ctc_loss(
        probabilities,
        torch.tensor([number for target in targets for number in target], dtype=torch.long),
        torch.full((len(whole),), probabilities.shape[0]),
        torch.tensor([len(target) for target in targets]),
        zero_infinity=True,
    )


def average_gradients(parameters):
    """The mean over all processes."""
    flat = torch.cat([(p.grad if p.grad is not None else torch.zeros_like(p)).reshape(-1) for p in parameters])
    distributed.all_reduce(flat)
    flat /= WORLD
    at = 0
    for p in parameters:
        p.grad = flat[at : at + p.numel()].view_as(p)
        at += p.numel()


def running(mean, value):
    return value if mean is None else 0.98 * mean + 0.02 * value


def window_of(r, progress):
    """Seconds and batch size: short windows first, longer ones later, windows of 30 s at last."""
    if arguments.easy:
        return 3.0, 48
    if progress > arguments.whole_windows_after and r.random() < arguments.whole_windows:
        return 30.0, arguments.whole_windows_batch
    seconds = r.choice([3.0, 4.0, 5.0, 6.0, 8.0, 10.0]) if progress > 0.3 else r.choice([2.5, 3.0, 4.0])
    return seconds, max(4, int(80 / seconds))


def main():
    torch.set_num_threads(1)
    if WORLD > 1:
        distributed.init_process_group("gloo", init_method="tcp://127.0.0.1:29611", rank=RANK, world_size=WORLD)
    tokenizer = get_tokenizer(True, num_languages=99, language="en", task="transcribe")
    corpus = Corpus(arguments.pool_folder, arguments.pools.split(","), tokenizer, arguments.easy)
    used, characters = corpus.used_tokens(), corpus.characters()
    known = len(used)
    row_of = np.full(VOCABULARY, known, dtype=np.int64)
    row_of[used] = np.arange(known)
    print(f"{len(corpus.utterances)} utterances, {corpus.hours():.1f} h, {known} tokens")

    torch.manual_seed(0)
    model, head, step = build(known), torch.nn.Linear(WIDTH, len(characters) + 1), 0
    checkpoint = torch.load(arguments.resume, weights_only=False) if arguments.resume else {}
    if checkpoint:
        step = load(model, checkpoint, used)
        if "ctc" in checkpoint:
            head.load_state_dict(checkpoint["ctc"])
    print(f"{sum(p.numel() for p in model.parameters()) / 1e6:.1f} million parameters")

    hidden = [p for name, p in model.named_parameters() if p.dim() == 2 and "blocks" in name]
    are_hidden = {id(p) for p in hidden}
    matrices = [p for p in model.parameters() if p.dim() > 1 and id(p) not in are_hidden and p.requires_grad]
    vectors = [p for p in model.parameters() if p.dim() <= 1]
    adam = torch.optim.AdamW(
        [
            {"params": matrices + list(head.parameters()), "weight_decay": 0.01},
            {"params": vectors, "weight_decay": 0},
        ],
        lr=arguments.rate,
        betas=(0.9, 0.98),
    )
    muon = Muon(hidden, lr=arguments.muon_rate)
    if arguments.keep_optimizer and "opt" in checkpoint:
        adam.load_state_dict(checkpoint["opt"])
    trained = [p for p in [*model.parameters(), *head.parameters()] if p.requires_grad]

    def save():
        state = {"model": model.state_dict(), "used": used, "step": step, "ctc": head.state_dict(), "opt": adam.state_dict()}
        torch.save(state, arguments.out)

    r = random.Random(int(time.time()) * 7 + RANK * 1000003)
    np.random.seed(r.randrange(1 << 30))
    started = saved = time.time()
    first_step = step
    loss_mean = ctc_mean = right_mean = None
    model.train()
    log = open(arguments.out + ".log", "a")
    while True:
        elapsed = (time.time() - started) / 60
        if WORLD > 1:
            agreed = torch.tensor([elapsed])
            distributed.broadcast(agreed, 0)
            elapsed = agreed.item()
        if elapsed > arguments.minutes:
            break
        progress = elapsed / arguments.minutes
        warm_up = min(1, (step - first_step + 1) / 60)
        share = warm_up * (0.5 * (1 + math.cos(math.pi * progress)) * 0.98 + 0.02)
        for optimizer, highest in ((adam, arguments.rate), (muon, arguments.muon_rate)):
            for group in optimizer.param_groups:
                group["lr"] = highest * share

        seconds, size = window_of(r, progress)
        mel, given, wanted, offsets, texts = batch(corpus, r, size, seconds, row_of, tokenizer.eot)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            audio = encoded(model.encoder, mel, offsets)
            logits = decoded(model.decoder, given, audio)
        logits = logits.float()
        # One row stands for all tokens that the corpus does not use.
        logits[..., known] += math.log(VOCABULARY - known)
        loss = F.cross_entropy(logits.view(-1, known + 1), wanted.view(-1), ignore_index=-100)
        total = loss
        ctc = ctc_loss(head, audio, texts, characters) if seconds <= 12 else None
        if ctc is not None:
            total = loss + arguments.ctc_weight * ctc
            ctc_mean = running(ctc_mean, ctc.item())
        adam.zero_grad(set_to_none=True)
        muon.zero_grad(set_to_none=True)
        total.backward()
        if WORLD > 1:
            average_gradients(trained)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adam.step()
        muon.step()
        step += 1

        is_text = wanted >= 0
        right = (logits.detach().argmax(-1)[is_text] == wanted[is_text]).float().mean().item()
        loss_mean, right_mean = running(loss_mean, loss.item()), running(right_mean, right)
        if RANK != 0:
            continue
        if step % LOG_EVERY == 0:
            line = (
                f"{elapsed:.1f} min, step {step}, windows of {seconds} s, loss {loss_mean:.3f},"
                f" CTC {ctc_mean or 0:.3f}, tokens right {right_mean:.3f}, rate {arguments.rate * share:.2e}"
            )
            print(line, flush=True)
            print(line, file=log, flush=True)
        if time.time() - saved > SAVE_EVERY:
            saved = time.time()
            save()
    if RANK == 0:
        save()
        print(f"saved after {step} steps")


if __name__ == "__main__":
    main()
