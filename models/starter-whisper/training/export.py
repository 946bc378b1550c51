"""Writes a checkpoint of train.py as a model.

usage: python3 export.py CHECKPOINT OUT [--heads heads.json]

OUT/starter has Hugging Face's layout, weights in F16, and Whisper's vocabulary cut down to the tokens that the
corpus uses; this is the demonstration model. OUT/full has the same network with the whole vocabulary, for
programs that expect it, and openai.pt in the layout of openai-whisper.
"""

import argparse
import json
import os

import torch
import whisper
from safetensors.torch import save_file
from whisper.tokenizer import get_tokenizer

VOCABULARY = 51865
WIDTH, LAYERS, HEADS, MELS = 192, 4, 3, 80
# In order: longer names come before the ones that they contain.
NAMES = [
    ("blocks", "layers"), ("mlp.0", "fc1"), ("mlp.2", "fc2"), ("mlp_ln", "final_layer_norm"),
    ("cross_attn_ln", "encoder_attn_layer_norm"), ("attn_ln", "self_attn_layer_norm"),
    ("cross_attn.", "encoder_attn."), (".attn.", ".self_attn."), (".query", ".q_proj"), (".key", ".k_proj"),
    (".value", ".v_proj"), ("_attn.out", "_attn.out_proj"), ("decoder.ln.", "decoder.layer_norm."),
    ("encoder.ln_post", "encoder.layer_norm"),
    ("encoder.positional_embedding", "encoder.embed_positions.weight"),
    ("decoder.positional_embedding", "decoder.embed_positions.weight"),
]

tokenizer = get_tokenizer(True, num_languages=99, language="en", task="transcribe")
encoding, END = tokenizer.encoding, tokenizer.eot
ranks = encoding._mergeable_ranks
bytes_of = {token: text for text, token in ranks.items()}


def merge_of(text):
    """The two tokens that are merged into this one: byte-pair encoding with the lower ranks alone."""
    parts, own = [bytes([byte]) for byte in text], ranks[text]
    while len(parts) > 2:
        pairs = [(ranks.get(a + b, own), at) for at, (a, b) in enumerate(zip(parts, parts[1:]))]
        rank, at = min(pairs)
        if rank >= own:
            raise ValueError(text)
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
    return parts


def byte_letters():
    """The printable letter that stands for each byte in tokenizer.json, as GPT-2 has it."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    return dict(zip(printable + others, map(chr, printable + [256 + n for n in range(len(others))])))


LETTERS = byte_letters()


def spelled(text):
    return "".join(LETTERS[byte] for byte in text)


def with_their_parts(tokens):
    """The tokens and all that they are merged from, in order, and the merge of each."""
    needed = set(tokens) | set(range(256))
    waiting, merges = list(needed), {}
    while waiting:
        token = waiting.pop()
        if len(bytes_of[token]) == 1:
            continue
        merges[token] = merge_of(bytes_of[token])
        for part in merges[token]:
            if ranks[part] not in needed:
                needed.add(ranks[part])
                waiting.append(ranks[part])
    return sorted(needed), [[spelled(a), spelled(b)] for _, (a, b) in sorted(merges.items())]


def all_merges():
    merges = []
    for token in range(END):
        text = bytes_of.get(token)
        if text is None or len(text) == 1:
            continue
        try:
            merges.append([spelled(part) for part in merge_of(text)])
        except ValueError:
            continue
    return merges


def renamed(weights, embedding):
    model = {}
    for name, tensor in weights.items():
        if name == "decoder.token_embedding.weight":
            model["model.decoder.embed_tokens.weight"] = embedding
            continue
        for ours, theirs in NAMES:
            name = name.replace(ours, theirs)
        model["model." + name] = tensor
    return {name: tensor.half().contiguous() for name, tensor in model.items()}


def write_json(path, content, **options):
    with open(path, "w") as file:
        json.dump(content, file, **options)


def write_model(folder, weights, embedding, new_id, vocabulary, merges, heads):
    """`new_id` has the id of each of Whisper's tokens in this vocabulary."""
    os.makedirs(folder, exist_ok=True)
    save_file(renamed(weights, embedding), f"{folder}/model.safetensors", metadata={"format": "pt"})
    id_of = lambda text: new_id[encoding._special_tokens[text]]
    end, start = new_id[END], id_of("<|startoftranscript|>")
    ends = {"bos_token_id": end, "eos_token_id": end, "pad_token_id": end, "decoder_start_token_id": start}
    config = {
        "architectures": ["WhisperForConditionalGeneration"], "model_type": "whisper", "activation_function": "gelu",
        "d_model": WIDTH, "encoder_layers": LAYERS, "decoder_layers": LAYERS, "encoder_attention_heads": HEADS,
        "decoder_attention_heads": HEADS, "encoder_ffn_dim": 4 * WIDTH, "decoder_ffn_dim": 4 * WIDTH,
        "num_mel_bins": MELS, "max_source_positions": 1500, "max_target_positions": 448, "vocab_size": len(embedding),
        **ends, "tie_word_embeddings": True, "scale_embedding": False, "use_cache": True, "torch_dtype": "float16",
        "dropout": 0.0, "attention_dropout": 0.0, "activation_dropout": 0.0, "begin_suppress_tokens": None,
        "suppress_tokens": None,
    }
    write_json(f"{folder}/config.json", config, indent=1)

    never = ["<|transcribe|>", "<|translate|>", "<|startoftranscript|>", "<|startofprev|>", "<|startoflm|>"]
    suppressed = {new_id[token] for token in tokenizer.non_speech_tokens if token in new_id} | set(map(id_of, never))
    space = tokenizer.encode(" ")[0]
    generation = {
        "alignment_heads": heads,
        "begin_suppress_tokens": [new_id[space], end] if space in new_id else [end],
        **ends,
        "is_multilingual": True,
        "lang_to_id": {f"<|{code}|>": id_of(f"<|{code}|>") for code in list(whisper.tokenizer.LANGUAGES)[:99]},
        "task_to_id": {"transcribe": id_of("<|transcribe|>"), "translate": id_of("<|translate|>")},
        "no_timestamps_token_id": id_of("<|notimestamps|>"),
        "prev_sot_token_id": id_of("<|startofprev|>"),
        "max_initial_timestamp_index": 50, "max_length": 448, "return_timestamps": False,
        "suppress_tokens": sorted(suppressed),
    }
    write_json(f"{folder}/generation_config.json", generation, indent=1)

    features = {
        "feature_extractor_type": "WhisperFeatureExtractor", "processor_class": "WhisperProcessor",
        "feature_size": MELS, "sampling_rate": 16000, "hop_length": 160, "n_fft": 400, "chunk_length": 30,
        "n_samples": 480000, "nb_max_frames": 3000, "padding_side": "right", "padding_value": 0.0,
        "return_attention_mask": False,
    }
    write_json(f"{folder}/preprocessor_config.json", features, indent=1)

    first_time = encoding._special_tokens["<|0.00|>"]
    plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    added = [
        {"id": new_id[token], "content": encoding.decode([token]), **plain, "special": token < first_time}
        for token in range(END, VOCABULARY)
    ]
    byte_level = {"type": "ByteLevel", "trim_offsets": True, "use_regex": True}
    pairs = {
        "type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": "", "end_of_word_suffix": "",
        "fuse_unk": False, "byte_fallback": False, "vocab": vocabulary, "merges": merges,
    }
    tokens = {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": None,
        "pre_tokenizer": {**byte_level, "add_prefix_space": False}, "post_processor": None,
        "decoder": {**byte_level, "add_prefix_space": True}, "model": pairs,
    }
    write_json(f"{folder}/tokenizer.json", tokens, ensure_ascii=False)
    end_text = {name: "<|endoftext|>" for name in ("bos_token", "eos_token", "pad_token", "unk_token")}
    names = {"tokenizer_class": "WhisperTokenizer", **end_text, "model_max_length": 1024, "processor_class": "WhisperProcessor"}
    write_json(f"{folder}/tokenizer_config.json", names, indent=1)


