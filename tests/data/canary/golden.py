"""Golden outputs of two sizes of transformers' CanaryForConditionalGeneration with random weights.

Writes first/ and second/: model.safetensors, config.json, tokenizer.json, golden.safetensors. The second size has biases in
its encoder, a scaled input, another kernel, 80 mel bands and an odd number of decoder layers. Each has a batch of recordings
of 1 s, 7.3 s and 40 s with padding, made by a formula (`sound`), which the test has too. Made with transformers 5.24.0 and
torch 2.15.0.
"""
import json, math, os, sys
os.environ.setdefault("HF_HUB_OFFLINE", "1")
import torch
torch.set_num_threads(1)
torch.version.cuda = None
from safetensors.torch import save_file
from transformers import CanaryConfig, CanaryForConditionalGeneration, ParakeetEncoderConfig, ParakeetFeatureExtractor

LENGTHS = [16_000, 116_800, 640_000]
SPECIAL = ["<unk>", "<|nospeech|>", "<pad>", "<|endoftext|>", "<|startoftranscript|>", "<|pnc|>", "<|noitn|>",
           "<|startofcontext|>", "<|emo:undefined|>", "<|notimestamp|>", "<|nodiarize|>", "<|en|>", "<|de|>"]
WORDS = ["▁a", "b", "▁c", "d", ".", "▁e", "f", "▁g", "h", "▁i", "j"]
TOKENS = SPECIAL + WORDS
END = TOKENS.index("<|endoftext|>")
MOST = 40


def prompt(spoken, written):
    names = ["<|startofcontext|>", "<|startoftranscript|>", "<|emo:undefined|>", f"<|{spoken}|>", f"<|{written}|>",
             "<|pnc|>", "<|noitn|>", "<|notimestamp|>", "<|nodiarize|>"]
    return [TOKENS.index(name) for name in names]


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


