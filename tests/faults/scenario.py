"""A gateway before the fault upstream, what a caller hears of it, and what is left behind."""

import asyncio
import io
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, Literal, NamedTuple
from unittest.mock import patch

import aiohttp
import orjson

from services.common.clock import Clock
from tests.faults.clock import SkippingLoop
from tests.faults.upstream import FaultUpstream, fault_upstream
from tests.faults.wire import Dialect
from tests.gateway_in_process import Gateway, running_gateway
from tests.thoroughness import is_soak

CHAT = "/beta/v1/chat/completions"
MESSAGES = "/beta/v1/messages"
GAUGES = ("gateway_upstream_live_calls", "gateway_http_live_requests")

Mode = Literal["auto", "enabled", "strict"]
Json = dict[str, Any]

OTHER_DIALECT: Mapping[Dialect, Dialect] = {"openai": "anthropic", "anthropic": "openai"}
# Silence is skipped, but the gateway's own timers in it are not.
STREAM_IDLE_S = 30
# What is done every few seconds, and is no part of these tests, would be done in skipped time.
_SELDOM_S = 600
_SELDOM = (
    "facade.http.connections._SWEEP_S",
    "facade.process_state.loop_delay._EVERY_S",
    "facade.process_state.process_metrics._EVERY_S",
    "services.accounts.change_watch.EVERY_S",
    "services.common.storage.database_watch._CHECK_S",
    "services.common.storage.disk._INTERVAL_S",
    "services.inference.provider_states.servicer._WRITE_EVERY_S",
)


class Models(NamedTuple):
    """The models of one case, first and second to be asked, of providers of two dialects.

    Attributes:
        first: as the upstream knows it.
        second: as the upstream knows it.
        auto: a configured name of the first, with the second as its fallback.
        alone: a configured name of the first, without a fallback.
        providers: of the first and of the second.
    """

    first: str
    second: str
    auto: str
    alone: str
    providers: tuple[Dialect, Dialect]

    @property
    def names(self) -> tuple[str, str]:
        """The names of the two models for callers."""
        return f"{self.providers[0]}/{self.first}", f"{self.providers[1]}/{self.second}"


@dataclass
class Answer:
    """The answer that a caller received.

    Attributes:
        status: the HTTP status.
        headers: the answer's.
        text: all that was said.
        finish: the dialect's word for the end, or "" for an answer that did not end well.
        model: the field `model`.
        usage: tokens read and written, as far as they were told.
        error: the error object, of an error answer or event, or None.
        took: seconds by the loop's clock.
    """

    status: int
    headers: Mapping[str, str]
    text: str = ""
    finish: str = ""
    model: str = ""
    usage: tuple[int, int] | None = None
    error: Json | None = None
    took: float = 0.0
    raw: bytes = field(default=b"", repr=False)

    @property
    def served(self) -> tuple[str, str, str, int]:
        """Model, provider, step and attempts, from the headers."""
        model, provider, step, attempts = (
            self.headers[f"x-gateway-{name}"] for name in ("model", "provider", "step", "attempts")
        )
        return model, provider, step, int(attempts)

    @property
    def whole(self) -> str:
        """The text of an answer that came to its end.

        Raises:
            AssertionError: it did not.
        """
        assert self.status == 200 and self.error is None, self
        assert self.finish in ("stop", "end_turn"), self
        return self.text

    @property
    def attempts(self) -> list[Json]:
        """The error's list of attempts."""
        assert self.error is not None, self
        attempts = self.error["attempts"]
        assert isinstance(attempts, list)
        return attempts


def _cases() -> int:
    """Return how many cases there may be: a breaker remembers what its model did in each.

    Not a constant: whether all are to be tried is not known yet when this module is imported.
    """
    return 1500 if is_soak() else 450


