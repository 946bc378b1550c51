"""Golden outputs of a second size of ParakeetForTDT and ParakeetForCTC: with biases, a scaled input, another kernel,
80 mel bands and one recurrent layer; a batch of three recordings of 1 s, 7.3 s and 40 s with padding.

Writes second/: model.safetensors, config.json, golden.safetensors, ctc.safetensors. The recordings are made by a
formula (`sound`), which the test has too.
"""
import json, math, os, sys
os.environ.setdefault("HF_HUB_OFFLINE", "1")
import torch
torch.set_num_threads(1)
torch.version.cuda = None
from safetensors.torch import save_file
from transformers import (ParakeetEncoderConfig, ParakeetTDTConfig, ParakeetForTDT,
                          ParakeetCTCConfig, ParakeetForCTC, ParakeetFeatureExtractor)
out = os.path.join(os.path.dirname(os.path.abspath(__file__)), "second")
os.makedirs(out, exist_ok=True)
torch.manual_seed(11)
LENGTHS = [16_000, 116_800, 640_000]

encoder = dict(hidden_size=40, num_hidden_layers=3, num_attention_heads=2, intermediate_size=72,
               hidden_act="silu", attention_bias=True, convolution_bias=True, conv_kernel_size=5,
               subsampling_factor=8, subsampling_conv_channels=8, num_mel_bins=80, scale_input=True,
               max_position_embeddings=5000, layerdrop=0.0, dropout=0.0)
config = ParakeetTDTConfig(vocab_size=20, decoder_hidden_size=24, num_decoder_layers=1, durations=[0, 1, 2, 3, 4],
                           max_symbols_per_step=10, pad_token_id=2, blank_token_id=19,
                           encoder_config=ParakeetEncoderConfig(**encoder))
model = ParakeetForTDT(config).eval()


def randomise(model):
    for name, p in model.named_parameters():
        if "norm" in name and name.endswith("weight"):
            p.copy_(1 + 0.2 * torch.randn_like(p))
        elif p.dim() > 1:
            p.copy_(torch.randn_like(p) / math.sqrt(p[0].numel()))
        else:
            p.copy_(0.1 * torch.randn_like(p))
    for name, b in model.named_buffers():
        if name.endswith("running_mean"):
            b.copy_(0.3 * torch.randn_like(b))
        elif name.endswith("running_var"):
            b.copy_(0.5 + torch.rand_like(b))


def sound(length):
    """Two tones that glide, and noise of a linear congruential generator, in 64 bits."""
    state, samples = 12345, []
    for n in range(length):
        state = (1103515245 * state + 12345) % 2147483648
        t = n / 16000
        noise = state / 1073741824 - 1
        samples.append(0.3 * math.sin(2 * math.pi * (220 + 9 * t) * t) + 0.2 * math.sin(2 * math.pi * 1730 * t) * (int(t * 3) % 2)
                       + 0.01 * noise)
    return torch.tensor(samples, dtype=torch.float64).float()


def greedy(frames, limit=None):
    """What NeMo's GreedyTDTInfer does, with at most 10 tokens on a frame."""
    state, last, at, here, steps = None, config.blank_token_id, 0, 0, 0
    tokens, starts, durations = [], [], []
    g, after = None, None
    while at < len(frames):
        steps += 1
        if limit and steps > limit:
            return None
        if g is None:
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
        if here >= 10:
            at, here = at + 1, 0
    return tokens, starts, durations


with torch.no_grad():
    randomise(model)
    model.decoder.embedding.weight[config.blank_token_id] = 0
    recordings = [sound(n) for n in LENGTHS]
    extractor = ParakeetFeatureExtractor(feature_size=80)
    features = extractor([r.numpy() for r in recordings], sampling_rate=16_000, return_tensors="pt", padding="longest")
    x, mask = features["input_features"], features["attention_mask"]
    encoded = model.get_audio_features(x, attention_mask=mask)
    plainly = encoded.last_hidden_state[2] @ model.encoder_projector.weight.T
    model.encoder_projector.weight *= 2.0 / plainly.std(0).mean()
    model.encoder_projector.bias.copy_(-2.0 / plainly.std(0).mean() * plainly.mean(0))
    encoded = model.get_audio_features(x, attention_mask=mask)
    valid = encoded.attention_mask.sum(-1).tolist()
    rows = [encoded.pooler_output[i, :n] for i, n in enumerate(valid)]
    for _ in range(3000):
        model.joint.head.weight.copy_(torch.randn_like(model.joint.head.weight) / 3)
        model.joint.head.bias.copy_(0.1 * torch.randn_like(model.joint.head.bias))
        model.joint.head.bias[config.blank_token_id] += 2.0
        model.joint.head.bias[config.vocab_size] -= 1.0
        spoken = [greedy(r, 3 * len(r)) for r in rows]
        if any(s is None for s in spoken):
            continue
        longest = spoken[2]
        if spoken[0][0] and len(set(longest[2])) >= 4 and 0 in longest[2] and len(set(longest[0])) >= 5:
            break
    else:
        sys.exit("no head talks")

golden = {}
for i, n in enumerate(valid):
    golden[f"features.{i}"] = x[i, : int(mask[i].sum())][::37].contiguous()       # every 37th frame
    golden[f"encoded.{i}"] = encoded.last_hidden_state[i, :n].contiguous()
    for name, values in zip(("tokens", "starts", "durations"), spoken[i]):
        golden[f"{name}.{i}"] = torch.tensor(values, dtype=torch.int64)
    print("valid", int(mask[i].sum()), n, "tokens", len(spoken[i][0]), spoken[i][2][:20])
state = {k: v.contiguous() for k, v in model.state_dict().items() if not k.endswith("num_batches_tracked")}
save_file(state, f"{out}/model.safetensors")
json.dump(config.to_dict(), open(f"{out}/config.json", "w"), indent=1, default=str)

ctc = ParakeetForCTC(ParakeetCTCConfig(vocab_size=20, pad_token_id=19, encoder_config=ParakeetEncoderConfig(**encoder))).eval()
ctc.encoder.load_state_dict(model.encoder.state_dict())
with torch.no_grad():
    logits = ctc(input_features=x, attention_mask=mask).logits
save_file({"ctc_head.weight": ctc.ctc_head.weight.detach().contiguous(),
           "ctc_head.bias": ctc.ctc_head.bias.detach().contiguous()}, f"{out}/ctc.safetensors")
for i, n in enumerate(valid):
    golden[f"best.{i}"] = logits[i, :n].argmax(-1)
save_file(golden, f"{out}/golden.safetensors")
for f in sorted(os.listdir(out)):
    print(f, os.path.getsize(f"{out}/{f}"))