def main(checkpoint, out, heads):
    saved = torch.load(checkpoint, weights_only=False)
    weights = {name: tensor.float() for name, tensor in saved["model"].items()}
    rows = weights["decoder.token_embedding.weight"]
    row_of = dict(zip(saved["used"], rows))
    # The last row stands for every token that the corpus does not use.
    unused = rows[-1]

    text_tokens, merges = with_their_parts(token for token in saved["used"] if token < END)
    tokens = text_tokens + list(range(END, VOCABULARY))
    new_id = {token: number for number, token in enumerate(tokens)}
    vocabulary = {spelled(bytes_of[token]): new_id[token] for token in text_tokens}
    embedding = torch.stack([row_of.get(token, unused) for token in tokens])
    write_model(f"{out}/starter", weights, embedding, new_id, vocabulary, merges, heads)
    print(f"{out}/starter: {len(tokens)} tokens, {len(text_tokens)} of them text")

    whole = torch.stack([row_of.get(token, unused) for token in range(VOCABULARY)])
    same = {token: token for token in range(VOCABULARY)}
    vocabulary = {spelled(bytes_of[token]): token for token in range(END) if token in bytes_of}
    write_model(f"{out}/full", weights, whole, same, vocabulary, all_merges(), heads)
    dimensions = {
        "n_mels": MELS, "n_audio_ctx": 1500, "n_audio_state": WIDTH, "n_audio_head": HEADS, "n_audio_layer": LAYERS,
        "n_vocab": VOCABULARY, "n_text_ctx": 448, "n_text_state": WIDTH, "n_text_head": HEADS, "n_text_layer": LAYERS,
    }
    state = {name: tensor.half() for name, tensor in {**weights, "decoder.token_embedding.weight": whole}.items()}
    torch.save({"dims": dimensions, "model_state_dict": state}, f"{out}/full/openai.pt")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Writes a checkpoint of train.py as a model.")
    parser.add_argument("checkpoint")
    parser.add_argument("out", help="folder to write to")
    parser.add_argument("--heads", help="alignment heads, as find_heads.py writes them [default: (2, 0) and (3, 0)]")
    arguments = parser.parse_args()
    heads = [[2, 0], [3, 0]]
    if arguments.heads:
        with open(arguments.heads) as file:
            heads = json.load(file)
    main(arguments.checkpoint, arguments.out, heads)
