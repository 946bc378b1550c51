"""Makes the reference outputs: openai-whisper (decoding, word times) and transformers (mel, encoder, logits) on one model.
usage: make_reference.py MODEL_FOLDER AUDIO_FOLDER OUT   (pip install openai-whisper transformers safetensors jiwer soundfile)
Everything in 32-bit floats on the CPU, temperature 0, so that a second run gives the same."""

import sys, os, json, glob, torch, whisper, numpy as np, soundfile as sf, jiwer
from safetensors.torch import save_file
from whisper.decoding import DecodingOptions, decode, detect_language
from whisper.normalizers import BasicTextNormalizer
from ref_common import load

folder, audio, out = sys.argv[1:4]
torch.set_num_threads(int(os.environ.get("TH", "2")))
model, get_tokenizer, gen = load(folder)
tok = get_tokenizer()
norm = BasicTextNormalizer()
os.makedirs(out + "/tensors", exist_ok=True)
os.makedirs(out + "/windows", exist_ok=True)
os.makedirs(out + "/files", exist_ok=True)


def read(p):
    x, sr = sf.read(p, dtype="float32")
    assert sr == 16000 and x.ndim == 1, p
    return x


def flt(v):
    return round(float(v), 5)


def margins(key, lang, opt, tokens, enc):
    """how far each greedy token was ahead of the best other one that is not always suppressed (logits; below 0: a timestamp rule chose)"""
    if not key.startswith("greedy") or not tokens:
        return None
    t = get_tokenizer(language=lang)
    start = list(t.sot_sequence_including_notimestamps if opt["without_timestamps"] else t.sot_sequence)
    l = model.logits(torch.tensor([start + list(tokens)]), enc)[0][len(start) - 1 : -1].clone()
    l[:, gen["suppress_tokens"]] = -1e9
    i = torch.tensor(list(tokens))[:, None]
    c = l.gather(1, i)[:, 0]
    l.scatter_(1, i, -1e9)
    return [flt(v) for v in c - l.amax(1)]


