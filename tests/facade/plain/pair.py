"""Two facades that differ in `server.plain_requests` alone, talked to without sockets.

A conversation is what a caller does on a connection of its own: bytes as they reach the gateway,
one read each, and what happens between two of them. Time is virtual, so that every limit of time
is reached, and the same conversation always goes the same way.
"""

import asyncio
import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum, auto
from types import MappingProxyType
from typing import Any
from unittest.mock import patch

from prometheus_client import CollectorRegistry

from facade.http.connection import HttpConnection
from facade.reports import FacadeMetrics
from facade.server import Facade
from services.common.clock import Clock
from services.common.grpc.server import Server
from services.common.settings import parse
from tests.facade.plain import fake_services
from tests.services.inference.fallback.virtual_time import timeless
from tests.waiting import until

LIMITS = {
    "max_head_bytes": 8192,
    "max_header_fields": 20,
    "head_timeout_s": 3,
    "idle_connection_s": 5,
    "stalled_reader_s": 4,
    "max_body_bytes": 4096,
    "body_idle_s": 2,
    "min_body_bytes_per_s": 64,
    "keepalive_s": 1,
    "hold_headers_s": 1,
}
_NOW = 1_795_000_000.0
# Longer than any limit, and than what the slow model takes for ten requests.
_LONGEST_S = 60.0
_CHANGES = re.compile(rb"req_[0-9a-f]{24}|(?<=\r\nDate: )[^\r]+", re.IGNORECASE)


class ClientAction(Enum):
    """Steps of a caller other than sending bytes."""

    SETTLE = auto()  # the gateway does all it can do now
    WAIT = auto()  # a while passes, within every limit
    LINGER = auto()  # a long while passes
    STALL = auto()  # the caller reads nothing any more
    READ = auto()  # it reads again
    END = auto()  # it sends nothing any more (FIN)
    LEAVE = auto()  # it is gone (RST)
    ANOTHER = auto()  # another caller connects
    STOP = auto()  # the gateway begins to stop


Step = bytes | ClientAction
# Before these the gateway does all it can do now: how many iterations of the loop a request takes
# differs, and an event in between may be noticed before or after its response.
_RACING = frozenset({ClientAction.END, ClientAction.LEAVE, ClientAction.STALL, ClientAction.STOP})


class FakeTransport(asyncio.Transport):
    """The gateway's end of a connection; keeps what is written, and when the end came."""

    def __init__(self) -> None:
        super().__init__({"peername": ("127.0.0.1", 1), "sockname": ("127.0.0.1", 2)})
        self.protocol: Any
        self.written: list[bytes] = []
        self.ended = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._closing = self._pauses = self._stalls = False
        self._waiting: list[bytes] = []
        self._unread = 0

    def receive(self, data: bytes) -> None:
        """Hand over what came, unless reading is paused; then it waits."""
        if self._pauses:
            self._waiting.append(data)
        elif not self._closing:
            self.protocol.data_received(data)

    def stall(self) -> None:
        """Take nothing more of what is written."""
        self._stalls = True

    def read(self) -> None:
        """Take all that is written, and what will be."""
        self._stalls = False
        if self._unread:
            self._unread = 0
            self.protocol.resume_writing()
            if self._closing:
                self._end(None)

    def receive_eof(self) -> None:
        """End what the caller sends; it reads on."""
        if not self._closing and not self.protocol.eof_received():
            self.close()

    def reset(self) -> None:
        """Close the connection from the caller's side."""
        self._closing = True
        self._end(ConnectionResetError("gone"))

    def can_write_eof(self) -> bool:
        return True

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written.append(bytes(data))
        if self._stalls:
            if not self._unread:
                self.protocol.pause_writing()
            self._unread += len(data)

    def write_eof(self) -> None:
        self.written.append(b"<end of writing>")

    def is_closing(self) -> bool:
        return self._closing

    def close(self) -> None:
        if not self._closing:
            self._closing = True
            if not self._unread:
                self._end(None)

    def abort(self) -> None:
        self.written.append(b"<cut>")
        self._closing = True
        self._end(None)

    def pause_reading(self) -> None:
        self._pauses = True

    def resume_reading(self) -> None:
        self._pauses = False
        self._loop.call_soon(self._go_on)

    def get_write_buffer_size(self) -> int:
        return self._unread

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def _go_on(self) -> None:
        while self._waiting and not self._pauses and not self._closing:
            self.protocol.data_received(self._waiting.pop(0))

    def _end(self, error: Exception | None) -> None:
        if not self.ended.is_set():
            self.ended.set()
            self._loop.call_soon(self.protocol.connection_lost, error)


@dataclass(frozen=True)
class Outcome:
    """Observable results of a conversation.

    Attributes:
        written: what the caller was sent; request ids and dates are blotted out.
        ended_after_s: when the connection ended.
        log: all records, with their extra fields.
        counters: what was counted meanwhile, and the gauges afterwards; none is 0.
    """

    written: bytes
    ended_after_s: float
    log: list[str]
    counters: dict[str, float]


