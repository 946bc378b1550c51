"""Loads a model in Hugging Face's layout, with a vocabulary of its own, into openai-whisper."""

import importlib
import json

import tiktoken
import torch
from safetensors.torch import load_file
from whisper.model import ModelDimensions, Whisper
from whisper.tokenizer import Tokenizer

# In order: longer names come before the ones that they contain.
NAMES = [
    ("embed_tokens", "token_embedding"), ("embed_positions.weight", "positional_embedding"),
    ("self_attn_layer_norm", "attn_ln"), ("encoder_attn_layer_norm", "cross_attn_ln"), ("final_layer_norm", "mlp_ln"),
    ("decoder.layer_norm", "decoder.ln"), ("encoder.layer_norm", "encoder.ln_post"), ("encoder_attn", "cross_attn"),
    ("self_attn", "attn"), ("out_proj", "out"), ("q_proj", "query"), ("k_proj", "key"), ("v_proj", "value"),
    ("fc1", "mlp.0"), ("fc2", "mlp.2"), ("layers", "blocks"),
]
PATTERN = r"""'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""


def read_json(path):
    with open(path) as file:
        return json.load(file)


def bytes_of_letters():
    """The byte that each letter of tokenizer.json stands for, as GPT-2 has it."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    return dict(zip(map(chr, printable + [256 + n for n in range(len(others))]), printable + others))


def load(folder):
    """The model and a function that makes its tokenizer, which openai-whisper uses from then on."""
    config, generation = read_json(f"{folder}/config.json"), read_json(f"{folder}/generation_config.json")
    vocabulary = read_json(f"{folder}/tokenizer.json")
    dimensions = ModelDimensions(
        config["num_mel_bins"], config["max_source_positions"], config["d_model"], config["encoder_attention_heads"],
        config["encoder_layers"], config["vocab_size"], config["max_target_positions"], config["d_model"],
        config["decoder_attention_heads"], config["decoder_layers"],
    )
    model, weights = Whisper(dimensions), {}
    for name, tensor in load_file(f"{folder}/model.safetensors").items():
        name = name.removeprefix("model.")
        for theirs, ours in NAMES:
            name = name.replace(theirs, ours)
        weights[name] = tensor.float()
    model.load_state_dict(weights)
    model.eval()
    set_alignment_heads(model, generation["alignment_heads"])
    # Whisper tells these from the size of the vocabulary, which is another one here.
    Whisper.is_multilingual = property(lambda self: True)
    Whisper.num_languages = property(lambda self: 99)

    letters = bytes_of_letters()
    ranks = {bytes(letters[letter] for letter in text): token for text, token in vocabulary["model"]["vocab"].items()}
    special = {token["content"]: token["id"] for token in vocabulary["added_tokens"]}
    encoding = tiktoken.Encoding(
        name="starter", explicit_n_vocab=None, pat_str=PATTERN, mergeable_ranks=ranks, special_tokens=special
    )

    def get_tokenizer(multilingual=True, *, num_languages=99, language=None, task=None):
        return Tokenizer(encoding=encoding, num_languages=99, language=language or "en", task=task or "transcribe")

    for name in ("whisper.decoding", "whisper.transcribe", "whisper.timing"):
        module = importlib.import_module(name)
        if hasattr(module, "get_tokenizer"):
            module.get_tokenizer = get_tokenizer
    return model, get_tokenizer


def set_alignment_heads(model, heads):
    chosen = torch.zeros(model.dims.n_text_layer, model.dims.n_text_head, dtype=torch.bool)
    for layer, head in heads:
        chosen[layer, head] = True
    model.register_buffer("alignment_heads", chosen.to_sparse(), persistent=False)
