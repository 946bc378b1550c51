"""Trains the small Parakeet on pools of models/starter-whisper/training/synth.py.

usage: python3 train.py --minutes 9 --out checkpoint.pt [--device cuda] [--resume FILE]

The network is transformers' ParakeetForTDT (a FastConformer encoder and a token-and-duration transducer, Xu and
others, arXiv:2304.06795). The encoder learns by a CTC head beside the transducer, sentence by sentence: where in a window each is
said is known, so that words are written when they are heard. The transducer learns along the CTC alignment: at every frame the token or blank and the frames to go on, which costs a few hundred answers of the
joint network for each window instead of the whole lattice. Matrices of hidden layers are trained by Muon (Jordan
and others, 2024), everything else by AdamW; the learning rates follow a cosine to nearly zero over the given time.

Pools that are finished while it runs join in. Seeds come from the clock.
"""

import argparse
import math
import queue
import threading
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import ParakeetForTDT, ParakeetTDTConfig
from transformers.models.parakeet.configuration_parakeet import ParakeetEncoderConfig

from alignment import LONGEST, first_frames, states
from windows import HOP, MELS, Mixer, Pools

WIDTH, LAYERS, HEADS, CHANNELS = 192, 6, 4, 64
PIECES = 1024
SAMPLES = 8 * HOP  # of a frame of the encoder
SILENCE = 0.3  # weight of the loss where nobody speaks


