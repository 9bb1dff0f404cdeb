"""The engine over real adapters and an upstream that answers what a test hands it."""

from collections.abc import Sequence
from typing import Any, Literal

import orjson
from multidict import CIMultiDict, CIMultiDictProxy
from prometheus_client import CollectorRegistry

from facade.dialects import anthropic, openai
from facade.sse import Encoder
from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import Block, Dialect, Message
from gateway.inference.v1 import inference_pb2
from gateway.inference.v1.inference_pb2 import GenerateRequest, GenerateResponse
from services.common import http
from services.common.errors import GatewayError
from services.common.settings import Limits, Memory, Model, Provider
from services.inference.metrics import InferenceMetrics
from services.inference.models.routing import Models
from services.inference.providers import registry
from services.inference.request.thinking import Signer
from services.inference.routes import Routes
from services.inference.run.engine import Engine
from tests.services.inference.fake_adaptation import adaptation
from tests.services.inference.fake_files import FakeFiles
from tests.services.inference.fake_memories import FakeMemories
from tests.services.inference.providers.scripted_server import LiveCalls

Kind = Literal["openai", "anthropic", "gemini"]
OPENAI = conversation_pb2.DIALECT_OPENAI
ANTHROPIC = conversation_pb2.DIALECT_ANTHROPIC


class _Body:
    is_received = False

    def __init__(self, pieces: Sequence[bytes]) -> None:
        self._pieces = list(reversed(pieces))

    async def read(self) -> bytes:
        return self._pieces.pop() if self._pieces else b""

    async def whole(self) -> bytes:
        pieces, self._pieces = self._pieces, []
        return b"".join(reversed(pieces))

    def release(self) -> None:
        """Nothing waits."""

    def close(self) -> None:
        """Nothing is open."""


class Upstream(http.Client):
    """A server that answers everything with what `answers` holds."""

    def __init__(self) -> None:
        super().__init__(5, http.Proxies({}))
        self.status = 200
        self.headers: CIMultiDict[str] = CIMultiDict()
        self.pieces: Sequence[bytes] = ()

    async def send(self, *_: object, **__: object) -> Any:
        return http.Response(self.status, CIMultiDictProxy(self.headers), _Body(self.pieces))


class HostileEngine:
    """A gateway without its processes: engine and dialects, over one hostile provider."""

    def __init__(self, kind: Kind, **limits: int) -> None:
        self.kind = kind
        self.upstream = Upstream()
        provider = Provider.model_validate(
            {"kind": kind, "base_url": "http://upstream.test", "api_key": "very-secret-key"}
        )
        bounds = Limits.model_validate(limits)
        providers = registry.build(
            {"p": provider}, registry.Connections(self.upstream, bounds, LiveCalls())
        )
        models = Models([Model(name="m", provider="p")], {"p": provider}, {}, {})
        self.memories = FakeMemories()
        self.engine = Engine(
            Routes(models, providers),
            Signer({"k1": b"s" * 32}, "k1"),
            FakeFiles({}),
            self.memories,
            bounds,
            Memory(),
            InferenceMetrics(CollectorRegistry()),
            lambda: 0.0,
            adaptation(),
        )

    async def whole(self, wanted: GenerateRequest) -> Any:
        """Return what the caller of a whole answer reads: JSON, or the failure."""
        wanted.takes_passthrough = True
        try:
            answer = await self.engine.generate(wanted)
        except GatewayError as error:
            return _checked(error)
        return orjson.loads(rendered(answer, wanted))

    async def streamed(self, wanted: GenerateRequest) -> Any:
        """Return what the caller of a stream reads: its bytes, or the failure."""
        encoder: Encoder = openai.ChatStream(1, include_usage=True)
        if wanted.dialect == ANTHROPIC:
            encoder = anthropic.MessageStream("req_1")
        out: list[bytes] = []
        try:
            async for batch in await self.engine.stream(wanted):
                out.append(encoder.encode(batch))
        except GatewayError as error:
            out.append(encoder.error(_checked(error)))
            _check_events(b"".join(out))
            return error
        out.append(encoder.finish())
        _check_events(b"".join(out))
        return b"".join(out)


def rendered(answer: GenerateResponse, wanted: GenerateRequest) -> bytes:
    """Return a whole answer as the facade writes it."""
    if answer.passthrough:
        return answer.passthrough
    if wanted.dialect == ANTHROPIC:
        return anthropic.render_message(answer)
    return openai.render_completion(answer, 1)


def asked(
    dialect: Dialect.ValueType = OPENAI, *messages: Message, **fields: Any
) -> GenerateRequest:
    """Return a request for one model and one attempt."""
    user = Message(role=conversation_pb2.ROLE_USER, blocks=[Block(text="hi")])
    return GenerateRequest(
        model="m",
        messages=[user, *messages],
        dialect=dialect,
        fallback=inference_pb2.FALLBACK_MODE_DISABLED,
        max_tokens=100,
        **fields,
    )


def _checked(error: GatewayError) -> GatewayError:
    """Return a failure that is fit for callers."""
    assert 400 <= error.http_status < 600
    assert error.http_status != 500
    assert "very-secret-key" not in error.message
    assert len(error.message) < 3000
    for attempt in error.attempts:
        assert not attempt.HasField("status") or attempt.status < 1000
    return error


def _check_events(wire: bytes) -> None:
    """Check that the bytes of a stream are events of JSON objects, each on its line."""
    for event in filter(None, wire.split(b"\n\n")):
        *names, data = event.split(b"\n")
        assert all(name.startswith(b"event: ") for name in names), event
        assert data.startswith(b"data: "), event
        assert data == b"data: [DONE]" or isinstance(orjson.loads(data[6:]), dict)
