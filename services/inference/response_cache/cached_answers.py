"""Answers requests from the cache, or by the engine, and stores the engine's answers.

A failing store never fails a request: the engine answers it.
"""

import asyncio
import logging
from collections.abc import Coroutine
from functools import partial
from typing import Any, NamedTuple

from gateway.inference.v1.inference_pb2 import (
    CACHE_STATUS_BYPASS,
    CACHE_STATUS_MISS,
    CacheStatus,
    GenerateRequest,
    GenerateResponse,
    StreamGenerateResponse,
)
from services.common.clock import Clock
from services.common.errors import GatewayError
from services.common.grpc.authentication import caller
from services.common.messages.lazy_request import LazyRequest
from services.common.messages.passthrough_answer import PassthroughAnswer
from services.common.settings import ResponseCache
from services.common.storage.byte_store import ByteStore
from services.inference.metrics import InferenceMetrics
from services.inference.response_cache.directives import CacheDirectives
from services.inference.response_cache.entries import CachedAnswer
from services.inference.response_cache.keys import key_of, owner_of
from services.inference.response_cache.rules import is_cacheable
from services.inference.run.engine import Engine
from services.inference.stream.batches import Batches, observed
from services.inference.stream.filters import Batch

log = logging.getLogger(__name__)

# Maximum concurrent writes; further answers are not stored.
_MAX_WRITES = 64
# Between two sweeps a process stores at most `max_bytes` divided by this.
_SHARE = 8

Request = GenerateRequest | LazyRequest


class _Place(NamedTuple):
    """The place of a request's answer in the cache.

    Attributes:
        key: the key in the store.
        step_id: the first step of the plan. Answers of fallback steps are not stored.
    """

    key: str
    step_id: str


