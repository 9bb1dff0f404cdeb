"""OpenAI's transcriptions: the request is a form, the answer `{"text": "…", "usage": {…}}`."""

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from services.inference.providers.base import Transcript
from services.inference.providers.bounds import tokens
from services.inference.providers.failures import broken_answer
from services.inference.providers.openai.forms import FormField, form_of
from services.media.conversion.parts import Source

# File suffixes, by which servers detect the format of a recording.
_SUFFIXES = {
    "audio/wav": ".wav",
    "audio/x-wav": ".wav",
    "audio/wave": ".wav",
    "audio/vnd.wave": ".wav",
    "audio/mpeg": ".mp3",
    "audio/mp3": ".mp3",
    "audio/flac": ".flac",
    "audio/x-flac": ".flac",
    "audio/ogg": ".ogg",
    "audio/opus": ".ogg",
    "audio/mp4": ".m4a",
    "audio/x-m4a": ".m4a",
    "audio/aac": ".m4a",
    "audio/webm": ".webm",
}
_KNOWN = frozenset(_SUFFIXES.values()) | {".mp4", ".mpga", ".oga"}


def form(model: str, sound: Source, language: str, boundary: str) -> bytes:
    """Return the body of a request.

    Args:
        model: the provider's name for the model.
        sound: the recording.
        language: a BCP 47 tag, of which the primary subtag is sent; or "".
        boundary: a string that no part contains.

    Raises:
        GatewayError: unsupported, for a model name that a form cannot contain.
    """
    fields = [FormField("response_format", b"json")]
    code = language.partition("-")[0].lower()
    if code.isascii() and code.isalpha():
        fields.append(FormField("language", code.encode()))
    mime_type = sound.mime_type.partition(";")[0].strip().lower()
    named = PurePosixPath(sound.name).suffix.lower()
    suffix = _SUFFIXES.get(mime_type) or (named if named in _KNOWN else ".wav")
    content_type = mime_type if mime_type in _SUFFIXES else "application/octet-stream"
    recording = FormField("file", sound.content, f"recording{suffix}", content_type)
    return form_of(model, [*fields, recording], boundary)


def read_transcript(answer: Mapping[str, Any], provider: str) -> Transcript:
    """Return the transcript of an answer.

    Raises:
        UpstreamError: the answer has no text.
    """
    text, usage = answer.get("text"), answer.get("usage")
    if not isinstance(text, str):
        raise broken_answer(provider, "returned no transcript")
    if not isinstance(usage, dict):
        return Transcript(text)
    seconds = usage.get("seconds")
    try:
        return Transcript(
            text,
            tokens(usage.get("input_tokens") or 0),
            tokens(usage.get("output_tokens") or 0),
            float(seconds) if isinstance(seconds, int | float) else 0.0,
        )
    except (TypeError, ValueError):
        return Transcript(text)