def trained_tokenizer(texts):
    """Word pieces; marks of punctuation are pieces of their own, as in the released models."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    mark = pre_tokenizers.Split(Regex(r"[.,?!:;]"), "isolated")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Metaspace(), mark])
    tokenizer.decoder = decoders.Metaspace()
    special = [AddedToken(token, special=True) for token in ("<unk>", "<pad>")]
    tokenizer.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=PIECES, special_tokens=special))
    return tokenizer


def configuration(tokenizer):
    pieces = tokenizer.get_vocab_size()
    encoder = ParakeetEncoderConfig(
        hidden_size=WIDTH, num_hidden_layers=LAYERS, num_attention_heads=HEADS, intermediate_size=4 * WIDTH,
        subsampling_conv_channels=CHANNELS, num_mel_bins=MELS, attention_bias=False, convolution_bias=False,
        scale_input=False, dropout=0.05, dropout_positions=0.0, layerdrop=0.0, activation_dropout=0.05,
        attention_dropout=0.05,
    )
    return ParakeetTDTConfig(
        encoder_config=encoder.to_dict(), vocab_size=pieces + 1, decoder_hidden_size=WIDTH, num_decoder_layers=1,
        durations=list(range(LONGEST + 1)), max_symbols_per_step=10, blank_token_id=pieces,
        pad_token_id=tokenizer.token_to_id("<pad>"),
    )


class Muon(torch.optim.Optimizer):
    """Momentum made orthogonal by five Newton-Schulz steps; matrices of one shape are computed together."""

    def __init__(self, parameters, lr):
        super().__init__(parameters, {"lr": lr})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            shapes = {}
            for p in group["params"]:
                if p.grad is not None:
                    shapes.setdefault(p.shape, []).append(p)
            for shape, alike in shapes.items():
                gradients = torch.stack([p.grad for p in alike])
                state = self.state[alike[0]]
                momentum = state.setdefault("momentum", torch.zeros_like(gradients))
                momentum.mul_(0.95).add_(gradients)
                x = (gradients + 0.95 * momentum).bfloat16()
                is_tall = shape[0] > shape[1]
                if is_tall:
                    x = x.transpose(1, 2)
                x = x / (x.norm(dim=(1, 2), keepdim=True) + 1e-7)
                for _ in range(5):
                    a = x @ x.transpose(1, 2)
                    x = 3.4445 * x + (-4.7750 * a + 2.0315 * (a @ a)) @ x
                if is_tall:
                    x = x.transpose(1, 2)
                step = list(x.float().unbind(0))
                torch._foreach_mul_(alike, 1 - group["lr"] * 0.1)
                torch._foreach_add_(alike, step, alpha=-group["lr"] * max(1, shape[0] / shape[1]) ** 0.5)


class Said:
    """The utterances of a batch as rows of encoder frames, each with its tokens."""

    def __init__(self, utterances, frames, device):
        self.utterances = utterances
        first = np.array([utterance.start // SAMPLES for utterance in utterances])
        end = np.array([-(-(utterance.start + utterance.heard) // SAMPLES) + 1 for utterance in utterances])
        self.first, self.frames = first, np.minimum(end, frames) - first
        longest = max(len(utterance.tokens) for utterance in utterances)
        self.tokens = np.full((len(utterances), longest), -1, dtype=np.int64)
        for number, utterance in enumerate(utterances):
            self.tokens[number, : len(utterance.tokens)] = utterance.tokens
        self.rows = torch.tensor([utterance.row for utterance in utterances], device=device)[:, None]
        steps = np.minimum(np.arange(self.frames.max())[None], self.frames[:, None] - 1)
        self.at = torch.from_numpy(first[:, None] + steps).to(device)
        self.wanted = torch.from_numpy(self.tokens).to(device)

    def ctc_loss(self, probabilities, blank):
        """`probabilities` (utterances, frames, pieces): logarithms."""
        # Lengths stay on the processor, where PyTorch wants them: on a card, the step would wait for them.
        lengths = torch.tensor([len(utterance.tokens) for utterance in self.utterances])
        return F.ctc_loss(
            probabilities.transpose(0, 1), self.wanted.clamp(min=0), torch.from_numpy(self.frames), lengths,
            blank=blank, zero_infinity=True,
        )

    @torch.no_grad()
    def aligned(self, probabilities, blank, rows):
        """The tokens of each row of the batch and the frames where they are heard (None where that is not found)."""
        column = torch.cat([torch.full_like(self.wanted[:, :1], blank), self.wanted.clamp(min=0)], 1)
        scores = probabilities.gather(2, column[:, None, :].expand(-1, probabilities.shape[1], -1)).cpu().numpy()
        found = first_frames(scores, self.frames, self.tokens)
        firsts, tokens = [[] for _ in range(rows)], [[] for _ in range(rows)]
        for number, (row, _, _, said) in enumerate(self.utterances):
            tokens[row] += said
            if found[number, 0] < 0:
                firsts[row] = None
            elif firsts[row] is not None:
                firsts[row] += (found[number, : len(said)] + self.first[number]).tolist()
        return [None if row is None else np.maximum.accumulate(row) if row else row for row in firsts], tokens


def transducer_loss(model, pooled, firsts, texts, blank):
    """Cross entropy of tokens and of durations at the states along the CTC alignment, and the share of right tokens."""
    device, frames = pooled.device, pooled.shape[1]
    given = np.full((len(texts), 1 + max(1, max(map(len, texts)))), blank)
    for row, text in enumerate(texts):
        given[row, 1 : 1 + len(text)] = text
    found = states(firsts, texts, frames, blank)
    row, frame, before, token, duration = torch.from_numpy(found.T.copy()).to(device)
    predicted = model.decoder(torch.from_numpy(given).to(device))
    logits = model.joint(encoder_hidden_states=pooled[row, frame], decoder_hidden_states=predicted[row, before]).float()
    pieces = blank + 1
    right = (logits[:, :pieces].argmax(1) == token).float().mean()
    return F.cross_entropy(logits[:, :pieces], token) + F.cross_entropy(logits[:, pieces:], duration), right


class Batches:
    """Mixes the next windows in a thread and on a stream of its own while a step is computed."""

    def __init__(self, mixer, lengths, seconds):
        self.mixer, self.lengths, self.seconds = mixer, lengths, seconds
        self.stream = torch.cuda.Stream() if mixer.device.type == "cuda" else None
        self.ready = queue.Queue(2)
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        looked = time.time()
        while True:
            if time.time() - looked > 10:
                looked = time.time()
                self.mixer.pools.look()
            seconds = self.mixer.r.choice(self.lengths())
            count = max(2, int(self.seconds / seconds))
            with torch.cuda.stream(self.stream):
                mel, said = self.mixer.batch(count, seconds)
                mixed = self.stream.record_event() if self.stream else None
            self.ready.put((mel, said, mixed))

    def next(self):
        mel, said, mixed = self.ready.get()
        if mixed:
            torch.cuda.current_stream().wait_event(mixed)
            mel.record_stream(torch.cuda.current_stream())
        return mel, said


def main():
    parser = argparse.ArgumentParser(description="Trains the small Parakeet.")
    parser.add_argument("--minutes", type=float, required=True, help="how long to train")
    parser.add_argument("--out", required=True, help="checkpoint to write")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--resume", help="checkpoint to go on from")
    parser.add_argument("--pools", default="pool", help="folder of the pools")
    parser.add_argument("--wait-for", type=int, default=1, help="how many pools must be there to begin")
    parser.add_argument("--seconds", type=float, default=1600, help="speech of one step")
    parser.add_argument("--rate", type=float, default=2e-3, help="highest learning rate of AdamW")
    parser.add_argument("--muon-rate", type=float, default=0.015, help="highest learning rate of Muon")
    parser.add_argument("--transducer-from", type=float, default=0.12, help="share of the time that CTC learns alone")
    arguments = parser.parse_args()

    device = torch.device(arguments.device)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    pools = Pools(arguments.pools, device)
    pools.look()
    while len(pools.known) < arguments.wait_for:
        time.sleep(0.5)
        pools.look()
    resumed = torch.load(arguments.resume, map_location="cpu", weights_only=False) if arguments.resume else None
    if resumed:
        tokenizer = Tokenizer.from_str(resumed["tokenizer"])
    else:
        tokenizer = trained_tokenizer(text for text, _, _ in pools.utterances)
    encoded = {}

    def encode(text):
        if text not in encoded:
            encoded[text] = tokenizer.encode(text).ids
        return encoded[text]

    configured = configuration(tokenizer)
    blank = configured.blank_token_id
    torch.manual_seed(0)
    model, head = ParakeetForTDT(configured), torch.nn.Linear(WIDTH, blank + 1)
    if resumed:
        model.load_state_dict(resumed["model"])
        head.load_state_dict(resumed["ctc"])
    model.to(device).train()
    head.to(device)
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm1d):
            module.momentum = 0.02
    print(f"{sum(p.numel() for p in model.parameters()) / 1e6:.1f} million parameters, {blank} pieces", flush=True)

    hidden = [p for name, p in model.named_parameters() if p.dim() == 2 and "encoder.layers" in name and "bias" not in name]
    are_hidden = {id(p) for p in hidden}
    others = [p for p in [*model.parameters(), *head.parameters()] if p.requires_grad and id(p) not in are_hidden]
    trained = hidden + others
    adam = torch.optim.AdamW(others, lr=arguments.rate, betas=(0.9, 0.98), weight_decay=0.01, fused=device.type == "cuda")
    muon = Muon(hidden, arguments.muon_rate)
    mixer = Mixer(pools, encode, device, int(time.time()))

    def save():
        torch.save(
            {
                "model": {name: tensor.cpu() for name, tensor in model.state_dict().items()},
                "ctc": {name: tensor.cpu() for name, tensor in head.state_dict().items()},
                "tokenizer": tokenizer.to_str(),
                "config": configured.to_dict(),
            },
            arguments.out + ".part",
        )
        Path(arguments.out + ".part").replace(arguments.out)

    started = saved = logged = time.time()
    step, sums = 0, None
    silence = torch.full((int(arguments.seconds), 1000), blank, device=device)

    def progress_now():
        return (time.time() - started) / 60 / arguments.minutes

    def lengths():
        return [4, 6] if progress_now() < 0.1 and not resumed else [6, 10, 16, 24, 31]

    batches = Batches(mixer, lengths, arguments.seconds)
    while True:
        progress = progress_now()
        if progress > 1:
            break
        share = min(1, (step + 1) / 150) * (0.5 * (1 + math.cos(math.pi * progress)) * 0.99 + 0.01)
        for optimizer, highest in ((adam, arguments.rate), (muon, arguments.muon_rate)):
            for group in optimizer.param_groups:
                group["lr"] = highest * share
        mel, utterances = batches.next()
        with torch.autocast(device.type, dtype=torch.bfloat16):
            heard = model.get_audio_features(input_features=mel)
        hidden_states, pooled = heard.last_hidden_state.float(), heard.pooler_output.float()
        # Where nobody speaks, blank.
        rows, frames = hidden_states.shape[:2]
        said = Said(utterances, frames, device) if utterances else None
        silent = torch.ones(rows, frames, device=device)
        if said:
            silent[said.rows, said.at] = 0
        loss = SILENCE * (F.cross_entropy(head(hidden_states).transpose(1, 2), silence[:rows, :frames], reduction="none") * silent).sum()
        loss = loss / silent.sum().clamp(min=1)
        ctc, transducer, right = torch.zeros(3, device=device).unbind()
        firsts, texts = [[]] * rows, [[]] * rows
        if said:
            probabilities = F.log_softmax(head(hidden_states[said.rows, said.at]), -1)
            ctc = said.ctc_loss(probabilities, blank)
            firsts, texts = said.aligned(probabilities, blank, rows)
        if resumed or progress > arguments.transducer_from:
            transducer, right = transducer_loss(model, pooled, firsts, texts, blank)
            loss = loss + 0.5 * ctc + transducer
        else:
            loss = loss + ctc
        adam.zero_grad(set_to_none=True)
        muon.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        adam.step()
        muon.step()
        step += 1
        values = torch.stack([ctc.detach(), transducer.detach(), right])
        sums = values if sums is None else sums + values
        if step % 50 == 0:
            means = (sums / 50).tolist()
            sums = None
            print(
                f"{(time.time() - started) / 60:.2f} min, step {step} ({(time.time() - logged) / 50 * 1000:.0f} ms),"
                f" {pools.hours():.0f} h, CTC {means[0]:.3f}, transducer {means[1]:.4f}, right {means[2]:.4f}",
                flush=True,
            )
            logged = time.time()
        if time.time() - saved > 60:
            saved = time.time()
            save()
    save()
    print(f"saved after {step} steps", flush=True)


if __name__ == "__main__":
    main()
