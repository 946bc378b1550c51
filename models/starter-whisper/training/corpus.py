"""The training corpus: pools of utterances, the part of Whisper's vocabulary that they use, and windows of
30 s and less that are mixed from them."""

import json
import os

import numpy as np

from text import DE_NUMBERS, EN_NUMBERS, ES_NUMBERS, FR_NUMBERS

RATE = 16000
LANGUAGES, WEIGHTS = ["en", "de", "es", "fr"], [0.64, 0.12, 0.12, 0.12]
VOCABULARY = 51865
# A text's tokens and its prompt together; the network has 448 positions.
MOST_TOKENS = 440
# The translations to English that the model learns: sentences of one form, number by number.
NUMBER_SENTENCES = {
    "de": ("Die Nummer ist ", DE_NUMBERS),
    "es": ("El número es ", ES_NUMBERS),
    "fr": ("Le numéro est ", FR_NUMBERS),
}
NUMBERS_IN_ENGLISH = [*EN_NUMBERS, "hundred", "thousand"]
EASY_VOICES = {"m1", "m2", "m3", "m4", "max", "john", "f1", "f2", "belinda", "paul", "david", "norbert"}


def translated(language, text):
    """The sentence in English, or None where it is none of NUMBER_SENTENCES."""
    if language not in NUMBER_SENTENCES:
        return None
    beginning, words = NUMBER_SENTENCES[language]
    if not text.startswith(beginning):
        return None
    try:
        numbers = [NUMBERS_IN_ENGLISH[words.index(word)] for word in text[len(beginning) :].rstrip(".").split(" ")]
    except ValueError:
        return None
    return f"The number is {' '.join(numbers)}."


def noise(r, length):
    """White noise, low-passed noise, a hum, or brown noise, of unit power."""
    kind = r.randrange(4)
    wave = np.random.randn(length).astype(np.float32)
    if kind == 1:
        wave = np.convolve(wave, np.ones(8, dtype=np.float32) / 8, "same")
    if kind == 2:
        hertz = r.choice([50, 60, 100, 120, 440])
        wave = wave * 0.3 + np.sin(np.arange(length, dtype=np.float32) * 2 * np.pi * hertz / RATE)
    if kind == 3:
        wave = np.cumsum(wave).astype(np.float32)
        wave -= np.convolve(wave, np.ones(400, dtype=np.float32) / 400, "same")
    return wave / (np.sqrt((wave**2).mean()) + 1e-9)


