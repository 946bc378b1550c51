"""Runs openai-whisper on a model in the Hugging Face layout with its own vocabulary (any size)."""

import json, torch, tiktoken, whisper, numpy as np
from safetensors.torch import load_file
from whisper.model import Whisper, ModelDimensions
from whisper.tokenizer import Tokenizer, LANGUAGES


def load(folder):
    cfg = json.load(open(folder + "/config.json"))
    gen = json.load(open(folder + "/generation_config.json"))
    tj = json.load(open(folder + "/tokenizer.json"))
    d = ModelDimensions(
        cfg["num_mel_bins"],
        cfg["max_source_positions"],
        cfg["d_model"],
        cfg["encoder_attention_heads"],
        cfg["encoder_layers"],
        cfg["vocab_size"],
        cfg["max_target_positions"],
        cfg["d_model"],
        cfg["decoder_attention_heads"],
        cfg["decoder_layers"],
    )
    m = Whisper(d)
    own = {}
    for k, v in load_file(folder + "/model.safetensors").items():
        n = (
            k.removeprefix("model.")
            .replace("embed_tokens", "token_embedding")
            .replace("embed_positions.weight", "positional_embedding")
        )
        n = (
            n.replace("self_attn_layer_norm", "attn_ln")
            .replace("encoder_attn_layer_norm", "cross_attn_ln")
            .replace("final_layer_norm", "mlp_ln")
            .replace("decoder.layer_norm", "decoder.ln")
            .replace("encoder.layer_norm", "encoder.ln_post")
        )
        n = (
            n.replace("encoder_attn", "cross_attn")
            .replace("self_attn", "attn")
            .replace("out_proj", "out")
            .replace("q_proj", "query")
            .replace("k_proj", "key")
            .replace("v_proj", "value")
            .replace("fc1", "mlp.0")
            .replace("fc2", "mlp.2")
            .replace("layers", "blocks")
        )
        own[n] = v.float()
    m.load_state_dict(own)
    m.eval()
    heads = torch.zeros(d.n_text_layer, d.n_text_head, dtype=torch.bool)
    for l, h in gen["alignment_heads"]:
        heads[l, h] = True
    m.register_buffer("alignment_heads", heads.to_sparse(), persistent=False)
    Whisper.is_multilingual = property(lambda s: True)
    Whisper.num_languages = property(lambda s: 99)
    # the vocabulary as tiktoken sees it
    bs = list(range(33, 127)) + list(range(161, 173)) + list(range(174, 256))
    cs = bs[:]
    n = 0
    for b in range(256):
        if b not in bs:
            bs.append(b)
            cs.append(256 + n)
            n += 1
    back = {chr(c): b for b, c in zip(bs, cs)}
    # tiktoken wants ids in merge order: single bytes may have any id, merges are ranked by id
    ranks = {bytes(back[c] for c in s): i for s, i in tj["model"]["vocab"].items()}
    sp = {a["content"]: a["id"] for a in tj["added_tokens"]}
    enc = tiktoken.Encoding(
        name="starter",
        explicit_n_vocab=None,
        pat_str=r"""'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+""",
        mergeable_ranks=ranks,
        special_tokens=sp,
    )

    def get_tokenizer(multilingual=True, *, num_languages=99, language=None, task=None):
        return Tokenizer(
            encoding=enc,
            num_languages=99,
            language=(language or "en") if True else None,
            task=task or "transcribe",
        )

    import importlib

    for mod in ("whisper.decoding", "whisper.transcribe", "whisper.timing"):
        mo = importlib.import_module(mod)
        if hasattr(mo, "get_tokenizer"):
            mo.get_tokenizer = get_tokenizer
    return m, get_tokenizer, gen
