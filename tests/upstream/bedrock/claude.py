"""Anthropic's messages on Bedrock, and vectors, by InvokeModel."""

import base64
from collections.abc import Callable, Collection, Mapping
from typing import Any

import orjson
from aiohttp import web

from services.common.ids import IdGenerator
from services.sandbox.dialects import Anthropic, Body, Json
from services.sandbox.handlers import Exchange
from services.sandbox.model import vectors
from services.sandbox.model.answers import Answer
from services.sandbox.model.models import Model, SandboxError, TooLongError, find_model
from services.sandbox.model.play import Step
from tests.upstream.bedrock import wire
from tests.upstream.checks import Check
from tests.upstream.imitations import ImitatedMessages
from tests.upstream.personalities import USUAL

# Of AWS's pages, and of Anthropic's SDK from 2.x on.
_VERSIONS = ("bedrock-2023-05-31", "2026-10-21")
NameOf = Callable[[SandboxError], tuple[int, str]]


class InvokedMessages(ImitatedMessages):
    """Anthropic's messages, as InvokeModel has them; see `Dialect`."""

    request_id_header = "x-amzn-requestid"

    def __init__(
        self,
        new_id: IdGenerator,
        checks: tuple[Check, Check],
        betas: Collection[str],
        name_of: NameOf,
        *,
        streams: bool = False,
        counts: bool = False,
    ) -> None:
        super().__init__(new_id, *checks, betas, USUAL)
        self._known_betas = betas
        self._name_of = name_of
        self._streams = streams
        self._counts = counts

    def authenticate(self, headers: Mapping[str, str]) -> None:
        """Do nothing: signatures are checked before."""

    def accept(self, body: Body, headers: Mapping[str, str]) -> Body:
        """Check a body, without what only Bedrock has in it."""
        own = dict(body)
        if self._counts:
            own = orjson.loads(base64.b64decode(body["input"]["invokeModel"]["body"]))
        if own.pop("anthropic_version", None) not in _VERSIONS:
            raise SandboxError("invalid", 400, "anthropic_version: Field required")
        for name in ("model", "stream"):
            if name in own:
                raise SandboxError("invalid", 400, f"{name}: Extra inputs are not permitted")
        betas = own.pop("anthropic_beta", [])
        if not set(betas) <= set(self._known_betas):
            raise SandboxError("invalid", 400, "invalid beta flag")
        own |= {"model": "echo", "stream": self._streams}
        return super().accept(own, {"anthropic-beta": ",".join(betas)} if betas else {})

    def stream(self, answer: Answer, model: Model, body: Body) -> "_Chunks":
        """Return a writer of frames."""
        return _Chunks(super().stream(answer, model, body), self._name_of)

    def failure(self, error: SandboxError, request_id: str) -> Json:
        """Write an error, with its name for the header."""
        message = super().failure(error, request_id)["error"]["message"]
        if isinstance(error, TooLongError):
            message = "Input is too long for requested model."
        return {"message": message, "__type": self._name_of(error)[1]}

    def counted(self, read: int) -> Json:
        """Write the result of counting input tokens."""
        return {"inputTokens": read}


class Embeddings(Anthropic):
    """The vectors of Titan and Cohere; see `Dialect`."""

    request_id_header = "x-amzn-requestid"

    def authenticate(self, headers: Mapping[str, str]) -> None:
        """Do nothing: signatures are checked before."""

    def accept(self, body: Body, headers: Mapping[str, str]) -> Body:
        """Return a body as it is; `embed` checks it."""
        return body

    def failure(self, error: SandboxError, request_id: str) -> Json:
        """Write an error, with its name for the header."""
        return {"message": error.message, "__type": "ValidationException"}


class _Chunks:
    """Writes the events of Anthropic's messages as frames of InvokeModel."""

    def __init__(self, messages: Any, name_of: NameOf) -> None:
        self._messages = messages
        self._name_of = name_of

    def write(self, step: Step) -> bytes:
        return self._frames(self._messages.write(step))

    def end(self) -> bytes:
        return self._frames(self._messages.end())

    def _frames(self, events: bytes) -> bytes:
        return b"".join(
            _chunk(one.partition(b"data: ")[2]) for one in events.split(b"\n\n") if b"data: " in one
        )

    def failure(self, error: SandboxError, request_id: str) -> bytes:
        name = self._name_of(error)[1]
        payload = orjson.dumps({"message": error.message})
        return wire.frame("exception", name[0].lower() + name[1:], payload)


def _chunk(event: bytes) -> bytes:
    parsed = orjson.loads(event)
    if parsed.get("type") == "ping":
        return b""
    if parsed.get("type") == "message_stop":
        parsed["amazon-bedrock-invocationMetrics"] = {"inputTokenCount": 1}
    packed = base64.b64encode(orjson.dumps(parsed)).decode()
    return wire.frame("event", "chunk", orjson.dumps({"bytes": packed, "p": "abcdefgh"}))


async def embed(exchange: Exchange, body: Body) -> web.StreamResponse:
    """Return the vectors of Titan or of Cohere."""
    model = find_model("embed")
    match body:
        case {"inputText": str(text)} if not body.keys() - {"inputText", "dimensions"}:
            texts, size = [text], body.get("dimensions")
        case {"texts": [*texts], "input_type": _, "truncate": "NONE"}:
            size = body.get("output_dimension")
        case _:
            raise SandboxError("invalid", 400, "Malformed input request, please reformat")
    made = vectors.embed(texts, model, size)
    count = sum(len(text.split()) for text in texts)
    answer: Json = {"embedding": made[0], "inputTextTokenCount": count}
    if "texts" in body:
        answer = {"embeddings": {"float": made}, "id": "e", "response_type": "embeddings_by_type"}
    headers = {"x-amzn-bedrock-input-token-count": str(count)}
    return exchange.json(answer, more=headers)
