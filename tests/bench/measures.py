"""What is measured, and how: one round against one server."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Self

from tests.bench import bodies, load, processes, wire

CONNECTIONS = 32
BURST_CONNECTIONS = 16
PACED_CONNECTIONS = 8
# A configured model whose fallback is another one of the same upstream.
WITH_SPARE = "bench-with-spare"
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
ALONE = {"fallback": "disabled"}
CHAIN = {
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
        crosses: whether it translates, so that each dialect can meet each upstream.
    """

    port: int
    pids: Sequence[int] = ()
    key: str = "none"
    crosses: bool = False


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
    return _SETTINGS.format(spare=WITH_SPARE, port=upstream)


async def _rate(
    subject: Subject, request: bytes, connections: int, seconds: float, unit: int, pieces: int
) -> Rate:
    await load.drive(
        subject.port,
        request,
        connections=connections,
        seconds=seconds * WARM_UP,
        text_pieces=pieces,
    )
    before = processes.cpu_seconds(subject.pids)
    outcome = await load.drive(
        subject.port, request, connections=connections, seconds=seconds, text_pieces=pieces
    )
    used = processes.cpu_seconds(subject.pids) - before
    return Rate(outcome.count * unit, outcome.wall, used)


async def whole(
    subject: Subject,
    caller: wire.Dialect,
    upstream: wire.Dialect,
    seconds: float,
    connections: int = CONNECTIONS,
    fields: Mapping[str, Any] = MappingProxyType({}),
) -> Rate:
    """Measure whole answers, many connections at once; `fields` as in `wire.request`."""
    request = wire.request(caller, f"{upstream}/bench", subject.key, fields=fields)
    return await _rate(subject, request, connections, seconds, 1, 0)


async def agents(subject: Subject, dialect: wire.Dialect, seconds: float) -> Rate:
    """Measure whole answers to a coding agent, of a provider of the same dialect."""
    fields = bodies.coding_agent(dialect)
    request = wire.request(dialect, f"{dialect}/bench", subject.key, fields=fields)
    return await _rate(subject, request, CONNECTIONS, seconds, 1, 0)


async def burst(
    subject: Subject,
    seconds: float,
    caller: wire.Dialect = "openai",
    upstream: wire.Dialect = "openai",
) -> Rate:
    """Measure events of streams that the upstream writes all at once."""
    request = wire.request(caller, f"{upstream}/bench", subject.key, stream=True)
    pieces = wire.pieces(upstream, caller=caller)
    return await _rate(subject, request, BURST_CONNECTIONS, seconds, wire.EVENTS, pieces)


async def paced(
    subject: Subject,
    seconds: float,
    caller: wire.Dialect = "openai",
    upstream: wire.Dialect = "openai",
) -> Rate:
    """Measure events of streams that get one a millisecond."""
    request = wire.request(caller, f"{upstream}/bench-paced", subject.key, stream=True)
    pieces = wire.pieces(upstream, caller=caller)
    return await _rate(subject, request, PACED_CONNECTIONS, seconds, wire.EVENTS, pieces)


async def native_responses(subject: Subject, seconds: float) -> Mapping[str, Rate]:
    """Measure responses of a provider that has them, by how they come; nothing is stored.

    The proxy passes the same bytes on.
    """
    return {
        "responses→responses": await whole(subject, "responses", "responses", seconds),
        "burst responses→responses": await burst(subject, seconds, "responses", "responses"),
        "paced responses→responses": await paced(subject, seconds, "responses", "responses"),
    }


async def other_responses(subject: Subject, seconds: float) -> Mapping[str, Rate]:
    """Measure stored responses, and those over providers of other dialects, by what is asked.

    Among them are translated streams of messages, which those of responses are compared with.
    """
    rates = {
        f"responses→{upstream}": await whole(subject, "responses", upstream, seconds)
        for upstream in wire.DIALECTS
    }
    rates["responses stored"] = await whole(
        subject, "responses", "responses", seconds, fields={"store": True}
    )
    callers: Sequence[wire.Dialect] = ("responses", "anthropic")
    for caller in callers:
        rates[f"burst {caller}→openai"] = await burst(subject, seconds, caller, "openai")
        rates[f"paced {caller}→openai"] = await paced(subject, seconds, caller, "openai")
    return rates


async def embeddings(subject: Subject, seconds: float) -> Rate:
    """Measure embeddings of a hundred texts, in base64."""
    request = wire.embeddings_request("openai/bench", subject.key)
    return await _rate(subject, request, PACED_CONNECTIONS, seconds, 1, 0)


async def with_fallback(subject: Subject, seconds: float) -> Mapping[str, Rate]:
    """Measure what it costs that other models stand by, all of them well; by what is asked.

    Each pair is of requests that differ in that alone: streams of a model without and
    with a fallback, and whole answers of one model and of a chain that begins with it.
    """
    alone = wire.request("openai", "openai/bench", subject.key, fields=ALONE)
    chain = wire.request("openai", "openai/bench", subject.key, fields=CHAIN)
    streamed = wire.request("openai", "openai/bench", subject.key, stream=True)
    spare = wire.request("openai", WITH_SPARE, subject.key, stream=True)
    spare_whole = wire.request("openai", WITH_SPARE, subject.key)
    pieces = wire.pieces("openai")
    return {
        "alone": await _rate(subject, alone, CONNECTIONS, seconds, 1, 0),
        "chain": await _rate(subject, chain, CONNECTIONS, seconds, 1, 0),
        "streams alone": await _rate(
            subject, streamed, BURST_CONNECTIONS, seconds, wire.EVENTS, pieces
        ),
        "streams with a spare": await _rate(
            subject, spare, BURST_CONNECTIONS, seconds, wire.EVENTS, pieces
        ),
        "whole with a spare": await _rate(subject, spare_whole, CONNECTIONS, seconds, 1, pieces),
    }


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
