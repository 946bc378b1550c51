"""Whether a long transcription slows down.

usage: python3 scripts/hour.py STENO RECORDING [ROUNDS]

Transcribes a recording that repeats itself, with one thread, and compares its last ten minutes with its
first. The machine's own speed changes by more than the effect to be measured. So a control, which transcribes
the first ten minutes again and again, runs beside it, and the change of the control is divided out.
"""

import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time

PART = 600.0
COMMON = ["--threads", "1", "--language", "en", "--device", "cpu", "--json-events"]


class Run:
    """One transcription: its positions over time, and the memory held after each window."""

    def __init__(self, steno, recording, *options):
        self.times = []
        self.held = []
        self.failure = None
        # With a run folder of its own, because programs of one user take turns at a device.
        self.folder = tempfile.TemporaryDirectory()
        command = [steno, "transcribe", recording, *COMMON, "--output", self.folder.name, *options]
        own = {**os.environ, "XDG_RUNTIME_DIR": self.folder.name, "XDG_STATE_HOME": self.folder.name}
        self.process = subprocess.Popen(command, env=own, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def follow(self):
        for line in self.process.stdout:
            event = json.loads(line)
            if event["event"] == "progress" and event["progress"]["stage"] == "transcribe":
                position = event["progress"]["position"]
                # At the end of a part, progress jumps to the end of the recording.
                if not self.times or position - self.times[-1][1] < PART / 10:
                    self.times.append((time.monotonic(), position))
            elif event["event"] == "memory":
                sample = event["sample"]
                if sample["checkpoint"] == "batch" and self.times:
                    self.held.append((self.times[-1][1], sample["levels"]["reserved"] / 2**20))
            elif event["event"] == "failed":
                self.failure = event["error"]["message"]
        self.process.wait()
        self.folder.cleanup()
        return self

    def when(self, position):
        return next(at for at, reached in self.times if reached >= position)


def factor(runs, begin, end):
    """Real-time factor of these runs between two times."""
    spent = heard = 0.0
    for run in runs:
        for (a, from_), (b, to) in zip(run.times, run.times[1:]):
            within = min(b, end) - max(a, begin)
            if within > 0 and b > a:
                spent += within
                heard += (to - from_) * within / (b - a)
    return spent / heard


def measure(steno, recording):
    long, controls, over = Run(steno, recording), [], threading.Event()

    def control():
        while not over.is_set():
            controls.append(Run(steno, recording, "--to", str(PART)))
            controls[-1].follow()

    beside = threading.Thread(target=control)
    beside.start()
    try:
        long.follow()
    finally:
        over.set()
        for run in controls[-1:]:
            run.process.terminate()
        beside.join()
    if long.failure:
        sys.exit(long.failure)
    length = long.times[-1][1]
    first = (long.times[0][0], long.when(PART))
    last = (long.when(length - PART), long.times[-1][0])
    own, other = [[factor(runs, *span) for span in (first, last)] for runs in ([long], controls)]
    return long, own, other


steno, recording = sys.argv[1:3]
changes = []
for number in range(int(sys.argv[3]) if len(sys.argv) > 3 else 1):
    long, own, other = measure(steno, recording)
    changes.append(math.log((own[1] / own[0]) / (other[1] / other[0])))
    print(
        f"{long.times[-1][1]:.0f} s: real-time factor {own[0]:.4f}, at the end {own[1]:.4f} ({own[1] / own[0] - 1:+.1%});"
        f" the control {other[0]:.4f}, {other[1]:.4f} ({other[1] / other[0] - 1:+.1%}); without it {math.expm1(changes[-1]):+.1%};"
        f" {min(size for _, size in long.held):.1f} to {max(size for _, size in long.held):.1f} MB held after a window",
        flush=True,
    )
if len(changes) > 1:
    error = statistics.stdev(changes) / math.sqrt(len(changes))
    print(f"last against first ten minutes: {math.expm1(statistics.fmean(changes)):+.2%}, standard error {error:.2%}, median {math.expm1(statistics.median(changes)):+.2%}")
