"""Golden outputs of ParakeetForTDT and ParakeetForCTC with small random weights.

Writes first/: model.safetensors (names of the public checkpoints), config.json,
golden.safetensors (audio, features, encoder stages, teacher-forced logits, greedy output).
The greedy loop is also written out plainly, and must agree with `generate`.
"""
import json, os, sys, math
os.environ.setdefault("HF_HUB_OFFLINE", "1")
import torch
torch.set_num_threads(1)
torch.version.cuda = None              # only so that a torchaudio of another CUDA, where there is one, can be imported
from safetensors.torch import save_file
from transformers import (ParakeetEncoderConfig, ParakeetTDTConfig, ParakeetForTDT,
                          ParakeetCTCConfig, ParakeetForCTC, ParakeetFeatureExtractor)
import transformers
out = os.path.join(os.path.dirname(os.path.abspath(__file__)), "first")
os.makedirs(out, exist_ok=True)
torch.manual_seed(7)

# The public geometry in small: no biases but in the subsampling, 128 mel bins, kernel 9, factor 8.
encoder = dict(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128,
               hidden_act="silu", attention_bias=False, convolution_bias=False, conv_kernel_size=9,
               subsampling_factor=8, subsampling_conv_channels=16, num_mel_bins=128, scale_input=False,
               max_position_embeddings=5000, layerdrop=0.0, dropout=0.0)
config = ParakeetTDTConfig(vocab_size=33, decoder_hidden_size=32, num_decoder_layers=2, durations=[0, 1, 2, 3, 4],
                           max_symbols_per_step=10, pad_token_id=2, blank_token_id=32,
                           encoder_config=ParakeetEncoderConfig(**encoder))
model = ParakeetForTDT(config).eval()
model.generation_config.decoder_start_token_id = config.blank_token_id    # both as in the public generation_config.json
model.generation_config.suppress_tokens = list(range(config.vocab_size, config.vocab_size + len(config.durations)))
with torch.no_grad():                                # nothing left at its neutral value
    for name, p in model.named_parameters():
        if "norm" in name and name.endswith("weight"):
            p.copy_(1 + 0.2 * torch.randn_like(p))
        elif p.dim() > 1:
            fan = p[0].numel()
            p.copy_(torch.randn_like(p) / math.sqrt(fan))
        else:
            p.copy_(0.1 * torch.randn_like(p))
    for name, b in model.named_buffers():
        if name.endswith("running_mean"):
            b.copy_(0.3 * torch.randn_like(b))
        elif name.endswith("running_var"):
            b.copy_(0.5 + torch.rand_like(b))
    model.decoder.embedding.weight[config.blank_token_id] = 0     # NeMo: blank_as_pad

# 4.096 s of two gliding tones and noise, so that lengths are not multiples of anything.
n = 65_537
t = torch.arange(n) / 16_000
audio = 0.3 * torch.sin(2 * math.pi * (220 + 90 * t) * t) + 0.2 * torch.sin(2 * math.pi * 1730 * t) * (t > 1)
audio = (audio + 0.01 * torch.randn(n)).float()
features = ParakeetFeatureExtractor(feature_size=128)(audio.numpy(), sampling_rate=16_000, return_tensors="pt")
x, mask = features["input_features"], features["attention_mask"]

stages = {}
def keep(name):
    def hook(_module, _inputs, output):
        stages[name] = output.detach().clone().contiguous()
    return hook
model.encoder.subsampling.register_forward_hook(keep("subsampled"))
model.encoder.encode_positions.register_forward_hook(keep("positions"))
for i, layer in enumerate(model.encoder.layers):
    layer.register_forward_hook(keep(f"layer.{i}"))

def greedy(frames, max_symbols=10, budget=10_000):
    """What NeMo's GreedyTDTInfer does; without `max_symbols` it is what `generate` does."""
    state, last, at, here = None, config.blank_token_id, 0, 0
    tokens, starts, durations = [], [], []
    g, after = None, None
    while at < len(frames) and budget:
        budget -= 1
        if g is None:                                # the prediction network runs once per emitted token
            e = model.decoder.embedding(torch.tensor([[last]]))
            h, after = model.decoder.lstm(e, state)
            g = model.decoder.decoder_projector(h)[0, 0]
        logits = model.joint.head(torch.relu(frames[at] + g))
        token = int(logits[: config.vocab_size].argmax())
        skip = config.durations[int(logits[config.vocab_size:].argmax())]
        if token == config.blank_token_id:
            at, here = at + max(skip, 1), 0
            continue
        tokens.append(token); starts.append(at); durations.append(skip)
        state, last, g = after, token, None
        at, here = at + skip, 0 if skip else here + 1
        if max_symbols and here >= max_symbols:
            at, here = at + 1, 0
    return (tokens, starts, durations) if budget else None        # None: it never came to the end

