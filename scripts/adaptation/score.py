"""Word error rate of a model on recordings with JSON texts beside them, with whatever adapter is on.

usage: python3 score.py MODEL FOLDER WORDS [OPTIONS]     (STENO names the program; `steno` otherwise)

Prints words, errors and rate of all sentences, and how many of the words in the file WORDS are right. OPTIONS are more
options of `steno transcribe`.
"""

import json
import os
import pathlib
import re
import subprocess
import sys


def words(text):
    return re.findall(r"[\w']+", text.lower())


def errors(expected, found):
    row = list(range(len(found) + 1))
    for i, word in enumerate(expected, 1):
        last, row[0] = row[0], i
        for j, other in enumerate(found, 1):
            last, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, last + (word != other))
    return row[-1]


def main():
    model, folder, expected_words, *options = sys.argv[1:]
    names = set(words(pathlib.Path(expected_words).read_text()))
    total = wrong = named = right = 0
    files = sorted(path for path in pathlib.Path(folder).iterdir() if path.suffix in (".wav", ".flac"))
    for path in files:
        truth = json.loads(path.with_suffix(".json").read_text())
        command = [os.environ.get("STENO", "steno"), "transcribe", str(path), "--model", model, "--quiet",
                   "--language", truth["language"] or "en", "--format", "json", "--output", "-", *options]
        # Not the plain text: that of the demonstration model begins with a warning.
        transcript = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        found = words(" ".join(segment["text"] for segment in transcript["segments"]))
        expected = words(" ".join(part["text"] for part in truth["segments"]))
        total, wrong = total + len(expected), wrong + errors(expected, found)
        named += sum(word in names for word in expected)
        right += sum(word in names and word in found for word in expected)
    print(f"{wrong} of {total} words wrong, {100 * wrong / total:.1f} %; {right} of {named} of those words right")


main()