class Corpus:
    """Pools of synth.py. `easy` takes short English utterances of a few voices, as they are."""

    def __init__(self, folder, pools, tokenizer, easy=False):
        self.tokenizer, self.easy = tokenizer, easy
        self.sound, self.utterances, self.encoded = [], [], {}
        for name in pools:
            with open(os.path.join(folder, f"{name}.json")) as file:
                index = json.load(file)
            self.utterances += [(language, text, voice, len(self.sound), *span) for language, text, voice, *span in index]
            self.sound.append(np.memmap(os.path.join(folder, f"{name}.pcm"), dtype=np.int16, mode="r"))
        usable = self.utterances
        if easy:
            usable = [u for u in usable if u[0] == "en" and u[2] in EASY_VOICES and u[5] < RATE * 2.9]
        self.by_language = {language: [u for u in usable if u[0] == language] for language in LANGUAGES}

    def hours(self):
        return sum(utterance[5] for utterance in self.utterances) / RATE / 3600

    def encode(self, text):
        if text not in self.encoded:
            self.encoded[text] = self.tokenizer.encode(" " + text)
        return self.encoded[text]

    def used_tokens(self):
        """Ids of Whisper's vocabulary that the corpus uses, in order, all special ones among them."""
        tokens = self.tokenizer
        used = set(range(256))
        for utterance in self.utterances:
            used.update(self.encode(utterance[1]))
        for number in NUMBERS_IN_ENGLISH:
            for text in (f" The number is {number}.", f" {number}", f" {number}."):
                used.update(tokens.encode(text))
        return sorted(token for token in used if token < tokens.eot) + list(range(tokens.eot, VOCABULARY))

    def characters(self):
        """Numbers of the characters for the CTC head; 0 is its blank."""
        characters = set("".join(utterance[1].lower() for utterance in self.utterances)) | {" "}
        return {character: number + 1 for number, character in enumerate(sorted(characters))}

    def samples(self, utterance, r):
        """An utterance at another speed, spectral tilt, with an echo and at another loudness, each by chance."""
        _, _, _, pool, first, length = utterance
        x = self.sound[pool][first : first + length].astype(np.float32) / 32768
        if self.easy:
            return x
        if r.random() < 0.25:
            x = np.interp(np.arange(0, len(x) - 1, r.uniform(0.92, 1.08)), np.arange(len(x)), x).astype(np.float32)
        if r.random() < 0.3:
            tilt = r.uniform(-0.5, 0.5)
            tilted = x.copy()
            tilted[1:] += tilt * x[:-1]
            x = tilted
        if r.random() < 0.2:
            delay = r.randrange(200, 1200)
            echoed = x.copy()
            echoed[delay:] += r.uniform(0.1, 0.4) * x[:-delay] if len(x) > delay else 0
            x = echoed
        return x * r.uniform(0.25, 1) / (np.abs(x).max() + 1e-6)

    def without_speech(self, r, x):
        tokens = self.tokenizer
        if r.random() < 0.75:
            x = noise(r, len(x)) * 10 ** (-r.uniform(20, 60) / 20)
        language = tokens.to_language_token(r.choice(LANGUAGES))
        if r.random() < 0.6:
            begin = tokens.timestamp_begin
            return x, [tokens.sot, language, tokens.transcribe, begin], [tokens.no_speech, -1, begin, tokens.eot], ""
        prompt = [tokens.sot, language, tokens.transcribe, tokens.no_timestamps]
        return x, prompt, [tokens.no_speech, -1, -1, tokens.eot], ""

    def window(self, r, seconds, offset):
        """One window at `offset` encoder frames (20 ms each) of the network's 30 s.

        Returns its samples, the decoder's input, its targets (-1: none), and the text in lower case for the
        CTC loss (None where an utterance is cut off).
        """
        tokens = self.tokenizer
        length = int(seconds * RATE)
        x = np.zeros(length, dtype=np.float32)
        if r.random() < 0.07:
            return self.without_speech(r, x)

        most = r.choice([1, 2, 3, 4, 99, 99, 99]) if seconds > 12 else 99
        far_apart = r.random() < 0.25
        language = "en" if self.easy else r.choices(LANGUAGES, WEIGHTS)[0]
        translate = language != "en" and r.random() < 0.3
        segments, texts, cut_at = [], [], None
        at = r.choice([0, 0.1]) if self.easy else r.choice([0, 0, r.uniform(0, 1.5), r.uniform(0, min(4, seconds / 3))])
        while at < seconds - 0.6 and len(segments) < most:
            utterance = r.choice(self.by_language[language])
            if translate:
                for _ in range(40):
                    if translated(language, utterance[1]):
                        break
                    utterance = r.choice(self.by_language[language])
                else:
                    break
            y, start = self.samples(utterance, r), int(at * RATE)
            if start + len(y) > length:
                if seconds < 12 and segments:
                    break
                if len(y) > length and not segments:
                    continue
                # As in a real window, the last sentence may go on in the next one.
                x[start:] += y[: length - start]
                cut_at = at
                break
            x[start : start + len(y)] += y
            end = at + len(y) / RATE
            segments.append((at, end, translated(language, utterance[1]) if translate else utterance[1]))
            texts.append(utterance[1])
            if far_apart and seconds > 12:
                at = end + r.uniform(2, 13)
            else:
                at = end + r.choice([0.05, r.uniform(0.1, 0.6), r.uniform(0.2, 1.5), r.uniform(0.5, 6)])

        if r.random() < 0.5 and not self.easy:
            x = x + noise(r, length) * 10 ** (-r.uniform(32, 70) / 20)
        if r.random() < 0.15:
            x = np.convolve(x, np.hanning(r.choice([3, 5, 7])).astype(np.float32) / 2, "same")
        x = np.clip(x * r.uniform(0.3, 1.2), -1, 1)

        previous = []
        if r.random() < 0.35:
            for _ in range(r.randint(1, 9)):
                previous += self.encode(r.choice(self.by_language[language])[1])
            previous = [tokens.sot_prev] + previous[-r.choice([40, 100, 200]) :]
        if not segments and cut_at is None:
            return x, [tokens.sot], [tokens.no_speech], ""
        task = tokens.translate if translate else tokens.transcribe
        sequence = [tokens.sot, tokens.to_language_token(language), task]
        if r.random() < 0.25 and cut_at is None:
            sequence.append(tokens.no_timestamps)
            for _, _, text in segments:
                sequence += self.encode(text)
        else:
            stamp = lambda t: tokens.timestamp_begin + min(1500, int(round((t + offset * 0.02) / 0.02)))
            for start, end, text in segments:
                sequence += [stamp(start)] + self.encode(text) + [stamp(end)]
            if cut_at is not None:
                sequence.append(stamp(cut_at))
        sequence.append(tokens.eot)
        given, wanted = previous + sequence[:-1], [-1] * len(previous) + sequence[1:]
        return x, given[:MOST_TOKENS], wanted[:MOST_TOKENS], " ".join(texts).lower() if cut_at is None else None
