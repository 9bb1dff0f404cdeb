"""The gateway in front of providers that stream as they are told, and callers of every dialect."""

import json
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aiohttp import web

from tests.gateway_in_process import Gateway, serving
from tests.surface.answer_target import BODIES, VOLATILE, steady, with_providers
from tests.surface.events import streams
from tests.surface.outcomes import Json, common, contains, values_at
from tests.surface.requests import Part
from tests.surface.target import PATHS

MODELS = {
    "events_of_chat": "openai/m",
    "events_of_messages": "anthropic/m",
    "events_of_responses": "responses/m",
}
# Fields of events that number them, or differ between streams.
_COUNTED = frozenset({"sequence_number", "obfuscation"})
_NAMED = "x-gateway-dropped"
# Events that end a stream as failed.
_ERRORS = ("error", "response.failed")


@dataclass(frozen=True)
class Received:
    """A received stream: its events, its error and the parts named as dropped."""

    events: Sequence[Json]
    error: str
    dropped: str


class EventTarget:
    """The gateway, and the stream of its providers."""

    def __init__(self) -> None:
        self.gateway: Gateway
        self._stream = b""

    async def serve(self, request: web.Request) -> web.Response:
        """Stream as told."""
        return web.Response(body=self._stream, content_type="text/event-stream")

    async def outcome(self, table: str, part: Part, caller: str) -> str:
        """Return what becomes of a part of a stream for a caller of a dialect."""
        stream, others = streams(table, part)
        received = await self._ask(table, caller, stream)
        if received.error:
            # The only events that a caller is told of as an error are errors.
            is_error = any(part.path.startswith(f"events[{kind}]") for kind in _ERRORS)
            return "refused" if is_error else f"refused as a whole: {received.error}"
        without = await self._ask(table, caller, others[0])
        for other in others[1:]:
            if without.error:
                without = await self._ask(table, caller, other)
        if without.error:
            return f"refused without it: {without.error}"
        names = [step.name for step in part.field.steps]
        if changed := changed_paths(without.events, received.events):
            values = [*values_at({"events": stream}, names)]
            arrived = [*values_at({"events": received.events}, names)]
            if values and all(any(contains(one, value) for one in arrived) for value in values):
                return "passes"
            return f"to {common(changed)}"
        steps = (*part.field.steps, *filter(None, [part.step]))
        is_named = any(one and one in received.dropped for one in _names_of(steps))
        return "dropped" if is_named else "nothing"

    async def _ask(self, table: str, caller: str, stream: Sequence[Json]) -> Received:
        self._stream = b"".join(map(_written, stream))
        if table == "events_of_chat":
            self._stream += b"data: [DONE]\n\n"
        headers = self.gateway.api_key() if caller == "messages" else self.gateway.bearer()
        body = {**BODIES[caller], "model": MODELS[table], "stream": True}
        url = f"{self.gateway.url}{PATHS[caller]}"
        async with self.gateway.http.post(url, json=body, headers=headers) as response:
            text = await response.text()
            dropped = response.headers.get(_NAMED, "")
        if response.status >= 400:
            return Received((), text, dropped)
        lines = text.splitlines()
        dropped += "".join(line for line in lines if line.startswith(f": {_NAMED}"))
        read = [line.removeprefix("data: ") for line in lines if line.startswith("data: {")]
        events = [steady(json.loads(one), json.dumps(stream)) for one in read]
        failed = [one for one in events if one.get("error") or one.get("type") == "error"]
        return Received(events, json.dumps(failed[0]) if failed else "", dropped)


def _names_of(steps: Sequence[Any]) -> Iterator[str]:
    for step in steps:
        yield f"answer.{step.name}"
        yield f"answer.{step.tag}" if step.tag else ""


def _written(event: Json) -> bytes:
    name = f"event: {event['type']}\n" if "type" in event else ""
    return f"{name}data: {json.dumps(event)}\n\n".encode()


def changed_paths(old: Sequence[Json], new: Sequence[Json]) -> list[str]:
    """Return the paths of what is not the same in two streams, each after its event's type."""
    before, after = (set(_leaves_of(events)) for events in (old, new))
    return sorted({path for path, _ in before ^ after})


def _leaves_of(events: Sequence[Json]) -> Iterator[tuple[str, str]]:
    for event in events:
        yield from _leaves(event, event.get("type", ""))


def _leaves(value: Any, place: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict) and value:
        for name, one in value.items():
            if name not in _COUNTED | VOLATILE:
                yield from _leaves(one, f"{place}.{name}".removeprefix("."))
    elif isinstance(value, list) and value:
        for one in value:
            yield from _leaves(one, place)
    else:
        yield place, json.dumps(value)


@asynccontextmanager
async def streaming_gateway(folder: Path) -> AsyncIterator[EventTarget]:
    """Run a gateway in front of providers that stream as they are told."""
    target, app = EventTarget(), web.Application()
    for path in ("/v1/chat/completions", "/v1/responses", "/v1/messages"):
        app.router.add_post(path, target.serve)
    async with serving(app) as url, with_providers(folder, url) as gateway:
        target.gateway = gateway
        yield target