def make(name, encoder, decoder, seed):
    out = os.path.join(os.path.dirname(os.path.abspath(__file__)), name)
    os.makedirs(out, exist_ok=True)
    torch.manual_seed(seed)
    config = CanaryConfig(
        vocab_size=len(TOKENS), decoder_start_token_id=TOKENS.index("<|startofcontext|>"), eos_token_id=END, pad_token_id=2,
        bos_token_id=TOKENS.index("<|startoftranscript|>"), encoder_config=ParakeetEncoderConfig(**encoder),
        decoder_config=dict(vocab_size=len(TOKENS), pad_token_id=2, eos_token_id=END, **decoder))
    config._attn_implementation = "eager"
    model = CanaryForConditionalGeneration(config).eval()
    extractor = ParakeetFeatureExtractor(feature_size=encoder["num_mel_bins"])
    recordings = [sound(n) for n in LENGTHS]
    features = extractor([r.numpy() for r in recordings], sampling_rate=16_000, return_tensors="pt", padding="longest")
    x, mask = features["input_features"], features["attention_mask"]
    start = prompt("de", "en")

    def greedy():
        """Of the whole batch, each row until its own end."""
        rows = [list(start) for _ in LENGTHS]
        for _ in range(MOST):
            if all(END in row[len(start):] for row in rows):
                return rows
            ids = torch.tensor(rows)
            logits = model(input_features=x, attention_mask=mask, encoder_outputs=encoded, decoder_input_ids=ids).logits
            for row, best in zip(rows, logits[:, -1].argmax(-1).tolist()):
                row.append(best)
        return None

    with torch.no_grad():
        randomise(model)
        # Sound and position decide what is written, and not the token before alone.
        # Signs, so that a token does not lead to itself: its embedding is also what decides whether it is written.
        model.model.decoder.norm.weight.copy_(4 * (torch.randint(2, (decoder["hidden_size"],)) * 2 - 1.0))
        for layer in model.model.decoder.layers:
            layer.encoder_attn.q_proj.weight *= 2
        encoded = model.model.encoder(x, attention_mask=mask)
        for _ in range(400):
            model.proj_out.weight.copy_(torch.randn_like(model.proj_out.weight) / math.sqrt(decoder["hidden_size"]) * 0.6)
            # What all tokens have in common decides nothing.
            ids = torch.randint(len(SPECIAL), len(TOKENS), (len(LENGTHS), 30))
            hidden = model.model(input_features=x, attention_mask=mask, encoder_outputs=encoded, decoder_input_ids=ids).last_hidden_state
            model.proj_out.bias.copy_(-(model.proj_out.weight @ hidden.mean((0, 1))))
            # Of what is no text only the end is ever written.
            model.proj_out.bias[: len(SPECIAL)] -= 40
            model.proj_out.bias[END] += 40
            found = greedy()
            if found is None:
                continue
            texts = [row[len(start):][: row[len(start):].index(END)] for row in found]
            if all(len(text) >= 3 for text in texts) and len(texts[0]) <= 15 and len(texts[1]) >= 8 and len({tuple(t) for t in texts}) == 3 and len(set(texts[1])) >= 4:
                break
        else:
            sys.exit("no head talks")
        mine = model.generate(input_features=x[1:2, : int(mask[1].sum())], decoder_input_ids=torch.tensor([start]),
                              max_new_tokens=MOST, do_sample=False, num_beams=1)
        told = mine[0].tolist()
        told = told[told.index(start[-1]) + 1:] if start[-1] in told else told
        assert told[: len(texts[1])] == texts[1], (told, texts[1])

        golden = {}
        valid = encoded.attention_mask.sum(-1).tolist() if getattr(encoded, "attention_mask", None) is not None else None
        for i, text in enumerate(texts):
            n = int(mask[i].sum())
            for _ in range(3):
                n = (n - 1) // 2 + 1
            if valid:
                assert n == int(valid[i]), (n, valid)
            frames = encoded.last_hidden_state[i, :n]
            ids = torch.tensor([start + text])
            forced = model.model.decoder(input_ids=ids, encoder_hidden_states=frames[None], output_attentions=True)
            logits = model.proj_out(forced.last_hidden_state)[0]
            golden[f"encoded.{i}"] = frames[::5].contiguous()                      # every 5th frame
            golden[f"logits.{i}"] = logits.contiguous()
            golden[f"tokens.{i}"] = torch.tensor(text, dtype=torch.int64)
            layers = len(model.model.decoder.layers)
            heads = torch.cat([a[0] for a in forced.cross_attentions[layers // 2:]])  # (heads, tokens, frames)
            golden[f"attended.{i}"] = heads[:, len(start) - 1:, ::5].contiguous()
            print(name, i, "frames", n, "tokens", len(text), text)
    state = {k: v.contiguous() for k, v in model.state_dict().items() if not k.endswith(("num_batches_tracked", "positional_embedding"))}
    state.pop("proj_out.weight")                                                    # as save_pretrained does: it is the embedding
    save_file(state, f"{out}/model.safetensors")
    save_file(golden, f"{out}/golden.safetensors")
    written = config.to_dict()
    json.dump(written, open(f"{out}/config.json", "w"), indent=1, sort_keys=True)
    tokenizer = {"version": "1.0", "added_tokens": [], "model": {"type": "BPE", "vocab": {t: i for i, t in enumerate(TOKENS)}, "merges": []}}
    json.dump(tokenizer, open(f"{out}/tokenizer.json", "w"), ensure_ascii=False)


common = dict(hidden_act="silu", subsampling_factor=8, subsampling_conv_channels=8, max_position_embeddings=5000, layerdrop=0.0,
              dropout=0.0)
make("first",
     dict(hidden_size=48, num_hidden_layers=2, num_attention_heads=4, intermediate_size=96, attention_bias=False,
          convolution_bias=False, conv_kernel_size=9, num_mel_bins=128, scale_input=False, **common),
     dict(hidden_size=48, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=4, head_dim=12, intermediate_size=80,
          max_position_embeddings=64), 3)
make("second",
     dict(hidden_size=40, num_hidden_layers=3, num_attention_heads=2, intermediate_size=72, attention_bias=True,
          convolution_bias=True, conv_kernel_size=5, num_mel_bins=80, scale_input=True, **common),
     dict(hidden_size=40, num_hidden_layers=3, num_attention_heads=2, num_key_value_heads=2, head_dim=20, intermediate_size=64,
          max_position_embeddings=96), 4)
