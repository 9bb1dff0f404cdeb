"""An engine over providers that play a script, and words to write scripts in."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from typing import Any

from prometheus_client import CollectorRegistry

from gateway.conversation.v1 import conversation_pb2 as conversation
from gateway.conversation.v1.conversation_pb2 import Block, Message, Usage
from gateway.errors.v1 import errors_pb2
from gateway.inference.v1 import inference_pb2 as pb
from gateway.inference.v1.inference_pb2 import Event, Finish, GenerateRequest, Start
from services.common.errors import UpstreamError
from services.common.messages.lazy_request import LazyRequest
from services.common.settings import Limits, Memory, Model, Provider
from services.inference.circuit_breaker import Uniform
from services.inference.metrics import InferenceMetrics
from services.inference.models.routing import Models
from services.inference.providers.base import Call
from services.inference.request.thinking import Signer
from services.inference.routes import Routes
from services.inference.run.engine import Engine
from services.inference.usage.metering import Metering
from tests.services.inference.fake_adaptation import adaptation
from tests.services.inference.fake_files import FakeFiles
from tests.services.inference.fake_memories import FakeMemories

AUTO, ENABLED, STRICT, DISABLED = (
    pb.FALLBACK_MODE_AUTO,
    pb.FALLBACK_MODE_ENABLED,
    pb.FALLBACK_MODE_STRICT,
    pb.FALLBACK_MODE_DISABLED,
)
FOREVER = 1e9

# A step of a script: a batch is given, a number slept, an exception raised.
Line = Sequence[Event] | float | Exception


class ScriptedProvider:
    """A provider whose models play scripts, one for each call, the last again and again.

    Attributes:
        calls: what was asked, with the seconds at which it was.
        open: calls that are under way.
        sources: whether conversations may go as their callers wrote them.
    """

    dialect = conversation.DIALECT_OPENAI
    signs_thinking = checks_signatures = sends_stored_files = False
    reports_stop_sequence = True
    pass_stateful = False
    fetches = frozenset()

    def __init__(self, name: str, prefills: bool = False) -> None:
        self.name = name
        self.prefills = prefills
        self.scripts: dict[str, list[Sequence[Line]]] = {}
        self.calls: list[tuple[float, Call]] = []
        self.open = 0
        self.accepts_lazy = True

    def takes_lazy(self, lazy: LazyRequest, refused_fields: frozenset[str]) -> bool:
        return self.accepts_lazy

    def plays(self, upstream: str, *scripts: Sequence[Line]) -> None:
        self.scripts[upstream] = list(scripts)

    async def whole(self, call: Call):
        async with aclosing(self.stream(call)) as batches:
            return [event async for batch in batches for event in batch]

    async def stream(self, call: Call):
        self.calls.append((round(asyncio.get_running_loop().time(), 3), call))
        scripts = self.scripts[call.target.upstream]
        script = scripts.pop(0) if len(scripts) > 1 else scripts[0]
        self.open += 1
        try:
            for line in script:
                if isinstance(line, Exception):
                    raise line
                if isinstance(line, float | int):
                    await asyncio.sleep(line)
                else:
                    yield [copied(event) for event in line]
        finally:
            self.open -= 1

    async def count_tokens(self, call: Call) -> int | None:
        return 7

    async def close(self) -> None:
        pass


def copied(event: Event) -> Event:
    copy = Event()
    copy.CopyFrom(event)
    return copy


class ScriptedEngine:
    """An engine over two providers, `p` and, which prefills, `q`.

    Models `a`, `b`, `c` are those of `p`, `pre` is of `q`; `a` falls back to `fallbacks`.
    `short` writes little, and `tiny` reads little.
    `inputs` are the media that models read, by their names; `upstreams` what the
    provider calls them, where that differs. `more` are further models, `uniform` the random source.
    """

    def __init__(
        self,
        fallbacks: Sequence[str] = ("b", "c"),
        inputs: Mapping[str, list[Any]] | None = None,
        upstreams: Mapping[str, str] | None = None,
        more: Sequence[Model] = (),
        uniform: Uniform = lambda low, high: high,
        metering: Metering | None = None,
        **limits: Any,
    ) -> None:
        self.p = ScriptedProvider("p")
        self.q = ScriptedProvider("q", prefills=True)
        settings = {name: Provider(kind="openai", base_url="http://x") for name in ("p", "q")}
        models = [
            Model(
                name="a",
                provider="p",
                upstream=(upstreams or {}).get("a", ""),
                fallbacks=list(fallbacks),
                inputs=(inputs or {}).get("a"),
            ),
            Model(name="b", provider="p", inputs=(inputs or {}).get("b")),
            Model(name="c", provider="p"),
            Model(name="short", provider="p", max_output_tokens=100),
            Model(name="tiny", provider="p", context_window=2000),
            Model(name="pre", provider="q", fallbacks=["b"]),
            *more,
        ]
        self.registry = CollectorRegistry()
        self.files = FakeFiles({})
        self.memories = FakeMemories()
        self.adaptation = adaptation()
        self.engine = Engine(
            Routes(Models(models, settings, {}, {}), {"p": self.p, "q": self.q}),
            Signer({"k1": b"s" * 32}, "k1"),
            self.files,
            self.memories,
            Limits(**limits),
            Memory(),
            InferenceMetrics(self.registry),
            monotonic=lambda: asyncio.get_running_loop().time(),
            adaptation=self.adaptation,
            uniform=uniform,
            metering=metering,
        )
        for name in ("a", "b", "c", "short", "tiny"):
            self.p.plays(name, answer(f"I am {name}"))
        self.q.plays("pre", answer("I am pre"))

    async def ask(self, stream: bool, request: GenerateRequest) -> tuple[str, pb.RouteInfo, Usage]:
        """Return the text of an answer, who served it, and the usage."""
        if not stream:
            whole = await self.engine.generate(request)
            return whole.choices[0].blocks[0].text, whole.route, whole.usage
        events = await self.stream(request)
        usage = [event.usage for event in events if event.HasField("usage")][-1]
        starts = [event.start for event in events if event.HasField("start")]
        assert len(starts) == 1
        return text_of(events), starts[0].route, usage

    async def stream(self, request: GenerateRequest) -> list[Event]:
        return [event for batch in await self.batches(request) for event in batch]

    async def batches(self, request: GenerateRequest) -> list[Sequence[Event]]:
        async with aclosing(await self.engine.stream(request)) as batches:
            return [batch async for batch in batches]

    def asked(self, provider: ScriptedProvider | None = None) -> list[tuple[float, str]]:
        """Return when which model was asked."""
        return [(at, call.target.upstream) for at, call in (provider or self.p).calls]

    def counted(self, outcome: str, provider: str = "p") -> float:
        labels = {"provider": provider, "outcome": outcome}
        return self.registry.get_sample_value("gateway_upstream_attempts_total", labels) or 0

    def is_quiet(self) -> bool:
        return self.p.open == self.q.open == 0


def start() -> Event:
    return Event(start=Start(id="1", model="up"))


def opening(text: str, block: int = 0) -> list[Event]:
    return [Event(block=block, block_start=Block(text="")), Event(block=block, text=text)]


def ending(tokens: int = 3, block: int = 0) -> list[Event]:
    return [
        Event(block=block, block_stop=pb.BlockStop()),
        Event(finish=Finish(reason=conversation.FINISH_REASON_END_TURN)),
        Event(usage=Usage(output_tokens=tokens)),
    ]


def answer(text: str, tokens: int = 3) -> list[Line]:
    return [[start(), *opening(text)], ending(tokens)]


def broken(text: str, error: Exception | None = None) -> list[Line]:
    """An answer that breaks off after `text`."""
    return [[start(), *opening(text)], error or cut()]


def text_of(events: Sequence[Event]) -> str:
    return "".join(event.text + event.block_start.text for event in events)


def failing(status: int, body: str = "", wait: int | None = None) -> UpstreamError:
    reasons = {
        400: errors_pb2.REASON_UPSTREAM_REJECTED,
        401: errors_pb2.REASON_UPSTREAM_AUTH,
        404: errors_pb2.REASON_MODEL_NOT_FOUND,
        429: errors_pb2.REASON_UPSTREAM_RATE_LIMITED,
        529: errors_pb2.REASON_UPSTREAM_OVERLOADED,
    }
    reason = reasons.get(status, errors_pb2.REASON_UPSTREAM_ERROR)
    return UpstreamError(reason, f"it said {status}", status=status, body=body, retry_after_s=wait)


def cut() -> UpstreamError:
    return UpstreamError(errors_pb2.REASON_UPSTREAM_CONNECTION, "it broke off")


def silence() -> UpstreamError:
    return UpstreamError(errors_pb2.REASON_UPSTREAM_TIMEOUT, "it stayed silent")


def request(model: str = "a", **fields: Any) -> GenerateRequest:
    asked = Message(role=conversation.ROLE_USER, blocks=[Block(text="Hi")])
    return GenerateRequest(**{"model": model, "messages": [asked], **fields})


def chain(*steps: dict[str, Any] | str, mode: int = STRICT, **fields: Any) -> GenerateRequest:
    """Ask for a chain; a step is its model, or its fields."""
    config = fields.pop("config", {})
    read = [{"model": step} if isinstance(step, str) else step for step in steps]
    numbered = [pb.FallbackStep(**{"step_id": f"s{n}", **step}) for n, step in enumerate(read, 1)]
    return request(
        fallback=mode,
        fallback_config=pb.FallbackConfig(strategy_mode="sequential", steps=numbered, **config),
        **fields,
    )
