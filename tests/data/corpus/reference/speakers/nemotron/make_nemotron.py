"""A small model in the layout of NVIDIA's Nemotron-3-Diarization, with random weights, and what transformers makes of
a recording of tones with it: long enough for the speaker cache to be compressed.

usage: make_nemotron.py, in an environment with transformers==5.23.0, torch and safetensors. Writes beside itself.
"""

import json
import math
import os

os.environ.setdefault("HF_HUB_OFFLINE", "1")
import torch
from safetensors.torch import save_file
from transformers import (
    Nemotron3DiarizationConfig,
    Nemotron3DiarizationForAudioFrameClassification,
    Nemotron3DiarizationProcessor,
    NemotronAsrStreamingFeatureExtractor,
)

FOLDER = os.path.dirname(os.path.abspath(__file__))


def first_of_equals(x, k, dim, sorted=True):
    """A frame that is kept for several speakers is in the cache several times, with equal scores. Which of equals
    torch.topk takes depends on the device; the first ones are taken here."""
    found = torch.sort(x, dim=dim, descending=True, stable=True)
    return found.values.narrow(dim, 0, k), found.indices.narrow(dim, 0, k)


torch.set_num_threads(1)
torch.manual_seed(3)
config = Nemotron3DiarizationConfig(
    audio_config=dict(
        hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, num_mel_bins=128,
        rope_parameters={"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.5},
    ),
    head_config=dict(hidden_size=16, num_speakers=8, audio_hidden_size=32),
    streaming_config=dict(fifo_length=12, speaker_cache_update_period=8, speaker_cache_length=32),
    chunk_length=20, chunk_right_context=4, fifo_length=6, speaker_cache_update_period=14,
)
model = Nemotron3DiarizationForAudioFrameClassification(config).eval()
with torch.no_grad():
    for name, weights in model.named_parameters():
        if "norm" in name and name.endswith("weight"):
            weights.copy_(1 + 0.2 * torch.randn_like(weights))
        elif weights.dim() > 1:
            weights.copy_(torch.randn_like(weights) / math.sqrt(weights[0].numel()))
        else:
            weights.copy_(0.1 * torch.randn_like(weights))
    model.classifier.out_proj.weight *= 8

samples = 16_000 * 13 + 777
t = torch.arange(samples) / 16_000
low = 0.2 * torch.sin(2 * math.pi * (150 + 60 * torch.sin(0.7 * t)) * t) * (torch.sin(1.3 * t) > 0)
high = 0.2 * torch.sin(2 * math.pi * (800 + 100 * torch.cos(t)) * t) * (torch.cos(0.9 * t) > 0.2)
audio = (low + high + 0.005 * torch.randn(samples)).float()
processor = Nemotron3DiarizationProcessor(NemotronAsrStreamingFeatureExtractor(feature_size=128))
inputs = processor(audio.numpy(), sampling_rate=16_000)
with torch.no_grad():
    as_torch_keeps = model(**inputs).logits
    torch.topk = first_of_equals
    logits = model(**inputs).logits
turns = processor.extract_speaker_dict(logits, inputs["attention_mask"])[0]

os.makedirs(f"{FOLDER}/model", exist_ok=True)
save_file({name: x.contiguous() for name, x in model.state_dict().items()}, f"{FOLDER}/model/model.safetensors")
with open(f"{FOLDER}/model/config.json", "w") as file:
    json.dump(config.to_dict(), file, indent=1, default=str)
golden = {"audio": audio, "features": inputs["input_features"][0].contiguous(), "logits": logits[0].contiguous()}
save_file(golden, f"{FOLDER}/golden.safetensors")
save_file({"logits": as_torch_keeps[0].contiguous()}, f"{FOLDER}/golden_as_torch_keeps.safetensors")
with open(f"{FOLDER}/turns.json", "w") as file:
    rows = ",\n".join(json.dumps([turn["Start"], turn["End"], turn["Speaker"]]) for turn in turns)
    file.write(f"[\n{rows}\n]\n")
