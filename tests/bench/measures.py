"""The measures, each of one round against one server."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from tests.bench import bodies, load, processes, wire

CONNECTIONS = 32
_BURST_CONNECTIONS = 16
_PACED_CONNECTIONS = 8
# A configured model whose fallback is another one of the same upstream.
_WITH_SPARE = "bench-with-spare"
_SETTINGS = """
[[models]]
name = "{spare}"
provider = "openai"
upstream = "bench"
fallbacks = ["anthropic/bench"]

[providers.responses]
kind = "openai"
base_url = "http://127.0.0.1:{port}/v1"
api_key = "upstream-key"
responses = true

[memory.storage]
personal_free = 8_589_934_592
"""
_ALONE = {"fallback": "disabled"}
_CHAIN = {
    "fallback": "enabled",
    "fallback_config": {
        "strategy": {"mode": "sequential"},
        "steps": [{"step_id": "spare", "model": "anthropic/bench"}],
    },
}
WARM_UP = 0.25  # of a measure's own time


@dataclass(frozen=True, slots=True)
class Subject:
    """A server under measure.

    Attributes:
        port: of the loopback address.
        pids: the processes whose CPU time is its cost; empty for the upstream itself.
        key: what callers send as their credential.
        workers: processes that answer, each on a core of its own.
    """

    port: int
    pids: Sequence[int] = ()
    key: str = "none"
    workers: int = 1


@dataclass(frozen=True, slots=True)
class Rate:
    """How much was done, and in how many seconds by the clock and of the server's CPU time."""

    done: float = 0
    wall: float = 0
    cpu: float = 0

    def __add__(self, other: Self) -> Self:
        return type(self)(self.done + other.done, self.wall + other.wall, self.cpu + other.cpu)

    @property
    def per_second(self) -> float:
        """How much was done in a second."""
        return self.done / self.wall

    @property
    def per_cpu_second(self) -> float:
        """How much was done in a second of the server's CPU time."""
        return self.done / max(self.cpu, 0.01)


def settings(upstream: int) -> str:
    """Return the settings of the gateway, as TOML, for the upstream on a port."""
    return _SETTINGS.format(spare=_WITH_SPARE, port=upstream)


@dataclass(frozen=True, slots=True)
class Measure:
    """A request that is sent over and over.

    Attributes:
        name: of the figure, after the name of the server.
        request: returns the bytes of a request from a key.
        connections: how many at once for each worker, each with one request in flight.
        unit: what an answer counts: the events of a stream, or 1.
        pieces: pieces of text in each answer; 0 where it was not streamed by the upstream.
        servers: the names of those that are measured.
    """

    name: str
    request: Callable[[str], bytes]
    connections: int = CONNECTIONS
    unit: int = 1
    pieces: int = 0
    servers: Sequence[str] = ("proxy", "gateway")

    async def rate(self, subject: Subject, seconds: float) -> Rate:
        """Measure a server for that long, after a part of it as a warm-up."""
        request = self.request(subject.key)
        connections = self.connections * subject.workers
        for part in (WARM_UP, 1):
            before = processes.cpu_seconds(subject.pids)
            outcome = await load.drive(
                subject.port,
                request,
                connections=connections,
                seconds=seconds * part,
                text_pieces=self.pieces,
            )
        used = processes.cpu_seconds(subject.pids) - before
        return Rate(outcome.count * self.unit, outcome.wall, used)


_GATEWAY = ("gateway",)
_BOTH = ("proxy", "gateway")


def _whole(
    name: str,
    caller: wire.Dialect,
    model: str,
    servers: Sequence[str] = _GATEWAY,
    **fields: Any,
) -> Measure:
    """Whole answers; `fields` as in `wire.request`."""
    return Measure(
        name,
        lambda key: wire.request(caller, model, key, fields=fields),
        servers=servers,
    )


def _streams(
    name: str,
    caller: wire.Dialect = "openai",
    upstream: wire.Dialect = "openai",
    *,
    model: str = "",
    is_paced: bool = False,
    servers: Sequence[str] = _GATEWAY,
) -> Measure:
    """Events of streams, which the upstream writes all at once or one a millisecond."""
    model = model or f"{upstream}/bench" + "-paced" * is_paced
    return Measure(
        name,
        lambda key: wire.request(caller, model, key, stream=True),
        _PACED_CONNECTIONS if is_paced else _BURST_CONNECTIONS,
        wire.EVENTS,
        wire.pieces(upstream, caller=caller),
        servers,
    )


def _embeddings(key: str) -> bytes:
    return wire.embeddings_request("openai/bench", key)


# What is compared stands near one another: a machine's speed changes by seconds. The proxy passes
# the same bytes on, where the gateway does not translate them.
MEASURES: Sequence[Measure] = (
    _whole("openai→openai", "openai", "openai/bench", (*_BOTH, "two workers")),
    _whole("anthropic→anthropic", "anthropic", "anthropic/bench", _BOTH),
    _whole("responses→responses", "responses", "responses/bench", _BOTH),
    _whole("responses stored", "responses", "responses/bench", store=True),
    _whole("openai→anthropic", "openai", "anthropic/bench"),
    _whole("responses→anthropic", "responses", "anthropic/bench"),
    _whole("anthropic→openai", "anthropic", "openai/bench"),
    _whole("responses→openai", "responses", "openai/bench"),
    _whole("alone", "openai", "openai/bench", **_ALONE),
    _whole("chain", "openai", "openai/bench", **_CHAIN),
    # Read as a stream, and answered whole.
    replace(_whole("with a spare", "openai", _WITH_SPARE), pieces=wire.pieces("openai")),
    *(
        _whole(
            f"agent {dialect}", dialect, f"{dialect}/bench", _BOTH, **bodies.coding_agent(dialect)
        )
        for dialect in wire.DIALECTS
    ),
    _streams("burst", servers=_BOTH),
    _streams("burst responses→responses", "responses", "responses", servers=_BOTH),
    _streams("burst with a spare", model=_WITH_SPARE),
    _streams("burst anthropic→openai", "anthropic"),
    _streams("burst responses→openai", "responses"),
    _streams("paced", is_paced=True, servers=_BOTH),
    _streams("paced responses→responses", "responses", "responses", is_paced=True, servers=_BOTH),
    _streams("paced anthropic→openai", "anthropic", is_paced=True),
    _streams("paced responses→openai", "responses", is_paced=True),
    Measure("embeddings", _embeddings, _PACED_CONNECTIONS, servers=_BOTH),
)


async def latencies(subject: Subject, seconds: float) -> Sequence[float]:
    """Return the seconds of each whole answer, one after the other."""
    request = wire.request("openai", "openai/bench", subject.key)
    await load.drive(subject.port, request, connections=1, seconds=seconds * WARM_UP)
    outcome = await load.drive(subject.port, request, connections=1, seconds=seconds)
    return outcome.latencies


async def first_events(subject: Subject, seconds: float) -> Sequence[float]:
    """Return the seconds to the first piece of text of each stream, one after the other."""
    request = wire.request("openai", "openai/bench-brief", subject.key, stream=True)
    outcome = await load.drive(
        subject.port,
        request,
        connections=1,
        seconds=seconds,
        text_pieces=wire.pieces("openai", wire.BRIEF_EVENTS),
    )
    return outcome.firsts