TENSORS = {"en_short_1", "de_half_minute_1", "1688-142285-0000", "no_speech_white_noise"}
names = sorted(glob.glob(audio + "/synthetic/*.flac")) + [
    p
    for p in sorted(glob.glob(audio + "/real/librispeech/*.flac"))
    if p.endswith(("-0000.flac", "-0005.flac"))
]
summary = {}
for p in names:
    name = os.path.basename(p)[:-5]
    rel = os.path.relpath(p, audio)
    x = read(p)
    truth = json.load(open(p[:-5] + ".json")) if os.path.exists(p[:-5] + ".json") else None
    # --- the first window of 30 s
    mel = whisper.log_mel_spectrogram(whisper.pad_or_trim(torch.from_numpy(x)))
    with torch.no_grad():
        enc = model.embed_audio(mel[None])
        _, probs = detect_language(model, enc, tok)
        lang = max(probs[0], key=probs[0].get) if isinstance(probs, list) else max(probs, key=probs.get)
        pr = probs[0] if isinstance(probs, list) else probs
        w = dict(
            audio=rel,
            language=lang,
            language_probabilities={k: flt(v) for k, v in sorted(pr.items(), key=lambda z: -z[1])[:8]},
        )
        for key, opt in (
            ("greedy", dict(without_timestamps=False)),
            ("greedy_no_timestamps", dict(without_timestamps=True)),
            ("beam_5", dict(without_timestamps=False, beam_size=5)),
            ("translate", dict(task="translate", without_timestamps=True)),
        ):
            if key == "translate" and lang == "en":
                continue
            r = decode(model, mel, DecodingOptions(language=lang, fp16=False, temperature=0.0, **opt))
            mg = margins(key, lang, opt, r.tokens, enc)
            w[key] = dict(
                tokens=list(map(int, r.tokens)),
                text=r.text,
                avg_logprob=flt(r.avg_logprob),
                no_speech_prob=flt(r.no_speech_prob),
                compression_ratio=flt(r.compression_ratio),
                **({"margin": mg} if mg else {}),
            )
        json.dump(w, open(f"{out}/windows/{name}.json", "w"), ensure_ascii=False, indent=1)
        if name in TENSORS:
            t = get_tokenizer(language=lang)
            prompt = torch.tensor([list(t.sot_sequence)])
            lg = model.logits(prompt, enc)[0]
            save_file(
                dict(
                    mel=mel.contiguous(),
                    encoder=enc[0].contiguous(),
                    prompt=prompt[0].to(torch.int32),
                    logits=lg.contiguous(),
                ),
                f"{out}/tensors/{name}.safetensors",
            )
    # --- the whole file, window after window, with word times
    f = dict(audio=rel)
    for key, cond in (("conditioned", True), ("independent", False)):
        r = whisper.transcribe(
            model,
            x,
            language=None,
            temperature=0.0,
            fp16=False,
            condition_on_previous_text=cond,
            word_timestamps=True,
            verbose=None,
        )
        f[key] = dict(
            language=r["language"],
            segments=[
                dict(
                    start=flt(s["start"]),
                    end=flt(s["end"]),
                    text=s["text"],
                    avg_logprob=flt(s["avg_logprob"]),
                    compression_ratio=flt(s["compression_ratio"]),
                    no_speech_prob=flt(s["no_speech_prob"]),
                    words=[
                        dict(
                            word=v["word"],
                            start=flt(v["start"]),
                            end=flt(v["end"]),
                            probability=flt(v["probability"]),
                        )
                        for v in s["words"]
                    ],
                )
                for s in r["segments"]
            ],
        )
        if truth is not None:
            ref = norm(" ".join(s["text"] for s in truth["segments"]))
            hyp = norm("".join(s["text"] for s in r["segments"]))
            f[key]["word_error_rate"] = flt(jiwer.wer(ref, hyp)) if ref else None
            f[key]["words_hallucinated"] = len(hyp.split()) if not ref else 0
    json.dump(f, open(f"{out}/files/{name}.json", "w"), ensure_ascii=False, indent=1)
    summary[name] = dict(
        language=lang,
        **({k: f[k].get("word_error_rate") for k in ("conditioned", "independent")} if truth else {}),
        words_hallucinated=f["independent"].get("words_hallucinated"),
    )
    print(name, summary[name], flush=True)
import transformers

json.dump(
    dict(
        made_with={
            "openai-whisper": whisper.__version__,
            "transformers": transformers.__version__,
            "torch": torch.__version__,
        },
        files=summary,
    ),
    open(out + "/summary.json", "w"),
    indent=1,
)
# --- the same numbers from the second implementation
from transformers import WhisperForConditionalGeneration, WhisperFeatureExtractor

hf = WhisperForConditionalGeneration.from_pretrained(folder, torch_dtype=torch.float32).eval()
fe = WhisperFeatureExtractor.from_pretrained(folder)
check = {}
from safetensors.torch import load_file

for n in sorted(TENSORS):
    t = load_file(f"{out}/tensors/{n}.safetensors")
    p = [q for q in names if os.path.basename(q) == n + ".flac"][0]
    m = torch.from_numpy(fe(read(p)[:480000], sampling_rate=16000, return_tensors="np").input_features)[0]
    with torch.no_grad():
        e = hf.model.encoder(m[None]).last_hidden_state[0]
        l = hf(m[None], decoder_input_ids=t["prompt"][None].long()).logits[0]
    check[n] = dict(
        mel=flt((m - t["mel"]).abs().max()),
        encoder=flt((e - t["encoder"]).abs().max()),
        logits=flt((l - t["logits"]).abs().max()),
    )
    print(n, check[n])
json.dump(check, open(out + "/agreement_with_transformers.json", "w"), indent=1)