with torch.no_grad():
    # Random weights must still speak as trained ones do: blanks, tokens and several durations. The frames are
    # spread out (their mean goes into the projection's bias), and heads are drawn until one talks.
    encoded = model.get_audio_features(x, attention_mask=mask)
    plainly = encoded.last_hidden_state[0] @ model.encoder_projector.weight.T
    model.encoder_projector.weight *= 2.0 / plainly.std(0).mean()
    model.encoder_projector.bias.copy_(-2.0 / plainly.std(0).mean() * plainly.mean(0))
    encoded = model.get_audio_features(x, attention_mask=mask)
    frames = encoded.pooler_output[0, : int(encoded.attention_mask.sum())]
    prompt = torch.tensor([[32, 5, 9, 1, 30]])       # <blank> first, then four labels
    for _ in range(3000):
        model.joint.head.weight.copy_(torch.randn_like(model.joint.head.weight) / 3)
        model.joint.head.bias.copy_(0.1 * torch.randn_like(model.joint.head.bias))
        model.joint.head.bias[config.blank_token_id] += 2.0
        model.joint.head.bias[config.vocab_size] -= 1.0
        spoken = greedy(frames, None, 250)
        if spoken is None:
            continue
        tokens, starts, durations = spoken
        if 8 <= len(tokens) <= 60 and sum(durations) < len(frames) - 2 and len(set(durations)) >= 4 and 0 in durations \
                and len(set(tokens)) >= 4 and max(starts) > len(frames) - 9:
            break
    else:
        sys.exit("no head talks")
    # the joint over all frames and labels, teacher-forced
    states = model.decoder(prompt)
    forced = model.joint(decoder_hidden_states=states[:, None], encoder_hidden_states=encoded.pooler_output[:, :, None])
    generated = model.generate(input_features=x, attention_mask=mask)

with torch.no_grad():
    plain = greedy(frames, None)
    nemo = greedy(frames, 10)
ids, spans = generated.sequences[0].tolist(), generated.durations[0].tolist()
at, seen = 0, ([], [], [])
for k, d in zip(ids[1:], spans[1:]):
    if at >= len(frames):
        break
    if k != config.blank_token_id:
        seen[0].append(k); seen[1].append(at); seen[2].append(d)
    at += d
print("transformers", transformers.__version__, "torch", torch.__version__)
print("audio", n, "features", tuple(x.shape), "valid", int(mask.sum()), "encoded", tuple(encoded.last_hidden_state.shape), "valid", len(frames))
print("ids", ids[:40], spans[:40])
print("generate: steps", len(ids) - 1, "tokens", len(seen[0]), "durations", seen[2][:20])
print("plain loop agrees with generate:", plain == seen, "| with max_symbols 10:", len(nemo[0]), "tokens")
# agreement needs the same number of decoding steps as generate's buffer allows
assert plain == seen

state = {k: v.contiguous() for k, v in model.state_dict().items() if not k.endswith("num_batches_tracked")}
save_file(state, f"{out}/model.safetensors")
save_file({"audio": audio, "features": x[0].contiguous(), "features_valid": mask.sum()[None].to(torch.int64),
           "encoded": encoded.last_hidden_state[0].contiguous(), "projected": encoded.pooler_output[0].contiguous(),
           "forced_labels": prompt[0], "forced_logits": forced[0].contiguous(),
           "tokens": torch.tensor(plain[0]), "starts": torch.tensor(plain[1]), "durations": torch.tensor(plain[2]),
           "nemo_tokens": torch.tensor(nemo[0]), "nemo_starts": torch.tensor(nemo[1]),
           **{k: v[0].contiguous() if v.dim() == 3 else v for k, v in stages.items()}}, f"{out}/golden.safetensors")
json.dump(config.to_dict(), open(f"{out}/config.json", "w"), indent=1, default=str)

# CTC: the same encoder with a 1x1 convolution as its head; blank = pad = the last class.
ctc = ParakeetForCTC(ParakeetCTCConfig(vocab_size=33, pad_token_id=32, encoder_config=ParakeetEncoderConfig(**encoder))).eval()
ctc.encoder.load_state_dict(model.encoder.state_dict())
with torch.no_grad():
    logits = ctc(input_features=x, attention_mask=mask).logits
    best = ctc.generate(input_features=x, attention_mask=mask)
save_file({"ctc_head.weight": ctc.ctc_head.weight.detach().contiguous(), "ctc_head.bias": ctc.ctc_head.bias.detach().contiguous(),
           "logits": logits[0].contiguous(), "best": best[0].contiguous()}, f"{out}/ctc.safetensors")
print("ctc logits", tuple(logits.shape), "best", best[0][:12].tolist())
names = sorted(state)
print(len(names), "tensors;", [k for k in names if ".layers.0." in k or "layers" not in k.split(".")[1:2]])
for f in sorted(os.listdir(out)):
    print(f, os.path.getsize(f"{out}/{f}"))
