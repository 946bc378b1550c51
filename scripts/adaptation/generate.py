"""Makes recordings with words that the starter model never saw, to see whether `steno adapt` learns them.

usage: python3 generate.py FOLDER

FOLDER gets two folders of recordings with their texts: learnt (thirty sentences, two voices) and tested
(thirty other sentences with the same words, two other voices). Needs espeak-ng. The frames of the sentences
have words that the model knows (models/starter-whisper/training/text.py); the names are invented.

    python3 generate.py made
    steno adapt models/starter-whisper --folder made/learnt --compare COMPARED --name invented
    python3 score.py models/starter-whisper made/tested
"""

import pathlib
import subprocess
import sys

NAMES = ["Zolmivane", "Quillfeather", "Brackwater", "Metaflox", "Virelune",
         "Corvasta", "Pendrithal", "Oskarine", "Tavoren", "Hadrigol"]
LEARNT = [
    "Maria and {} read the keyboard behind the house.",
    "I probably forgot the cat in {}.",
    "Did you save the {} after dinner?",
]
TESTED = [
    "Thomas said that {} recorded sometimes.",
    "The {} was dark and the interview was sad.",
    "In March, {} deleted a heavy lecture.",
]
VOICES = {"learnt": ["en-us+m3", "en-gb+f2"], "tested": ["en-us+f4", "en-gb+m6"]}


def main():
    folder = pathlib.Path(sys.argv[1])
    for kind, frames in [("learnt", LEARNT), ("tested", TESTED)]:
        (folder / kind).mkdir(parents=True, exist_ok=True)
        sentences = [frame.format(name) for frame in frames for name in NAMES]
        for number, sentence in enumerate(sentences):
            path = folder / kind / f"{number:02}.wav"
            voice = VOICES[kind][number % 2]
            subprocess.run(["espeak-ng", "-v", voice, "-w", str(path), sentence], check=True)
            path.with_suffix(".txt").write_text(sentence + "\n")


main()
