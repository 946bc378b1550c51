"""Makes the two tiny models of this folder and what sentence-transformers computes with them.

    pip install torch transformers sentence-transformers
    python tests/data/embedding/make.py

The weights are random, the tokenizers are trained on the texts below: nothing here is anybody
else's. The trainers number equal pieces differently each time, so that another run makes other
files that are as good. The tests compare Steno's vectors with golden.json.
"""

import json
import shutil
from pathlib import Path

import torch
from safetensors.torch import save_file
from sentence_transformers import SentenceTransformer
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import BertConfig, BertModel, XLMRobertaConfig, XLMRobertaModel

HERE = Path(__file__).parent

TEXTS = [
    "We have to sell the boat before winter.",
    "She never told me what the engine cost.",
    "Der Motor war teurer als das ganze Schiff.",
    "¿Quién compra un barco en octubre?",
    "Le phare s’allume à la tombée de la nuit.",
    "船を売ることにしました。",
    "Naïve café, 42 % off!",
    "a",
    "",
    "  spaces   and\ttabs\n",
    "boat " * 100,
]
MAX_TOKENS = 40


def randomise(network, seed):
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, weight in network.named_parameters():
            noise = torch.randn(weight.shape, generator=generator)
            is_norm = "LayerNorm.weight" in name
            weight.copy_(1 + 0.1 * noise if is_norm else 0.25 * noise)
    return network.eval()


def write(name, network, tokenizer, pooling, prompts, seed):
    folder = HERE / name
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "1_Pooling").mkdir(parents=True)
    randomise(network, seed)
    if name == "tiny-bert":
        # As models without safetensors come: the same weights as torch saves them.
        torch.save(network.state_dict(), HERE / "pytorch_model.bin")
    tensors = {key: value.contiguous() for key, value in network.state_dict().items() if "position_ids" not in key}
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    config = network.config.to_dict()
    kept = [
        "model_type", "vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size",
        "max_position_embeddings", "type_vocab_size", "hidden_act", "layer_norm_eps", "pad_token_id",
    ]
    dump(folder / "config.json", {key: config[key] for key in kept})
    tokenizer.save(str(folder / "tokenizer.json"))
    dump(folder / "tokenizer_config.json", {
        "tokenizer_class": "PreTrainedTokenizerFast", "pad_token": tokenizer.id_to_token(config["pad_token_id"]),
    })
    steps = [("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize")]
    dump(folder / "modules.json", [
        {"idx": number, "name": str(number), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for number, (path, kind) in enumerate(steps)
    ])
    dump(folder / "1_Pooling/config.json", {
        "word_embedding_dimension": config["hidden_size"],
        "pooling_mode_cls_token": pooling == "cls",
        "pooling_mode_mean_tokens": pooling == "mean",
    })
    dump(folder / "sentence_bert_config.json", {"max_seq_length": MAX_TOKENS, "do_lower_case": False})
    dump(folder / "config_sentence_transformers.json", {"prompts": prompts})
    reference = SentenceTransformer(str(folder), device="cpu")
    assert reference.max_seq_length == MAX_TOKENS, reference.max_seq_length
    answers = []
    for role in ["query", "passage"]:
        for text in TEXTS:
            vector = reference.encode([text], prompt=prompts.get(role, ""), convert_to_numpy=True)[0]
            answers.append({"model": name, "role": role, "text": text, "vector": [float(x) for x in vector]})
    return answers


def dump(path, value):
    path.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n")


def word_pieces():
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    tokenizer.train_from_iterator(TEXTS, trainers.WordPieceTrainer(vocab_size=200, special_tokens=special))
    ends = [(token, tokenizer.token_to_id(token)) for token in ["[CLS]", "[SEP]"]]
    tokenizer.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=ends)
    tokenizer.decoder = decoders.WordPiece()
    return tokenizer


def unigrams():
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    trainer = trainers.UnigramTrainer(vocab_size=200, special_tokens=special, unk_token="<unk>")
    tokenizer.train_from_iterator(TEXTS, trainer)
    ends = [(token, tokenizer.token_to_id(token)) for token in ["<s>", "</s>"]]
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=ends)
    tokenizer.decoder = decoders.Metaspace()
    return tokenizer


def main():
    sizes = dict(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, max_position_embeddings=64,
    )
    pieces, grams = word_pieces(), unigrams()
    bert = BertModel(BertConfig(vocab_size=pieces.get_vocab_size(), **sizes), add_pooling_layer=False)
    roberta = XLMRobertaModel(
        XLMRobertaConfig(
            vocab_size=grams.get_vocab_size(), type_vocab_size=1, layer_norm_eps=1e-5, pad_token_id=1, **sizes
        ),
        add_pooling_layer=False,
    )
    prompts = {"query": "query: ", "passage": "passage: "}
    answers = write("tiny-bert", bert, pieces, "mean", {}, 1)
    answers += write("tiny-xlm-roberta", roberta, grams, "cls", prompts, 2)
    (HERE / "golden.json").write_text(json.dumps(answers, ensure_ascii=False) + "\n")


main()
