"""An HTTP upstream with OpenAI's endpoints that are no conversations.

It checks JSON against the SDK's own types of requests, and forms as OpenAI does: the fields that it
knows, with the file in one of them.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

import orjson
from aiohttp import web
from openai.types import image_generate_params
from openai.types.audio.speech_create_params import SpeechCreateParams
from openai.types.moderation_create_params import ModerationCreateParams

from tests.upstream.checks import Check, check_of

WAVE = b"RIFF\x24\x00\x00\x00WAVEfmt " + bytes(range(200))
PICTURE = "iVBORw0KGgo="
IMAGE_USAGE = {
    "input_tokens": 50,
    "input_tokens_details": {"image_tokens": 40, "text_tokens": 10},
    "output_tokens": 60,
    "total_tokens": 110,
}
RECORDING_USAGE = {"type": "duration", "seconds": 7}
SPOKEN = "Good morning."
TEXT_EVENTS = (
    {"type": "transcript.text.delta", "delta": "Good "},
    {"type": "transcript.text.delta", "delta": "morning."},
    {
        "type": "transcript.text.done",
        "text": SPOKEN,
        "usage": {
            "type": "tokens",
            "input_tokens": 14,
            "input_token_details": {"audio_tokens": 14, "text_tokens": 0},
            "output_tokens": 5,
            "total_tokens": 19,
        },
    },
)
IMAGE_EVENTS = (
    {"type": "image_generation.partial_image", "b64_json": PICTURE, "partial_image_index": 0},
    {"type": "image_generation.completed", "b64_json": PICTURE, "usage": IMAGE_USAGE},
)
_FORMS: Mapping[str, frozenset[str]] = {
    "/images/edits": frozenset({"image", "image[]", "mask"}),
    "/images/variations": frozenset({"image"}),
    "/audio/transcriptions": frozenset({"file"}),
    "/audio/translations": frozenset({"file"}),
}


class ForwardingUpstream:
    """The upstream, an `aiohttp` application.

    Attributes:
        app: the application.
        bodies: what was sent: JSON, or the fields of forms; a file as its name, type and bytes.
        headers: the headers of the last request.
        paths: the paths of the requests.
        failing: models that fail with status 500.
        breaking: whether streams break off after their first piece.
        reports_failure: whether streams end with an event of an error.
        is_silent: whether a request waits until its client leaves.
        received: set when a silent request has been received.
        left: set when its client has left.
    """

    def __init__(self) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.headers: Mapping[str, str] = {}
        self.paths: list[str] = []
        self.failing: set[str] = set()
        self.breaking = self.reports_failure = self.is_silent = False
        self.received, self.left = asyncio.Event(), asyncio.Event()
        self._checks: Mapping[str, Check] = {
            "/moderations": check_of(ModerationCreateParams),
            "/images/generations": _either(
                image_generate_params.ImageGenerateParamsNonStreaming,
                image_generate_params.ImageGenerateParamsStreaming,
            ),
            "/audio/speech": check_of(SpeechCreateParams),
        }
        self.app = web.Application(client_max_size=1 << 30)
        self.app.router.add_post("/{version}/{path:.*}", self._answer)

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        path = f"/{request.match_info['path']}"
        self.paths.append(request.path)
        self.headers = request.headers
        if request.content_type == "application/json":
            body = orjson.loads(await request.read())
            problem = self._checks[path](body) if path in self._checks else None
            if problem is not None:
                where = ".".join(map(str, problem.path))
                return _refusal(400, f"{where}: {problem.message}", where)
        else:
            body = await _fields(request)
            if not _FORMS[path] & body.keys():
                return _refusal(400, "a file is missing", "file")
        self.bodies.append(body)
        if self.is_silent:
            self.received.set()
            try:
                await asyncio.Event().wait()
            finally:
                self.left.set()
        if body["model"] in self.failing:
            return _refusal(500, "out of order", None)
        return await self._made(request, path, body)

    async def _made(
        self, request: web.Request, path: str, body: Mapping[str, Any]
    ) -> web.StreamResponse:
        is_streamed = body.get("stream") in (True, "true")
        if path == "/moderations":
            result = {"flagged": False, "categories": {}, "category_scores": {}}
            return _json({"id": "modr-1", "model": body["model"], "results": [result], "new": 1})
        if path.startswith("/images/"):
            if is_streamed:
                return await self._events(request, IMAGE_EVENTS)
            if body["model"] == "dall-e-3":  # it reports no tokens
                return _json({"created": 1, "data": [{"b64_json": PICTURE}] * int(body["n"])})
            return _json({"created": 1, "data": [{"b64_json": PICTURE}], "usage": IMAGE_USAGE})
        if path == "/audio/speech":
            return await self._stream(request, "audio/wav", [WAVE[:100], WAVE[100:]])
        if path == "/rerank":
            results = [{"index": 1, "relevance_score": 0.9}, {"index": 0, "relevance_score": 0.1}]
            return _json({"results": results, "usage": {"total_tokens": 12}})
        if is_streamed:
            return await self._events(request, TEXT_EVENTS)
        if body.get("response_format") == "srt":
            return web.Response(text="1\n00:00:00,000 --> 00:00:01,000\nGood morning.\n")
        return _json({"text": SPOKEN, "usage": RECORDING_USAGE})

    async def _events(self, request: web.Request, events: Any) -> web.StreamResponse:
        pieces = [
            b"event: %s\ndata: %s\n\n" % (e["type"].encode(), orjson.dumps(e)) for e in events
        ]
        if self.reports_failure:
            pieces[-1] = b'data: {"error": {"message": "overloaded", "type": "server_error"}}\n\n'
        return await self._stream(request, "text/event-stream; charset=utf-8", pieces)

    async def _stream(
        self, request: web.Request, content_type: str, pieces: list[bytes]
    ) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": content_type})
        await response.prepare(request)
        for piece in pieces:
            await response.write(piece)
            if self.breaking:
                assert request.transport is not None, "the client is there"
                request.transport.abort()
                return response
        await response.write_eof()
        return response


def _either(whole: Any, streamed: Any) -> Check:
    whole_check, streamed_check = check_of(whole), check_of(streamed)
    return lambda body: (streamed_check if body.get("stream") else whole_check)(body)


async def _fields(request: web.Request) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    async for part in await request.multipart():
        content = await part.read()
        if part.filename is None:
            fields[part.name] = content.decode()
        else:
            fields[part.name] = (part.filename, part.headers.get("content-type"), bytes(content))
    return fields


def _json(value: Any) -> web.Response:
    return web.Response(
        body=orjson.dumps(value),
        content_type="application/json",
        headers={"x-request-id": "req-up", "x-ratelimit-remaining-requests": "9"},
    )


def _refusal(status: int, message: str, param: str | None) -> web.Response:
    error = {"message": message, "type": "invalid_request_error", "param": param, "code": None}
    return web.Response(
        status=status, body=orjson.dumps({"error": error}), content_type="application/json"
    )
