"""How steady a long transcription is: reads the events of `steno transcribe --json-events` of a recording
that repeats itself, and prints the speed of its first and its last ten minutes and the memory after each.
"""

import json
import sys
import time

PART = 600.0

times = [(0.0, None)]
held = []
peak = 0
for line in sys.stdin:
    event = json.loads(line)
    if event["event"] == "progress" and event["progress"]["stage"] == "transcribe":
        times.append((event["progress"]["position"], time.monotonic()))
        if times[0][1] is None:
            times[0] = times.pop()
    elif event["event"] == "memory" and "sample" in event["mark"]:
        sample = event["mark"]["sample"]
        peak = max(peak, sample["levels"].get("peak") or 0, sample["levels"]["reserved"])
        if sample["checkpoint"] == "batch":
            held.append((times[-1][0], sample["levels"]["reserved"] / 2**20))
    elif event["event"] == "failed":
        sys.exit(event["error"]["message"])

end = times[-1][0]


def when(position):
    return next(at for reached, at in times if reached >= position)


first = (when(PART) - times[0][1]) / next(reached for reached, _ in times if reached >= PART)
start = next(reached for reached, _ in times if reached >= end - PART)
last = (times[-1][1] - when(end - PART)) / (end - start)
print(f"{end:.0f} s: real-time factor of the first ten minutes {first:.4f}, of the last {last:.4f} ({last / first - 1:+.1%})")
for minute in range(10, int(end / 60) + 1, 10):
    part = [size for position, size in held if (minute - 10) * 60 <= position < minute * 60]
    if part:
        print(f"to minute {minute}: {min(part):.1f} to {max(part):.1f} MB held after a window")
print(f"peak {peak / 2**20:.1f} MB")
