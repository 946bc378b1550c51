"""A Whisper model of Hugging Face's layout in the forms that other programs read.

    convert.py ctranslate2 FOLDER OUT
    convert.py ggml FOLDER OUT f32|f16|q8_0
    convert.py widen FOLDER OUT

`widen` gives the demonstration model, whose vocabulary is cut down, as many tokens as public models have:
whisper.cpp knows the special ones by number. Written from the formats alone (CTranslate2's model
specification, the loader of whisper.cpp), so that neither torch nor transformers is needed.
"""

import collections
import json
import shutil
import struct
import sys
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file


class Model:
    def __init__(self, folder):
        self.folder = Path(folder)
        self.config = json.loads((self.folder / "config.json").read_text())
        self.generation = json.loads((self.folder / "generation_config.json").read_text())
        tokenizer = json.loads((self.folder / "tokenizer.json").read_text())
        tokens = dict(tokenizer["model"]["vocab"])
        self.text_tokens = len(tokens)
        tokens.update({token["content"]: token["id"] for token in tokenizer["added_tokens"]})
        self.tokens = {id: text for text, id in tokens.items()}
        self.tensors = {}
        for file in sorted(self.folder.glob("*.safetensors")):
            self.tensors.update(load_file(file))

    def get(self, name):
        return self.tensors["model." + name].astype(np.float32)


def ctranslate2(model, out):
    from ctranslate2.specs import whisper_spec

    config = model.config

    def linear(spec, names):
        spec.weight = np.concatenate([model.get(f"{name}.weight") for name in names])
        # Keys have no bias.
        rows = [model.get(f"{name}.weight").shape[0] for name in names]
        spec.bias = np.concatenate([
            model.get(f"{name}.bias") if f"model.{name}.bias" in model.tensors else np.zeros(n, np.float32)
            for name, n in zip(names, rows)
        ])

    def norm(spec, name):
        spec.gamma = model.get(f"{name}.weight")
        spec.beta = model.get(f"{name}.bias")

    def attention(spec, name, cross=False):
        parts = [[f"{name}.q_proj"], [f"{name}.k_proj", f"{name}.v_proj"]] if cross else [
            [f"{name}.q_proj", f"{name}.k_proj", f"{name}.v_proj"]
        ]
        for index, names in enumerate(parts + [[f"{name}.out_proj"]]):
            linear(spec.linear[index], names)
        norm(spec.layer_norm, f"{name}_layer_norm")

    def layers(specs, part):
        for number, spec in enumerate(specs):
            name = f"{part}.layers.{number}"
            attention(spec.self_attention, f"{name}.self_attn")
            if part == "decoder":
                attention(spec.attention, f"{name}.encoder_attn", cross=True)
            norm(spec.ffn.layer_norm, f"{name}.final_layer_norm")
            linear(spec.ffn.linear_0, [f"{name}.fc1"])
            linear(spec.ffn.linear_1, [f"{name}.fc2"])

    spec = whisper_spec.WhisperSpec(
        config["encoder_layers"],
        config["encoder_attention_heads"],
        config["decoder_layers"],
        config["decoder_attention_heads"],
    )
    for name, conv in (("conv1", spec.encoder.conv1), ("conv2", spec.encoder.conv2)):
        conv.weight = model.get(f"encoder.{name}.weight")
        conv.bias = model.get(f"encoder.{name}.bias")
    for part, half in (("encoder", spec.encoder), ("decoder", spec.decoder)):
        half.position_encodings.encodings = model.get(f"{part}.embed_positions.weight")
        norm(half.layer_norm, f"{part}.layer_norm")
        layers(half.layer, part)
    spec.decoder.embeddings.weight = model.get("decoder.embed_tokens.weight")
    spec.decoder.projection.weight = spec.decoder.embeddings.weight
    spec.register_vocabulary([model.tokens[id] for id in range(config["vocab_size"])])
    generation = model.generation
    spec.config.suppress_ids = generation.get("suppress_tokens", [])
    spec.config.suppress_ids_begin = generation.get("begin_suppress_tokens", [])
    spec.config.lang_ids = sorted(generation.get("lang_to_id", {}).values())
    spec.config.alignment_heads = generation.get("alignment_heads", [[0, 0]])
    spec.validate()
    spec.optimize()
    Path(out).mkdir(parents=True, exist_ok=True)
    spec.save(str(out))
    for name in ("tokenizer.json", "preprocessor_config.json"):
        if (model.folder / name).exists():
            shutil.copy(model.folder / name, Path(out) / name)


RENAMED = [
    (".layers.", ".blocks."),
    (".self_attn_layer_norm", ".attn_ln"),
    (".encoder_attn_layer_norm", ".cross_attn_ln"),
    (".self_attn.", ".attn."),
    (".encoder_attn.", ".cross_attn."),
    (".q_proj", ".query"),
    (".k_proj", ".key"),
    (".v_proj", ".value"),
    (".out_proj", ".out"),
    (".fc1", ".mlp.0"),
    (".fc2", ".mlp.2"),
    (".final_layer_norm", ".mlp_ln"),
    ("encoder.layer_norm", "encoder.ln_post"),
    ("decoder.layer_norm", "decoder.ln"),
    ("embed_positions.weight", "positional_embedding"),
    ("embed_tokens", "token_embedding"),
]
TYPES = {"f32": 0, "f16": 1, "q8_0": 8}
FILE_TYPES = {"f32": 0, "f16": 1, "q8_0": 7}


# GPT-2's printable stand-ins for bytes.
PRINTABLE = [*range(33, 127), *range(161, 173), *range(174, 256)]
OTHERS = [byte for byte in range(256) if byte not in PRINTABLE]
BYTES = {chr(byte): byte for byte in PRINTABLE} | {chr(256 + index): byte for index, byte in enumerate(OTHERS)}


