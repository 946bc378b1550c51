"""Gradients and losses of low-rank adapters on the starter model, by PyTorch in 64 bits.

usage: python3 make_training.py     (torch 2.15, transformers 5.x, safetensors, tokenizers)

Writes, beside this script:
- training_gradients.safetensors: the gradient of A and B of every adapted matrix for one batch
- training.json: the examples, the loss of that batch, and the losses of one epoch of AdamW

The sound is that of tests/data/corpus/reference/tensors. A and B begin with values of a formula,
which crates/models/tests/training.rs repeats.
"""
import json, math, pathlib

import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from transformers import WhisperForConditionalGeneration

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[4]
STARTER = ROOT / "models/starter-whisper"
RANK, ALPHA, HIGHEST, BATCH = 2, 4.0, 2e-3, 2
torch.set_num_threads(1)


class Adapted(torch.nn.Module):
    def __init__(self, linear, number):
        super().__init__()
        self.linear = linear
        output, input = linear.weight.shape
        values = lambda count, f, step, size: torch.tensor([size * f(step * i + number) for i in range(count)])
        self.a = torch.nn.Parameter(values(RANK * input, math.sin, 0.37, 0.05).double().reshape(RANK, input))
        self.b = torch.nn.Parameter(values(output * RANK, math.cos, 0.53, 0.03).double().reshape(output, RANK))

    def forward(self, x):
        return self.linear(x) + (x @ self.a.T @ self.b.T) * (ALPHA / RANK)


def adapt(model):
    """In the order of `Adapters`: encoder, then decoder; attention, then feed-forward."""
    adapted = {}
    for side, kinds in [("encoder", ["self_attn"]), ("decoder", ["self_attn", "encoder_attn"])]:
        for number, layer in enumerate(getattr(model.model, side).layers):
            parts = [(getattr(layer, kind), kind + ".", part) for kind in kinds
                     for part in ["q_proj", "k_proj", "v_proj", "out_proj"]]
            parts += [(layer, "", "fc1"), (layer, "", "fc2")]
            for owner, kind, part in parts:
                name = f"model.{side}.layers.{number}.{kind}{part}"
                setattr(owner, part, Adapted(getattr(owner, part), len(adapted)))
                adapted[name] = getattr(owner, part)
    return adapted


def fresh():
    model = WhisperForConditionalGeneration.from_pretrained(STARTER, dtype=torch.float64, attn_implementation="eager")
    model.eval()
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    return model, adapt(model)


tokenizer = Tokenizer.from_file(str(STARTER / "tokenizer.json"))
special = tokenizer.token_to_id
PROMPT = [special("<|startoftranscript|>"), special("<|en|>"), special("<|transcribe|>")]
TEXTS = [
    " Doctor Quillfeather wants the Zolmivane today.",
    " He tells us that there is more here.",
    " Nobody in Brackwater knew the name of the boat.",
    " The letter from Aldenham came in the morning.",
    " She put the Zolmivane on the table.",
    " Quillfeather and Brackwater.",
]


def example(number):
    begin, end = special("<|0.00|>"), special("<|0.00|>") + 100 + 7 * number
    tokens = PROMPT + [begin] + tokenizer.encode(TEXTS[number], add_special_tokens=False).ids + [end]
    return {"mel": ["en_short_1", "1688-142285-0000"][number % 2], "tokens": tokens + [special("<|endoftext|>")]}


EXAMPLES = [example(number) for number in range(len(TEXTS))]
tensors = ROOT / "tests/data/corpus/reference/tensors"
MELS = {name: load_file(tensors / f"{name}.safetensors")["mel"].double() for name in {e["mel"] for e in EXAMPLES}}


def loss_of(model, examples):
    """The mean cross-entropy per learnt token of the batch."""
    total, count = 0, 0
    for one in examples:
        tokens = torch.tensor([one["tokens"]])
        logits = model(input_features=MELS[one["mel"]][None], decoder_input_ids=tokens[:, :-1]).logits[0]
        first = len(PROMPT) - 1
        total = total + torch.nn.functional.cross_entropy(logits[first:], tokens[0, len(PROMPT):], reduction="sum")
        count += tokens.shape[1] - len(PROMPT)
    return total / count


def rate(step, steps):
    """As `training::cosine`."""
    warm_up = -(-steps // 10)
    if step < warm_up:
        return HIGHEST * (step + 1) / (warm_up + 1)
    done = (step - warm_up) / max(steps - warm_up, 1)
    return HIGHEST * (0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * min(done, 1))))


model, adapted = fresh()
loss = loss_of(model, EXAMPLES[:2])
loss.backward()
gradients = {}
for name, module in adapted.items():
    gradients[f"{name}.lora_A.weight"] = module.a.grad.float().contiguous()
    gradients[f"{name}.lora_B.weight"] = module.b.grad.float().contiguous()
save_file(gradients, HERE / "training_gradients.safetensors")

model, adapted = fresh()
variables = [variable for module in adapted.values() for variable in (module.a, module.b)]
optimiser = torch.optim.AdamW(variables, lr=HIGHEST, weight_decay=0)
batches = [EXAMPLES[at:at + BATCH] for at in range(0, len(EXAMPLES), BATCH)]
losses = []
for step, batch in enumerate(batches):
    optimiser.zero_grad()
    batch_loss = loss_of(model, batch)
    batch_loss.backward()
    for group in optimiser.param_groups:
        group["lr"] = rate(step, len(batches))
    optimiser.step()
    losses.append(batch_loss.item())
with torch.no_grad():
    after = loss_of(model, EXAMPLES).item()
written = {"rank": RANK, "alpha": ALPHA, "highest_rate": HIGHEST, "batch": BATCH, "prompt": len(PROMPT),
           "examples": EXAMPLES, "loss": loss.item(), "epoch": losses, "after": after}
(HERE / "training.json").write_text(json.dumps(written, indent=1) + "\n")
