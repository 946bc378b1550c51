"""Cases for the diarization error rate: random turns, and what pyannote.metrics finds. Needs pyannote.metrics."""
import json, random, warnings
from pyannote.core import Annotation, Segment
from pyannote.metrics.diarization import DiarizationErrorRate

warnings.filterwarnings("ignore")
draw = random.Random(11)


def turns(speakers, count):
    found, start = [], 0.0
    for _ in range(count):
        start += draw.uniform(-1.5, 2.5)
        start = max(start, 0.0)
        length = draw.uniform(0.2, 4.0)
        found.append([round(start, 3), round(start + length, 3), draw.choice(speakers)])
        start += length
    return found


def annotation(turns):
    found = Annotation()
    for number, (start, end, speaker) in enumerate(turns):
        found[Segment(start, end), number] = speaker
    # A speaker is not counted twice at one time.
    return found.support()


def disturbed(reference, speakers):
    found = []
    for start, end, speaker in reference:
        if draw.random() < 0.1:
            continue
        start, end = start + draw.gauss(0, 0.3), end + draw.gauss(0, 0.3)
        name = draw.choice(speakers) if draw.random() < 0.2 else "h" + speaker
        if end - start > 0.1:
            found.append([round(max(start, 0), 3), round(end, 3), name])
    return found


cases = []
for number in range(16):
    speakers = ["a", "b", "c", "d", "e"][: draw.randint(1, 5)]
    reference = turns(speakers, draw.randint(1, 25))
    others = ["h" + name for name in speakers] + ["x"]
    hypothesis = [] if number == 15 else disturbed(reference, others[: draw.randint(1, len(others))])
    for collar in (0.0, 0.25):
        # pyannote's collar is that of both sides together.
        metric = DiarizationErrorRate(collar=2 * collar)
        found = metric(annotation(reference), annotation(hypothesis), detailed=True)
        keys = {"missed": "missed detection", "false_alarm": "false alarm", "confused": "confusion", "total": "total"}
        expected = {name: round(found[key], 6) for name, key in keys.items()}
        cases.append({"reference": reference, "hypothesis": hypothesis, "collar": collar, "expected": expected})
print(json.dumps(cases))