def bytes_of_token(text):
    return bytes(BYTES[letter] for letter in text)


def q8_0(values):
    blocks = values.reshape(-1, 32)
    scale = np.abs(blocks).max(axis=1, keepdims=True) / 127
    inverse = np.divide(1, scale, out=np.zeros_like(scale), where=scale > 0)
    out = np.empty(len(blocks), dtype=[("d", "<f2"), ("q", "i1", 32)])
    out["d"] = scale[:, 0]
    out["q"] = np.rint(blocks * inverse)
    return out.tobytes()


def mel_filters(bands, rate=16000, size=400):
    """Slaney's scale and norm, (bands, size / 2 + 1), as librosa makes them."""
    def hz(mel):
        return np.where(mel < 15, mel * 200 / 3, 1000 * np.exp((mel - 15) * np.log(6.4) / 27))

    top = 15 + 27 * np.log(rate / 2 / 1000) / np.log(6.4)
    edges = hz(np.linspace(0, top, bands + 2))
    bins = np.linspace(0, rate / 2, size // 2 + 1)
    rise = (bins - edges[:-2, None]) / (edges[1:-1] - edges[:-2])[:, None]
    fall = (edges[2:, None] - bins) / (edges[2:] - edges[1:-1])[:, None]
    weights = np.maximum(0, np.minimum(rise, fall)) * (2 / (edges[2:] - edges[:-2]))[:, None]
    return weights.astype(np.float32)


def ggml(model, out, kind):
    config = model.config
    Path(out).parent.mkdir(parents=True, exist_ok=True)
    with open(out, "wb") as file:
        file.write(struct.pack(
            "<12i", 0x67676D6C, config["vocab_size"], config["max_source_positions"], config["d_model"],
            config["encoder_attention_heads"], config["encoder_layers"], config["max_target_positions"],
            config["d_model"], config["decoder_attention_heads"], config["decoder_layers"],
            config["num_mel_bins"], FILE_TYPES[kind],
        ))
        filters = mel_filters(config["num_mel_bins"])
        file.write(struct.pack("<2i", *filters.shape) + filters.tobytes())
        # Special tokens are known to the program by number.
        file.write(struct.pack("<i", model.text_tokens))
        for id in range(model.text_tokens):
            text = bytes_of_token(model.tokens[id])
            file.write(struct.pack("<i", len(text)) + text)
        for name in model.tensors:
            short = name.removeprefix("model.")
            values = model.get(short)
            for ours, theirs in RENAMED:
                short = short.replace(ours, theirs)
            if short.startswith("encoder.conv") and short.endswith("bias"):
                values = values.reshape(-1, 1)
            is_matrix = values.ndim == 2 and short.endswith("weight")
            is_convolution = values.ndim == 3
            held = kind if is_matrix else "f16" if is_convolution and kind != "f32" else "f32"
            data = {
                "f32": lambda: values.astype("<f4").tobytes(),
                "f16": lambda: values.astype("<f2").tobytes(),
                "q8_0": lambda: q8_0(values),
            }[held]()
            encoded = short.encode()
            file.write(struct.pack("<3i", values.ndim, len(encoded), TYPES[held]))
            file.write(struct.pack(f"<{values.ndim}i", *reversed(values.shape)) + encoded + data)


# Where the special tokens of a public multilingual model begin.
PUBLIC_TEXT_TOKENS = 50257
EMBEDDING = "model.decoder.embed_tokens.weight"


def widen(model, out):
    """The same model with text tokens that are never used between its own and the special ones."""
    own = model.text_tokens
    added = PUBLIC_TEXT_TOKENS - own
    moved = lambda id: id if id < own else id + added
    embedding = model.tensors[EMBEDDING]
    # Most rows are one row: training knew all tokens that its corpus does not use as one.
    rows = collections.Counter(row.tobytes() for row in embedding[:own])
    unused = np.frombuffer(rows.most_common(1)[0][0], embedding.dtype)
    model.tensors[EMBEDDING] = np.concatenate([embedding[:own], np.tile(unused, (added, 1)), embedding[own:]])

    config, generation = dict(model.config), dict(model.generation)
    config["vocab_size"] += added
    for settings in (config, generation):
        for key, value in settings.items():
            if value is None:
                continue
            if key.endswith("token_id"):
                settings[key] = moved(value)
            elif key in ("suppress_tokens", "begin_suppress_tokens"):
                settings[key] = [moved(id) for id in value]
            elif key in ("lang_to_id", "task_to_id"):
                settings[key] = {text: moved(id) for text, id in value.items()}
    tokenizer = json.loads((model.folder / "tokenizer.json").read_text())
    tokenizer["model"]["vocab"].update({f"unused{id}": id for id in range(own, PUBLIC_TEXT_TOKENS - 1)})
    # By this token CTranslate2 knows a multilingual model.
    tokenizer["model"]["vocab"][""] = PUBLIC_TEXT_TOKENS - 1
    for token in tokenizer["added_tokens"]:
        token["id"] = moved(token["id"])

    out = Path(out)
    out.mkdir(parents=True, exist_ok=True)
    save_file(model.tensors, out / "model.safetensors", metadata={"format": "pt"})
    for name, content in (("config", config), ("generation_config", generation), ("tokenizer", tokenizer)):
        (out / f"{name}.json").write_text(json.dumps(content, ensure_ascii=False))
    shutil.copy(model.folder / "preprocessor_config.json", out / "preprocessor_config.json")


if __name__ == "__main__":
    form, folder, out, *kind = sys.argv[1:]
    {"ctranslate2": ctranslate2, "ggml": ggml, "widen": widen}[form](Model(folder), out, *kind)
