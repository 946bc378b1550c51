"""Uses the server as programs do, through the official client of OpenAI's API.

usage: openai_client.py ADDRESS TOKEN RECORDING EXPECTED

EXPECTED is the text of the recording, which is transcribed in every format. Ends with status 1 at the first answer
that is not as it should be.
"""

import asyncio
import sys

import openai

address, token, recording, expected = sys.argv[1:]
base = f"http://{address}/v1"
client = openai.OpenAI(base_url=base, api_key=token, max_retries=0)
transcriptions, translations = client.audio.transcriptions, client.audio.translations


def create(**parameters):
    with open(recording, "rb") as file:
        return transcriptions.create(**{"model": "whisper-1", "file": file} | parameters)


def refused(kind, param, call):
    try:
        call()
    except kind as error:
        assert error.param == param, (error.param, param)
        assert error.code and error.message, error
        return error
    raise AssertionError(f"{param} was not refused")


def formats():
    assert create().text == expected
    assert create(response_format="json").text == expected
    assert expected in create(response_format="text")
    assert " --> 00:00:0" in create(response_format="srt")
    assert create(response_format="vtt").startswith("WEBVTT")
    verbose = create(response_format="verbose_json")
    assert verbose.text == expected and verbose.duration > 1, verbose
    assert " ".join(segment.text for segment in verbose.segments) == expected
    assert verbose.words is None and verbose.usage.type == "duration"
    both = create(response_format="verbose_json", timestamp_granularities=["word", "segment"])
    assert [word.word for word in both.words] == expected.split() and both.segments
    only = create(response_format="verbose_json", timestamp_granularities=["word"])
    assert only.words == both.words and only.segments is None
    diarized = create(response_format="diarized_json", chunking_strategy="auto")
    assert diarized.text == expected and diarized.task == "transcribe"
    assert all(segment.speaker and segment.type == "transcript.text.segment" for segment in diarized.segments)


def streams():
    for more in [{}, {"response_format": "diarized_json"}]:
        events = list(create(stream=True, **more))
        deltas = [event.delta for event in events if event.type == "transcript.text.delta"]
        assert "".join(deltas) == expected, deltas
        assert events[-1].type == "transcript.text.done" and events[-1].text == expected
        with_speakers = [event.speaker for event in events if event.type == "transcript.text.segment"]
        assert bool(with_speakers) == bool(more)


def translation():
    with open(recording, "rb") as file:
        assert translations.create(model="whisper-1", file=file).text
    with open(recording, "rb") as file:
        verbose = translations.create(model="whisper-1", file=file, response_format="verbose_json")
        assert verbose.text and verbose.segments


def models():
    names = [model.id for model in client.models.list()]
    assert "whisper-1" in names and len(names) > 1, names
    assert client.models.retrieve(names[-1]).id == names[-1]
    refused(openai.NotFoundError, None, lambda: client.models.retrieve("none"))


def parameters():
    for honoured in [
        {"language": "en"},
        {"languages": ["en"]},
        {"prompt": "Ada"},
        {"keywords": ["Ada", "Grace"]},
        {"temperature": 0},
        {"chunking_strategy": {"type": "server_vad", "threshold": 0.5}},
    ]:
        assert create(**honoured).text, honoured
    bad = openai.BadRequestError
    for param, wrong in [
        ("temperature", {"temperature": 3}),
        ("language", {"language": "english"}),
        ("languages[]", {"languages": ["en", "de"]}),
        ("include[]", {"include": ["logprobs"]}),
        ("known_speaker_names[]", {"known_speaker_names": ["Ada"]}),
        ("known_speaker_references[]", {"known_speaker_references": ["data:audio/wav;base64,"]}),
        ("chunking_strategy", {"chunking_strategy": {"type": "server_vad", "prefix_padding_ms": 9}}),
        ("timestamp_granularities[]", {"timestamp_granularities": ["word"]}),
        ("response_format", {"response_format": "yaml"}),
        ("stream", {"response_format": "srt", "stream": True}),
        ("novel", {"extra_body": {"novel": "x"}}),
    ]:
        refused(bad, param, lambda: create(**wrong))
    refused(openai.NotFoundError, "model", lambda: create(model="gpt-9"))
    refused(bad, None, lambda: create(file=("notes.txt", b"This is no recording, and long enough to be sure of it.")))


def tokens():
    stranger = openai.OpenAI(base_url=base, api_key="wrong", max_retries=0)
    refused(openai.AuthenticationError, None, lambda: list(stranger.models.list()))


async def at_once():
    async with openai.AsyncOpenAI(base_url=base, api_key=token) as several:
        with open(recording, "rb") as file:
            content = file.read()
        ask = lambda: several.audio.transcriptions.create(model="whisper-1", file=("a.flac", content))
        answers = await asyncio.gather(*(ask() for _ in range(3)))
        assert [answer.text for answer in answers] == [expected] * 3, answers


for check in [formats, streams, translation, models, parameters, tokens]:
    check()
    print(check.__name__, "ok")
asyncio.run(at_once())
print("at_once ok")
