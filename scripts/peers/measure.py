"""One peer, one model, one precision, in a process of its own; prints a line of JSON.

    measure.py ctranslate2 FOLDER COMPUTE_TYPE THREADS
    measure.py whisper.cpp FILE THREADS

Encoder ms, greedy and beam ms per token, peak MB. They mean what those of `models`' bench example mean: one
window of 30 s, two lengths of forced tokens, the best of three runs after a warm-up.

    measure.py faster-whisper FOLDER COMPUTE_TYPE THREADS RECORDING
    measure.py whisper.cpp-file FILE THREADS RECORDING

A whole recording from file to text, greedy and without fallback: seconds from before the model is loaded
until the text is complete (the imports of Python are left out), peak MB, and the text.

    measure.py forced FOLDER COMPUTE_TYPE THREADS RECORDING WINDOWS TOKENS

The same with a model of random weights, so many windows at a time (1: one after the other), each of which is
made to have so many tokens.
"""

import json
import sys
import time

import numpy as np

RUNS = 3
SHORT, LONG = 60, 160
# Of the multilingual vocabulary of tiny to large-v2, which the models of random weights have.
END_OF_TEXT, FIRST_TIME, LAST_TIME = 50257, 50364, 51864


def best(work):
    work()
    times = []
    for _ in range(RUNS):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return min(times)


def peak_mb():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) // 1024


def resident_mb():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) // 1024


def ctranslate2(folder, kind, threads):
    import ctranslate2

    before = resident_mb()
    model = ctranslate2.models.Whisper(folder, device="cpu", compute_type=kind, intra_threads=threads, inter_threads=1)
    mel = np.random.default_rng(1).normal(0, 0.5, (1, model.n_mels, 3000)).astype(np.float32)
    features = ctranslate2.StorageView.from_array(mel)
    encoding = best(lambda: model.encode(features))
    audio = model.encode(features)
    # Start, English, transcribe, no times; the end never comes.
    end = 50257
    prompt = [50258, 50259, 50359, 50363]

    def decode(beams, tokens):
        # At most half of the length that is asked for is generated.
        found = model.generate(
            audio, [prompt], beam_size=beams, max_length=2 * tokens, suppress_blank=False,
            suppress_tokens=[end], return_scores=False,
        )
        assert len(found[0].sequences_ids[0]) == tokens

    step = {beams: (best(lambda: decode(beams, LONG)) - best(lambda: decode(beams, SHORT))) / (LONG - SHORT)
            for beams in (1, 5)}
    return encoding, step[1], step[5], before


def whisper_cpp(file, threads):
    import _pywhispercpp as cpp

    before = resident_mb()
    parameters = cpp.whisper_context_default_params()
    parameters.use_gpu = False
    context = cpp.whisper_init_from_file_with_params(file, parameters)
    sound = np.random.default_rng(1).normal(0, 0.1, 16000 * 30).astype(np.float32)
    cpp.whisper_pcm_to_mel(context, sound, len(sound), threads)
    encoding = best(lambda: cpp.whisper_encode(context, 0, threads))

    def decode(tokens):
        for past in range(tokens):
            cpp.whisper_decode(context, 100 + past, 1, past, threads)

    step = (best(lambda: decode(LONG)) - best(lambda: decode(SHORT))) / (LONG - SHORT)
    return encoding, step, None, before


def faster_whisper(folder, kind, threads, recording):
    from faster_whisper import WhisperModel

    before, started = resident_mb(), time.perf_counter()
    model = WhisperModel(folder, device="cpu", compute_type=kind, cpu_threads=threads, local_files_only=True)
    segments, _ = model.transcribe(
        recording, language="en", beam_size=1, temperature=0, condition_on_previous_text=False,
    )
    text = " ".join(segment.text.strip() for segment in segments)
    return time.perf_counter() - started, before, text


def forced(folder, kind, threads, recording, windows, tokens):
    from faster_whisper import BatchedInferencePipeline, WhisperModel

    before, started = resident_mb(), time.perf_counter()
    model = WhisperModel(folder, device="cpu", compute_type=kind, cpu_threads=threads, local_files_only=True)
    # The prompt is 4 tokens long, and CTranslate2 stops at half of the length that it is given with the prompt.
    longest = 2 * tokens - 4
    # Neither the end nor a time, by which a window would end early.
    suppressed = [END_OF_TEXT, *range(FIRST_TIME, LAST_TIME + 1)]
    options = {
        "language": "en", "beam_size": 1, "temperature": 0, "without_timestamps": True, "suppress_blank": False,
        "suppress_tokens": suppressed, "max_new_tokens": longest, "condition_on_previous_text": False,
        "no_speech_threshold": None, "log_prob_threshold": None, "compression_ratio_threshold": None,
    }
    if windows > 1:
        with_speech = [{"start": start, "end": start + 30} for start in range(0, int(duration(recording)), 30)]
        segments, _ = BatchedInferencePipeline(model).transcribe(
            recording, batch_size=windows, vad_filter=False, clip_timestamps=with_speech, **options)
    else:
        segments, _ = model.transcribe(recording, **options)
    written = [len(segment.tokens) for segment in segments]
    if set(written) != {tokens}:
        sys.exit(f"faster-whisper wrote {written} tokens, not {tokens} in each window")
    return time.perf_counter() - started, before, f"{sum(written)} tokens"


def duration(recording):
    import av

    with av.open(recording) as container:
        return container.duration / 1e6


def whisper_cpp_file(file, threads, recording):
    from pywhispercpp.model import Model

    before, started = resident_mb(), time.perf_counter()
    model = Model(file, n_threads=threads, print_progress=False, print_realtime=False, redirect_whispercpp_logs_to=None)
    segments = model.transcribe(recording, language="en", temperature_inc=0.0, no_context=True)
    text = " ".join(segment.text.strip() for segment in segments)
    return time.perf_counter() - started, before, text


def report_file(seconds, before, text):
    # Python and its libraries are none of the peer's.
    print(json.dumps({"seconds": seconds, "peak": peak_mb() - before, "text": text}))


def report_network(encoding, greedy, beams, before):
    ms = lambda seconds: None if seconds is None else round(seconds * 1e3, 1)
    print(json.dumps({
        "encoder": ms(encoding), "greedy": ms(greedy), "beams": ms(beams), "peak": peak_mb() - before,
    }))


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["ctranslate2", model, kind, threads]:
            report_network(*ctranslate2(model, kind, int(threads)))
        case ["whisper.cpp", model, threads]:
            report_network(*whisper_cpp(model, int(threads)))
        case ["faster-whisper", model, kind, threads, recording]:
            report_file(*faster_whisper(model, kind, int(threads), recording))
        case ["forced", model, kind, threads, recording, windows, tokens]:
            report_file(*forced(model, kind, int(threads), recording, int(windows), int(tokens)))
        case ["whisper.cpp-file", model, threads, recording]:
            report_file(*whisper_cpp_file(model, int(threads), recording))
        case _:
            sys.exit(__doc__)
