"""Answers of an engine that are cached, and the effect of a store's failures on them."""

import asyncio
from contextlib import aclosing
from contextvars import Context

import pytest
from prometheus_client import CollectorRegistry

from gateway.accounts.v1 import accounts_pb2
from gateway.errors.v1 import errors_pb2
from gateway.inference.v1 import inference_pb2 as pb
from services.common.clock import Clock
from services.common.errors import GatewayError
from services.common.grpc.authentication import Caller, caller
from services.common.settings import ResponseCache
from services.common.storage.byte_store import ByteStore
from services.inference.metrics import InferenceMetrics
from services.inference.response_cache.cached_answers import CachedAnswers
from services.inference.response_cache.directives import CacheDirectives
from tests.services.inference.fallback.scripted_engine import (
    ScriptedEngine,
    answer,
    opening,
    request,
    start,
    text_of,
)
from tests.services.inference.fallback.virtual_time import in_no_time

MIB = 1 << 20


class MemoryStore(ByteStore):
    """Entries in memory; with `fails` nothing can be read or written."""

    def __init__(self) -> None:
        self.kept: dict[str, bytes] = {}
        self.fails = False
        self.waits: asyncio.Event | None = None
        self.read_s = 0.0

    async def get(self, key: str) -> bytes | None:
        self._check()
        kept = self.kept.get(key)
        await asyncio.sleep(self.read_s)
        return kept

    async def put(self, key: str, content: bytes) -> None:
        self._check()
        if self.waits is not None:
            await self.waits.wait()
        self.kept[key] = content

    async def delete(self, keys) -> None:
        raise AssertionError("only sweepers delete")

    async def entries(self):
        raise AssertionError("only sweepers list")

    def _check(self) -> None:
        if self.fails:
            raise GatewayError(errors_pb2.REASON_STORAGE_UNAVAILABLE, "no disk")


class Harness:
    """A cache over a scripted engine whose model is `a`."""

    def __init__(self, **bounds) -> None:
        self.scripted = ScriptedEngine(fallbacks=[])
        self.store = MemoryStore()
        self.seconds = 0.0
        self.cache = CachedAnswers(
            self.scripted.engine,
            self.store,
            ResponseCache(enabled=True, **bounds),
            600,
            InferenceMetrics(CollectorRegistry()),
            Clock(monotonic=lambda: self.seconds),
        )

    async def stream(self, asked=None) -> tuple[pb.CacheStatus.ValueType, str]:
        """Return what the cache did for a stream, and its text, once it has been stored."""
        batches = await self.cache.stream(asked or request(), CacheDirectives())
        async with aclosing(batches):
            events = [event async for batch in batches for event in batch]
        await self.cache.drain()
        return events[0].start.route.cache, text_of(events)

    async def whole(self, text: str = "Hi") -> pb.GenerateResponse:
        asked = request()
        asked.messages[0].blocks[0].text = text
        return await self.cache.answer(asked, CacheDirectives())


@pytest.fixture(autouse=True)
def known_caller():
    token = caller.set(Caller("ada", "", accounts_pb2.PLAN_ENTERPRISE))
    yield
    caller.reset(token)


async def test_a_stream_is_kept_with_all_of_its_events():
    harness = Harness()
    assert await harness.stream() == (pb.CACHE_STATUS_MISS, "I am a")
    assert await harness.stream() == (pb.CACHE_STATUS_HIT, "I am a")
    assert len(harness.scripted.asked()) == 1


async def test_a_stream_without_its_finish_is_not_kept():
    harness = Harness()
    harness.scripted.p.plays("a", [[start(), *opening("I am")]])
    assert await harness.stream() == (pb.CACHE_STATUS_MISS, "I am")
    assert harness.store.kept == {}


async def test_a_stream_that_is_left_is_not_kept():
    harness = Harness()
    batches = await harness.cache.stream(request(), CacheDirectives())
    await anext(batches)
    await batches.aclose()
    await harness.cache.drain()
    assert harness.store.kept == {}
    assert harness.scripted.is_quiet()


@in_no_time
async def test_an_answer_that_ends_while_the_store_is_read_is_shared():
    harness = Harness()
    harness.scripted.p.plays("a", [1.0, *answer("I am a")])
    first = asyncio.create_task(harness.whole())
    await asyncio.sleep(0.5)
    harness.store.read_s = 1.0
    second = await harness.whole()
    assert (await first).route.cache == pb.CACHE_STATUS_MISS
    assert second.route.cache == pb.CACHE_STATUS_HIT
    await harness.cache.drain()


@pytest.mark.parametrize("is_kept", [False, True])
async def test_a_store_that_fails_fails_no_request(is_kept):
    harness = Harness()
    if is_kept:
        await harness.stream()
    harness.store.fails = True
    assert await harness.stream() == (pb.CACHE_STATUS_MISS, "I am a")
    assert (await harness.whole()).route.cache == pb.CACHE_STATUS_MISS
    await harness.cache.drain()


async def test_a_call_without_a_caller_is_not_kept():
    harness = Harness()
    asked = asyncio.create_task(harness.stream(), context=Context())
    assert await asked == (pb.CACHE_STATUS_BYPASS, "I am a")
    assert harness.store.kept == {}


async def test_writes_between_two_sweeps_are_bounded():
    harness = Harness(max_bytes=MIB)
    harness.scripted.p.plays("a", answer("x" * 50_000))
    for number in range(5):
        await harness.whole(str(number))
        await harness.cache.drain()
    # An eighth of a mebibyte has room for two.
    assert len(harness.store.kept) == 2
    harness.seconds = 601
    await harness.whole("later")
    await harness.cache.drain()
    assert len(harness.store.kept) == 3


async def test_answers_that_wait_for_a_slow_store_are_bounded():
    harness = Harness()
    harness.store.waits = asyncio.Event()
    for number in range(70):
        await harness.whole(str(number))
    harness.store.waits.set()
    await harness.cache.drain()
    assert len(harness.store.kept) == 64