class Side:
    """One of the two facades."""

    def __init__(
        self,
        facade: Facade,
        connect: Callable[[], HttpConnection],
        registry: CollectorRegistry,
        metrics: FacadeMetrics,
    ) -> None:
        self.facade = facade
        self._connect = connect
        self._registry = registry
        self._metrics = metrics
        self._stopping: asyncio.Task[None] | None = None

    @classmethod
    async def start(cls, server: Server, limits: Mapping[str, Any], **settings: Any) -> "Side":
        """Start a facade in front of the services of `server`; `settings` are of `[server]`."""
        made: list[Any] = []
        registry = CollectorRegistry()
        clock = Clock(now=lambda: _NOW, monotonic=lambda: 0.0)
        told = {"server": {"access_log_per_s": 10**9, **settings}, "limits": limits}
        with (
            patch("facade.server.HttpConnection", lambda *given: made.append(given) or _Nobody()),
            patch("facade.server.CollectorRegistry", lambda: registry),
            # Buckets are not compared, and to collect them would take most of the time.
            patch("facade.reports._SECONDS", (1.0,)),
        ):
            parsed = parse(told, "the test")
            facade = await Facade.start(server.channel(), "127.0.0.1", 0, parsed, clock)
            # Its own connections tell what the ones here are made of.
            _, writer = await asyncio.open_connection("127.0.0.1", facade.port)
            await until(lambda: made)
            writer.close()
        context = made[0][2]
        side = cls(facade, lambda: HttpConnection(*made[0]), registry, context.metrics)
        side._count()
        return side

    async def converse(self, steps: Sequence[Step]) -> Outcome:
        """Have one conversation, to the end of its connection."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        with _logged() as log:
            transport = self._connect_one()
            await asyncio.sleep(0)
            others: list[FakeTransport] = []
            for step in steps:
                if step in _RACING:
                    await asyncio.sleep(0.001)
                if step is ClientAction.ANOTHER:
                    others.append(self._connect_one())
                elif step is ClientAction.STOP:
                    self._stopping = asyncio.create_task(self.facade.stop())
                else:
                    await _take(step, transport)
                # As every event loop does between two reads of one connection.
                await asyncio.sleep(0)
            transport.read()
            try:
                await asyncio.wait_for(transport.ended.wait(), _LONGEST_S)
            except TimeoutError:
                transport.reset()
            for other in others:
                other.reset()
            ended_after_s = round(loop.time() - began, 2)
            await asyncio.sleep(1)
        written = _CHANGES.sub(b"*", b"".join(transport.written))
        return Outcome(written, ended_after_s, log, self._count())

    async def stop(self) -> None:
        """Stop the facade, unless a conversation has done so."""
        await (self._stopping or self.facade.stop())

    def _connect_one(self) -> FakeTransport:
        transport = FakeTransport()
        transport.protocol = self._connect()
        transport.protocol.connection_made(transport)
        return transport

    def _count(self) -> dict[str, float]:
        """Return what has been counted since the last time."""
        samples = {
            f"{sample.name}{sample.labels}": sample.value
            for metric in self._registry.collect()
            for sample in metric.samples
            if sample.value
            and not sample.name.endswith(("_created", "_bucket"))
            # Of the loop and the process, which both share.
            and not sample.name.startswith(("gateway_loop_delay", "process_"))
        }
        # Counted anew, as to read what all conversations before came to takes longer than one.
        metrics = self._metrics
        for counted in (
            *(metrics.requests, metrics.seconds, metrics.limits_reached),
            *(metrics.first_content_seconds, metrics.output_token_seconds),
        ):
            counted.clear()
        metrics._answered.clear()
        metrics._streamed.clear()
        return samples


class Pair:
    """Both facades.

    Attributes:
        plain: the one that reads plain requests itself.
        whole: the one whose requests all go through aiohttp.
    """

    def __init__(self, limits: Mapping[str, Any] = MappingProxyType({}), **settings: Any) -> None:
        """Make them with `LIMITS` and `limits`, and the same `settings` of `[server]`."""
        self._runner = timeless()
        self._limits = {**LIMITS, **limits}
        self._settings = settings
        self._threads = patch("asyncio.to_thread", _in_this_thread)

    def __enter__(self) -> "Pair":
        self._threads.start()
        self._runner.__enter__()
        self._server = self._runner.run(fake_services.start())
        self.plain = self._start(plain_requests=True)
        self.whole = self._start(plain_requests=False)
        return self

    def __exit__(self, *_: object) -> None:
        self._runner.run(self._stop())
        self._runner.__exit__(None, None, None)
        self._threads.stop()

    def compare(self, *steps: Step) -> Outcome:
        """Have a conversation with both; return what came of it, which is the same."""
        whole = self._runner.run(self.whole.converse(steps))
        plain = self._runner.run(self.plain.converse(steps))
        assert plain == whole, steps
        return whole

    def _start(self, **settings: Any) -> Side:
        return self._runner.run(
            Side.start(self._server, self._limits, **settings, **self._settings)
        )

    async def _stop(self) -> None:
        await self.plain.stop()
        await self.whole.stop()
        await self._server.stop(0)


async def _in_this_thread(work: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Do what a thread would do, as virtual time does not wait for threads."""
    return work(*args, **kwargs)


class _Nobody(asyncio.Protocol):
    """Takes a connection and says nothing."""


async def _take(step: Step, transport: FakeTransport) -> None:
    match step:
        case bytes():
            transport.receive(step)
        case ClientAction.SETTLE:
            await asyncio.sleep(0.001)
        case ClientAction.WAIT:
            await asyncio.sleep(0.9)
        case ClientAction.LINGER:
            await asyncio.sleep(4)
        case ClientAction.STALL:
            transport.stall()
        case ClientAction.READ:
            transport.read()
        case ClientAction.END:
            transport.receive_eof()
        case ClientAction.LEAVE:
            transport.reset()


@contextmanager
def _logged() -> Iterator[list[str]]:
    lines: list[str] = []
    usual = set(logging.makeLogRecord({}).__dict__) | {"message", "asctime"}

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            told = {name: value for name, value in vars(record).items() if name not in usual}
            told.pop("trace", None)  # whose lines name the way
            text = f"{record.levelname} {record.name} {record.getMessage()} {told}"
            lines.append(_CHANGES.sub(b"*", text.encode()).decode())

    root, handler = logging.getLogger(), Handler()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    try:
        yield lines
    finally:
        root.setLevel(level)
        root.removeHandler(handler)