class CachedAnswers:
    """An engine with a cache of its answers.

    Args:
        engine: answers requests that are not in the cache.
        store: stores answers.
        bounds: the settings of the cache.
        sweep_s: seconds between two sweeps of the store.
        metrics: counts hits and misses.
        clock: the clock.
    """

    def __init__(
        self,
        engine: Engine,
        store: ByteStore,
        bounds: ResponseCache,
        sweep_s: float,
        metrics: InferenceMetrics,
        clock: Clock,
    ) -> None:
        self._engine = engine
        self._store = store
        self._bounds = bounds
        self._sweep_s = sweep_s
        self._metrics = metrics
        self._clock = clock
        self._writes: set[asyncio.Task[None]] = set()
        # Running answers by key, for equal requests; b"" if the answer cannot be shared.
        self._under_way: dict[str, asyncio.Future[bytes]] = {}
        self._period_began = clock.monotonic()
        self._written = 0  # bytes stored in the period

    async def answer(
        self, request: Request, directives: CacheDirectives
    ) -> GenerateResponse | PassthroughAnswer:
        """Return a whole answer, from the cache if possible.

        Raises:
            GatewayError: as the engine.
        """
        place = self._place(request, directives, whole=True)
        if place is None:
            self._count("bypass")
            bypassing = await self._engine.answer(request)
            bypassing.route.cache = CACHE_STATUS_BYPASS
            return bypassing
        # An equal request that runs now may end while the store is read.
        running = self._under_way.get(place.key)
        kept = await self._kept(place.key, directives)
        if kept is None and not directives.no_cache:
            kept = await self._of_equal_request(self._under_way.get(place.key, running))
        if kept is not None:
            response = kept.response(self._clock.now_ms())
            if response is not None:
                self._count("hit")
                return response
        self._count("miss")
        return await self._made(request, place)

    async def stream(self, request: Request, directives: CacheDirectives) -> Batches:
        """Return a streamed answer, from the cache if possible.

        Raises:
            GatewayError: as the engine.
        """
        place = self._place(request, directives, whole=False)
        if place and (kept := await self._kept(place.key, directives)):
            events = kept.batches(self._clock.now_ms())
            if events is not None:
                self._count("hit")
                return _replayed(events)
        self._count("miss" if place else "bypass")
        n = (request.request if isinstance(request, LazyRequest) else request).n or 1
        batches = await self._engine.stream(request)
        if place is None:
            return observed(batches, partial(_mark, status=CACHE_STATUS_BYPASS))
        return self._recorded(place, batches, n)

    async def _made(self, request: Request, place: _Place) -> GenerateResponse | PassthroughAnswer:
        """Return a new whole answer, store it, and share it with waiting equal requests."""
        is_first = place.key not in self._under_way
        if is_first:
            self._under_way[place.key] = asyncio.get_running_loop().create_future()
        content = b""
        try:
            response = await self._engine.answer(request)
            if response.route.step == place.step_id:
                content = response.SerializeToString()
        finally:
            if is_first:
                can_share = content and len(content) <= self._bounds.max_answer_bytes
                self._under_way.pop(place.key).set_result(content if can_share else b"")
        if content:
            self._keep(place.key, content)
        response.route.cache = CACHE_STATUS_MISS
        return response

    async def _of_equal_request(
        self, answering: asyncio.Future[bytes] | None
    ) -> CachedAnswer | None:
        """Wait for the answer to an equal request; None if there is none to share."""
        if answering is None:
            return None
        # A cancelled request must not cancel the future that others wait for.
        content = await asyncio.shield(answering)
        return CachedAnswer(self._clock.now_ms(), content) if content else None

    async def drain(self) -> None:
        """Wait for running writes to the store."""
        if self._writes:
            await asyncio.gather(*self._writes)

    def _place(self, sent: Request, directives: CacheDirectives, *, whole: bool) -> _Place | None:
        """Return the place of a request's answer in the cache, or None to bypass the cache."""
        request, lazy = (sent.request, sent) if isinstance(sent, LazyRequest) else (sent, None)
        current_caller = caller.get(None)
        if directives.no_store or current_caller is None:
            return None
        if not is_cacheable(request, lazy, has_search=self._engine.routes.has_search):
            return None
        try:
            plan = self._engine.plan_of(request)
        except GatewayError:
            return None  # the engine raises the same error
        owner = owner_of(current_caller, self._bounds.scope)
        key = key_of(owner, request, lazy, plan, whole=whole)
        return _Place(key, plan.steps[0].step_id)

    async def _kept(self, key: str, directives: CacheDirectives) -> CachedAnswer | None:
        """Return the cached answer of a key if it is fresh, else None."""
        if directives.no_cache:
            return None
        try:
            entry = await self._store.get(key)
        except GatewayError as error:
            log.warning("a cached answer could not be read", extra={"error": error.message})
            return None
        kept = None if entry is None else CachedAnswer.parse(entry)
        if kept is None:
            return None
        age_s = kept.age_s(self._clock.now_ms())
        is_fresh = age_s < self._bounds.ttl_s
        if directives.max_age_s is not None:
            is_fresh = is_fresh and age_s <= directives.max_age_s
        return kept if is_fresh else None

    def _recorded(self, place: _Place, batches: Batches, n: int) -> Batches:
        """Return the batches of a stream that is stored once it is complete."""
        recording = _Recording(place.step_id, self._bounds.max_answer_bytes)

        def keep() -> None:
            if recording.fits and recording.finished >= n:
                self._keep(place.key, b"".join(recording.parts))

        return observed(batches, recording.add, keep)

    def _keep(self, key: str, content: bytes) -> None:
        """Store an answer in the background, unless it exceeds a limit."""
        now = self._clock.monotonic()
        if now - self._period_began > self._sweep_s:
            self._period_began, self._written = now, 0
        size = len(content)
        if (
            size > self._bounds.max_answer_bytes
            or self._written + size > self._bounds.max_bytes // _SHARE
            or len(self._writes) >= _MAX_WRITES
        ):
            return
        self._written += size
        entry = CachedAnswer(self._clock.now_ms(), content).entry()
        self._start(self._put(key, entry))

    def _start(self, write: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(write)
        self._writes.add(task)
        task.add_done_callback(self._writes.discard)

    async def _put(self, key: str, entry: bytes) -> None:
        try:
            await self._store.put(key, entry)
        except GatewayError as error:
            log.warning("an answer could not be cached", extra={"error": error.message})

    def _count(self, result: str) -> None:
        self._metrics.response_cache.labels(result).inc()


class DirectedAnswers:
    """A cache for one request, with the cache directives of its caller."""

    __slots__ = ("_answers", "_directives")

    def __init__(self, answers: CachedAnswers, directives: CacheDirectives) -> None:
        self._answers = answers
        self._directives = directives

    async def answer(self, request: Request) -> GenerateResponse | PassthroughAnswer:
        """Return a whole answer; see `CachedAnswers`."""
        return await self._answers.answer(request, self._directives)

    async def stream(self, request: Request) -> Batches:
        """Return a streamed answer; see `CachedAnswers`."""
        return await self._answers.stream(request, self._directives)


async def _replayed(batches: list[Batch]) -> Batches:
    for batch in batches:
        yield batch


class _Recording:
    """The serialized events of a stream that may be stored.

    Attributes:
        parts: the parts of one serialized `StreamGenerateResponse`.
        finished: number of choices that have ended.
        fits: whether the stream may be stored so far.
    """

    def __init__(self, step_id: str, max_bytes: int) -> None:
        self.parts: list[bytes] = []
        self.finished = 0
        self.fits = True
        self._step_id = step_id
        self._left = max_bytes

    def add(self, batch: Batch) -> None:
        """Record a batch, and mark it as a cache miss."""
        first = batch[0]
        if first.HasField("start") and first.start.route.step != self._step_id:
            self.fits = False
        if self.fits:
            # Concatenated protobuf messages are one message with the events of all.
            part = StreamGenerateResponse(events=batch).SerializeToString()
            self._left -= len(part)
            self.fits = self._left >= 0
            self.parts.append(part)
            self.finished += sum(event.HasField("finish") for event in batch)
        if not self.fits:
            self.parts.clear()
        _mark(batch, CACHE_STATUS_MISS)


def _mark(batch: Batch, status: CacheStatus.ValueType) -> None:
    if batch[0].HasField("start"):
        batch[0].start.route.cache = status
