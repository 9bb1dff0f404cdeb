"""Transcriptions by the embedded speech recognition, in OpenAI's form. Pure."""

from collections.abc import Sequence
from typing import Final, NamedTuple

import orjson

from gateway.inference.v1.inference_pb2 import Event, FormPart, Start
from services.common.errors import invalid
from services.inference.providers.base import ForwardCall
from services.media.conversion.parts import Source

_FILE: Final = "file"
_TRUE: Final = frozenset({"true", "1"})
_FORMATS: Final = ("json", "text")
_ENGLISH: Final = ("en", "english")
# Fields that ask for what the engine does not tell.
_UNKNOWN: Final = frozenset({"include", "include[]"})
_TIMES: Final = "timestamp_granularities"
_OWN: Final = frozenset({_FILE, "model", "language", "response_format", "stream"})


class TranscriptRequest(NamedTuple):
    """A request for a transcription.

    Attributes:
        source: the recording.
        language: its language, or "".
        is_text: whether the answer is plain text, not JSON.
        is_streamed: whether the answer is a stream of events.
    """

    source: Source
    language: str
    is_text: bool
    is_streamed: bool


def read_request(call: ForwardCall) -> TranscriptRequest:
    """Read the form of a request; report fields without effect as dropped.

    Raises:
        GatewayError: invalid, naming the field.
    """
    recording: FormPart | None = None
    values: dict[str, str] = {}
    for part in call.sent.parts:
        if part.name == _FILE and part.HasField("filename"):
            recording = part
        elif part.name in _UNKNOWN or part.name.startswith(_TIMES):
            raise invalid(
                part.name, f"{part.name}: not supported by {call.target.name}; leave it out"
            )
        elif part.name not in _OWN:
            call.drop(part.name)
        else:
            values[part.name] = part.content.decode(errors="replace")
    if recording is None:
        raise invalid(_FILE, f"{_FILE}: is required, as a file of the form")
    form = values.get("response_format", _FORMATS[0])
    if form not in _FORMATS:
        raise invalid(
            "response_format",
            f"response_format: must be {' or '.join(_FORMATS)} for {call.target.name}",
        )
    language = values.get("language", "")
    if language and language.lower().replace("_", "-").partition("-")[0] not in _ENGLISH:
        raise invalid("language", f"language: must be en for {call.target.name}")
    source = Source(
        recording.content, recording.content_type or "audio/wav", name=recording.filename
    )
    is_streamed = values.get("stream", "").lower() in _TRUE
    return TranscriptRequest(source, language, form == "text", is_streamed)


def events_of(request: TranscriptRequest, model: str, text: str) -> Sequence[Event]:
    """Return the events of an answer; `text` has a line for each pause."""
    if request.is_streamed:
        content_type = "text/event-stream"
        data = b"".join(_stream(text))
    elif request.is_text:
        content_type, data = "text/plain; charset=utf-8", f"{text}\n".encode()
    else:
        content_type, data = "application/json", orjson.dumps({"text": text})
    return (Event(start=Start(model=model, content_type=content_type)), Event(data=data))


def _stream(text: str) -> list[bytes]:
    events: list[dict[str, str]] = [
        {"type": "transcript.text.delta", "delta": line} for line in text.splitlines(keepends=True)
    ]
    events.append({"type": "transcript.text.done", "text": text})
    return [b"data: %b\n\n" % orjson.dumps(event) for event in events]
