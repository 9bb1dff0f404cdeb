"""OpenAI's speech: a second of silence for every text, checked against the SDK's own type."""

import io
import wave
from functools import cache

import orjson
from aiohttp import web

from services.sandbox.model.models import SandboxError
from services.sandbox.model.openai_shapes import error_body
from tests.upstream.checks import Check, check_of

_SAMPLES_A_SECOND = 8_000


async def speak(request: web.Request) -> web.Response:
    """Answer a request for speech."""
    problem = _check()(orjson.loads(await request.read()))
    if problem is None:
        return web.Response(body=_silence(), content_type="audio/wav")
    where = ".".join(map(str, problem.path))
    error = SandboxError("invalid", 400, f"{where}: {problem.message}")
    return web.json_response(error_body(error), status=error.status)


@cache
def _check() -> Check:
    from openai.types.audio.speech_create_params import SpeechCreateParams

    return check_of(SpeechCreateParams)


def _silence() -> bytes:
    content = io.BytesIO()
    with wave.open(content, "wb") as recording:
        recording.setnchannels(1)
        recording.setsampwidth(1)
        recording.setframerate(_SAMPLES_A_SECOND)
        recording.writeframes(bytes([128]) * _SAMPLES_A_SECOND)
    return content.getvalue()
