"""Makes recordings with words that the starter model never saw, to see what `steno adapt` and words to expect gain.

usage: python3 generate.py FOLDER

FOLDER gets four folders of recordings with their texts:

- learnt: thirty sentences, three for each word, each by two voices
- tested: thirty other sentences with the same words, each by two other voices
- beside: an hour and a half of recordings of a minute without them, in four languages, by voices that the model knows
- compared: sixty more, by four other voices

and words.txt, the ten words. Needs espeak-ng, flite, numpy and scipy. The sentences are those of the model's own corpus
(models/starter-whisper/training/text.py), with one name, city or noun replaced. The words are names of people and places
and two nouns that the corpus lacks. All are spelled with tokens that it has: a public Whisper has learnt each of its
tokens, and this model 1,400 of 2,707.

    python3 generate.py made
    steno adapt models/starter-whisper --folder made/learnt --beside made/beside --compare made/compared --rate 0.002
    python3 score.py models/starter-whisper made/tested made/words.txt
"""

import json
import pathlib
import random
import re
import subprocess
import sys
import wave

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "models/starter-whisper/training"))
import synth  # noqa: E402
import text  # noqa: E402

WORDS = {
    "name": ["Davidson", "Paganini", "Roberto", "Montaigne"],
    "city": ["Doncaster", "Tanzania", "Seville", "Lebanon"],
    "thing": ["alligator", "antigen"],
}
REPLACED = {
    "name": {name.capitalize() for name in text.EN_NAMES},
    "city": {city.capitalize() for city in text.EN_CITIES},
    "thing": set(text.EN_NOUNS),
}
VOICES = {"learnt": ["en-us+m3", "en-gb+f2"], "tested": ["en-us+f4", "en-gb+m6"]}
COMPARED_VOICES = ["en-us+f3", "en-gb+m2", "en-us+m7", "en-gb+f1"]
# Recordings of about a minute.
BESIDE = {"en": 60, "de": 12, "es": 12, "fr": 12}
MINUTE = 60 * synth.RATE


def with_word(r, kind, word, used):
    """A sentence of the corpus with `word` in place of one that it has, not at its beginning."""
    while True:
        sentence = text.english(r)
        found = re.findall(r"\w+", sentence)
        places = [one for one in found if one in REPLACED[kind]]
        begins = sentence.rstrip(".").split(" ")[0] in places
        if not places or begins or sentence in used or not 5 <= len(found) <= 12:
            continue
        used.add(sentence)
        sentence = re.sub(rf"\b{r.choice(places)}\b", word, sentence, count=1)
        article = "an" if word[0] in "aeiou" else "a"
        return re.sub(rf"\ban? {word}", f"{article} {word}", sentence)


def without(r, language, used):
    while True:
        sentence = text.GENERATORS[language](r)
        if sentence not in used:
            used.add(sentence)
            return sentence


def speak(path, language, voice, sentence, *options):
    path.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["espeak-ng", "-v", voice, *options, "-w", str(path), sentence], check=True)
    with wave.open(str(path)) as sound:
        seconds = sound.getnframes() / sound.getframerate()
    part = {"start": 0, "end": round(seconds, 2), "text": sentence}
    path.with_suffix(".json").write_text(json.dumps({"language": language, "segments": [part]}) + "\n")


def minute(path, language, r, used):
    """Sentences of changing voices, with pauses."""
    sound, parts, length = [], [], 0
    while length < MINUTE:
        sentence = without(r, language, used)
        try:
            samples, _ = synth.speak(sentence, language, r)
        except (subprocess.CalledProcessError, ValueError):
            continue
        if samples is None or not synth.LEAST <= len(samples) <= synth.MOST:
            continue
        begins = length + int(r.uniform(0.2, 1.5) * synth.RATE)
        sound += [np.zeros(begins - length, dtype=np.float32), 0.6 * samples]
        length = begins + len(samples)
        parts.append({"start": begins / synth.RATE, "end": length / synth.RATE, "text": sentence})
    path.parent.mkdir(parents=True, exist_ok=True)
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(synth.RATE)
        file.writeframes((np.concatenate(sound) * 32767).astype(np.int16).tobytes())
    path.with_suffix(".json").write_text(json.dumps({"language": language, "segments": parts}) + "\n")


def main():
    folder = pathlib.Path(sys.argv[1])
    r, used = random.Random(7), set()
    words = [(kind, word) for kind, some in WORDS.items() for word in some]
    for kind, voices in VOICES.items():
        for number in range(30):
            sentence = with_word(r, *words[number % len(words)], used)
            for voice in voices:
                speak(folder / kind / f"{number:02}-{voice}.wav", "en", voice, sentence)
    for number in range(60):
        voice = COMPARED_VOICES[number % len(COMPARED_VOICES)]
        speak(folder / "compared" / f"{number:02}.wav", "en", voice, without(r, "en", used))
    for language, count in BESIDE.items():
        for number in range(count):
            minute(folder / "beside" / f"{language}-{number:02}.wav", language, r, used)
    (folder / "words.txt").write_text("".join(f"{word}\n" for _, word in words))


main()