class Scenario:
    """A gateway, its upstream, and a caller.

    Attributes:
        upstream: what both providers are.
        gateway: the gateway.
    """

    def __init__(
        self, upstream: FaultUpstream, gateway: Gateway, http: aiohttp.ClientSession
    ) -> None:
        self.upstream = upstream
        self.gateway = gateway
        self._http = http
        self._numbers = count()
        # Made while nothing is asked: the tasks that always run.
        self._idle = _running()

    def fresh(self, provider: Dialect = "openai") -> Models:
        """Return models that nobody has asked yet, the first of `provider`."""
        number = next(self._numbers)
        assert number < _cases(), "more cases than models"
        return _models(provider, number)

    async def ask(self, path: str, body: Json) -> Answer:
        """Ask, and listen to the end; check the answer's shape on the way."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        async with self.request(path, body) as response:
            raw = await response.read()
        took = loop.time() - began
        heard = Answer(response.status, response.headers, took=took, raw=raw)
        if response.status == 200 and body.get("stream"):
            assert response.content_type == "text/event-stream"
            (_hear_chat if path == CHAT else _hear_message)(heard, list(_sent(raw)))
            return heard
        assert response.content_type == "application/json"
        answer = orjson.loads(raw)
        if response.status == 200:
            (_read_chat if path == CHAT else _read_message)(heard, answer)
        else:
            heard.error = _error(path, answer)
        return heard

    def request(self, path: str, body: Json) -> Any:
        """Send a request; give what aiohttp gives."""
        return self._http.post(
            self.gateway.url + path,
            headers={**self.gateway.api_key(), "Content-Type": "application/json"},
            data=io.BytesIO(orjson.dumps(body)),
        )

    def left_behind(self) -> Mapping[str, object]:
        """Return all that a request has left, or nothing."""
        left: dict[str, object] = {}
        for name in GAUGES:
            value = self.gateway.counters.get_sample_value(name)
            assert value is not None, f"nothing counts {name}"
            if value:
                left[name] = value
        if self.upstream.busy:
            left["requests at the upstream"] = self.upstream.busy
        if tasks := _running() - self._idle:
            left["tasks"] = dict(tasks)
        return left

    async def show(self, page: str) -> str:
        """Return a page for operators."""
        async with self._http.get(self.gateway.metrics_url + page) as response:
            assert response.status == 200
            return await response.text()

    async def settled(self) -> None:
        """Wait until nothing is left of any request, the second that callers are promised.

        Raises:
            AssertionError: something is.
        """
        loop = asyncio.get_running_loop()
        # On a clock that does not stand still for this process, a second may pass in one pause.
        end = loop.time() + (1 if isinstance(loop, SkippingLoop) else 60)
        while left := self.left_behind():
            assert loop.time() < end, f"left behind: {left}"
            await asyncio.sleep(0.01)


@asynccontextmanager
async def scenario(folder: Path, **limits: float) -> AsyncIterator[Scenario]:
    """Return a gateway whose two providers are one fault upstream."""
    clock = asyncio.get_running_loop().time
    models = [
        {"name": name, "provider": provider, "upstream": one.first, "fallbacks": fallbacks}
        for number in range(_cases())
        for provider in OTHER_DIALECT
        for one in [_models(provider, number)]
        for name, fallbacks in ((one.auto, [one.names[1]]), (one.alone, []))
    ]
    with ExitStack() as stack:
        for interval in _SELDOM:
            stack.enter_context(patch(interval, _SELDOM_S))
        async with (
            fault_upstream() as upstream,
            # A connection for each request, so that none is left of one that is over.
            aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(force_close=True, limit=0),
                timeout=aiohttp.ClientTimeout(total=None),
            ) as http,
            running_gateway(
                folder,
                upstream.url,
                clock=Clock(monotonic=clock),
                services=["accounts", "inference"],
                models=models,
                usage={"write_every_s": _SELDOM_S},
                limits={"step_timeout_s": 60, "stream_idle_s": STREAM_IDLE_S, **limits},
            ) as gateway,
        ):
            # The first request opens the facade's link, which stays.
            async with http.get(f"{gateway.url}/readyz") as ready:
                assert ready.status == 200
            one = Scenario(upstream, gateway, http)
            yield one


def request_body(
    path: str,
    mode: Mode,
    models: Models,
    stream: bool = False,
    *,
    first: Json | None = None,
    second: Json | None = None,
    config: Json | None = None,
) -> Json:
    """Return the body of a request that asks the first model, then the second.

    `first` and `second` are further fields of the two steps, where there are any;
    `config` those of the whole chain.
    """
    body: Json = {
        "model": models.auto,
        "max_tokens": 100,
        "stream": stream,
        "messages": [{"role": "user", "content": "Count."}],
    }
    if path == CHAT and stream:
        body["stream_options"] = {"include_usage": True}
    steps = [
        {"step_id": "one", "model": models.names[0], **(first or {})},
        {"step_id": "two", "model": models.names[1], **(second or {})},
    ]
    if mode != "auto":
        body["model"] = models.names[0] if mode == "enabled" else "nobody/nothing"
        body["fallback"] = mode
        body["fallback_config"] = {
            "strategy": {"mode": "sequential"},
            "steps": steps[1:] if mode == "enabled" else steps,
            **(config or {}),
        }
    return body


def _models(provider: Dialect, number: int) -> Models:
    return Models(
        f"first-{provider}-{number}",
        f"second-{provider}-{number}",
        f"auto-{provider}-{number}",
        f"alone-{provider}-{number}",
        (provider, OTHER_DIALECT[provider]),
    )


def _running() -> Counter[str]:
    return Counter(
        getattr(task.get_coro(), "__qualname__", "?")
        for task in asyncio.all_tasks() - {asyncio.current_task()}
        if not task.done()
    )


def _error(path: str, body: Json) -> Json:
    error = body["error"]
    assert isinstance(error, dict), body
    if path == CHAT:
        assert set(error) >= {"message", "type", "param", "code"}
    else:
        assert body["type"] == "error"
        assert set(error) >= {"message", "type", "code"}
    return error


def _read_chat(heard: Answer, completion: Json) -> None:
    (choice,) = completion["choices"]
    heard.text = choice["message"]["content"] or ""
    heard.finish = choice["finish_reason"]
    heard.model = completion["model"]
    heard.usage = (completion["usage"]["prompt_tokens"], completion["usage"]["completion_tokens"])


def _read_message(heard: Answer, message: Json) -> None:
    heard.text = "".join(block["text"] for block in message["content"])
    heard.finish = message["stop_reason"]
    heard.model = message["model"]
    heard.usage = (message["usage"]["input_tokens"], message["usage"]["output_tokens"])


def _sent(raw: bytes) -> Iterator[tuple[str, bytes]]:
    """Return the events of a stream: type and data. Comments are none."""
    for part in raw.decode().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in part.split("\n") if line[:1] not in ("", ":"))
        if fields:
            yield fields.get("event", ""), fields["data"].encode()


def _hear_chat(heard: Answer, events: list[tuple[str, bytes]]) -> None:
    ended = events[-1][1] == b"[DONE]"
    for _, data in events[:-1] if ended else events:
        assert heard.error is None, "something follows the error"
        chunk = orjson.loads(data)
        if "error" in chunk:
            heard.error = _error(CHAT, chunk)
            continue
        assert chunk["object"] == "chat.completion.chunk"
        heard.model = chunk["model"]
        if usage := chunk.get("usage"):
            heard.usage = (usage["prompt_tokens"], usage["completion_tokens"])
        for choice in chunk["choices"]:
            assert not heard.finish, "something follows the end"
            heard.text += choice["delta"].get("content") or ""
            heard.finish = choice["finish_reason"] or ""
    assert ended == (heard.error is None), "a stream ends with [DONE] or an error, not both"
    assert ended == bool(heard.finish), "an end without a reason, or a reason before an error"


def _hear_message(heard: Answer, events: list[tuple[str, bytes]]) -> None:
    stage, index, is_open = "", -1, False
    for kind, data in events:
        event = orjson.loads(data)
        assert event["type"] == kind
        assert stage not in ("error", "message_stop"), "something follows the end"
        if kind == "ping":
            continue
        if kind == "message_start":
            assert stage == ""
            heard.model = event["message"]["model"]
            heard.usage = (event["message"]["usage"]["input_tokens"], 0)
        elif kind == "content_block_start":
            index += 1
            assert stage and not is_open and event["index"] == index
            is_open = True
        elif kind == "content_block_delta":
            assert is_open and event["index"] == index
            heard.text += event["delta"]["text"]
        elif kind == "content_block_stop":
            assert is_open and event["index"] == index
            is_open = False
        elif kind == "message_delta":
            assert not is_open
            heard.finish = event["delta"]["stop_reason"]
            usage = event["usage"]
            read = usage.get("input_tokens") or (heard.usage or (0, 0))[0]
            heard.usage = (read, usage["output_tokens"])
        elif kind == "error":
            heard.error = _error(MESSAGES, event)
        stage = kind
    assert stage in ("error", "message_stop"), "a stream ends with message_stop or an error"
    assert (stage == "message_stop") == bool(heard.finish)
