"""What a graphics card takes for Whisper's network in transformers (PyTorch), random weights, F16.

    peer.py WINDOWS TOKENS SIZE...     a line of JSON per size: milliseconds of the encoder, and of each token

The encoder and a greedy loop, without the library's own work between tokens and without sound: the least that a program
built on it can take. Exits with status 3 where there is no PyTorch with a card, or no transformers.
"""

import json
import statistics
import sys
import time

try:
    import torch
    from transformers import WhisperConfig, WhisperForConditionalGeneration

    if not torch.cuda.is_available():
        raise ImportError("PyTorch sees no card")
except ImportError as reason:
    print(reason, file=sys.stderr)
    sys.exit(3)

# Width, layers of encoder and decoder, mel bins, vocabulary: model cards of openai/whisper.
SIZES = {
    "tiny": (384, 4, 4, 80, 51865),
    "base": (512, 6, 6, 80, 51865),
    "small": (768, 12, 12, 80, 51865),
    "medium": (1024, 24, 24, 80, 51865),
    "large-v3-turbo": (1280, 32, 4, 128, 51866),
}
RUNS = 4  # The first warms up.


def network(size):
    width, encoder, decoder, mels, vocabulary = SIZES[size]
    config = WhisperConfig(
        vocab_size=vocabulary, num_mel_bins=mels, d_model=width,
        encoder_layers=encoder, decoder_layers=decoder,
        encoder_attention_heads=width // 64, decoder_attention_heads=width // 64,
        encoder_ffn_dim=4 * width, decoder_ffn_dim=4 * width,
    )
    return WhisperForConditionalGeneration(config).half().cuda().eval()


@torch.inference_mode()
def measure(size, windows, tokens):
    model = network(size)
    features = torch.randn(windows, SIZES[size][3], 3000, device="cuda", dtype=torch.float16)
    encoder, token = [], []
    for _ in range(RUNS):
        torch.cuda.synchronize()
        begun = time.perf_counter()
        sound = model.model.encoder(features).last_hidden_state
        torch.cuda.synchronize()
        encoded = time.perf_counter()
        known, last = None, torch.full((windows, 1), 50258, device="cuda")
        for _ in range(tokens):
            out = model.model.decoder(
                input_ids=last, encoder_hidden_states=sound, past_key_values=known, use_cache=True
            )
            known = out.past_key_values
            last = model.proj_out(out.last_hidden_state[:, -1:]).argmax(-1)
            last.tolist()  # The choice is read after every token, as by any program that ends a sentence.
        decoded = time.perf_counter()
        encoder.append(1000 * (encoded - begun))
        token.append(1000 * (decoded - encoded) / tokens)
    return {
        "size": size, "windows": windows, "encoder": statistics.median(encoder[1:]),
        "token": statistics.median(token[1:]), "peak": torch.cuda.max_memory_allocated() >> 20,
    }


for name in sys.argv[3:]:
    print(json.dumps(measure(name, int(sys.argv[1]), int(sys.argv[2]))), flush=True)
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
