"""Records requests: keeps entries in memory, writes them in batches, and passes them to exporters.

An entry waits a few seconds for the usage records of its request, which have its tokens and its
cost. Nothing here waits for a database while a request is served: an entry that finds no room is
dropped, and counted. Entries in memory are lost when the process is killed.
"""

import asyncio
import logging
import random
from collections import deque
from collections.abc import Awaitable, Callable, Sequence

from gateway.errors.v1 import errors_pb2
from gateway.requests.v1.requests_pb2 import LoggedRequest, RequestBodies
from services.common.clock import Clock
from services.common.errors import GatewayError
from services.common.ids import new_logged_request_id
from services.common.messages.captured_body import CapturedBody, PendingBytes
from services.common.messages.request_entry import RequestEntry
from services.common.messages.usage_batch import OWN, SHARED, UsageBatch
from services.common.settings import RequestLog, Usage
from services.request_log.batches import completed, first_batch
from services.request_log.bodies import RenderBodies, bodies_of
from services.request_log.exporters.base import ExportedRequest
from services.request_log.exporters.queue import ExportQueue
from services.request_log.metrics import RequestLogMetrics
from services.request_log.redaction import Redactor
from services.request_log.selection import Selection

_SETTLE_S = 5.0
# Seconds to wait for the usage of a request, beyond two intervals in which usage is written.
_USAGE_SLACK_S = 5.0
# Reasons of errors after which a batch is sent again.
_PASSING = frozenset(
    {
        errors_pb2.REASON_UNAVAILABLE,
        errors_pb2.REASON_TIMEOUT,
        errors_pb2.REASON_STORAGE_FULL,
        errors_pb2.REASON_STORAGE_UNAVAILABLE,
    }
)
_USER, _MODEL = SHARED.index("user_id"), SHARED.index("model")
_PROVIDER, _REQUESTS = SHARED.index("provider"), SHARED.index("requests")
_ATTEMPTS = SHARED.index("attempts")
_REQUEST_ID, _COST = OWN.index("request_id"), OWN.index("cost_pusd")
_INPUTS = tuple(
    OWN.index(name) for name in ("input_tokens", "cached_tokens", "cache_written_tokens")
)
_OUTPUT = OWN.index("output_tokens")

log = logging.getLogger(__name__)

# Stores a batch of entries, and the bodies of some; may be called again with a batch that failed.
Send = Callable[[Sequence[LoggedRequest], Sequence[RequestBodies]], Awaitable[None]]
# Stores a batch of usage records.
SendUsage = Callable[[UsageBatch], Awaitable[None]]


class RequestRecorder:
    """Records the requests of this process.

    Args:
        settings: which requests are logged, and how many entries wait.
        usage: when usage is recorded.
        clock: the clock.
        send: stores a batch.
        metrics: counts stored and dropped entries.
        render: renders bodies.
        exporters: get entries once they are stored.
        chance: returns a random number from 0 to 1.

    Attributes:
        has_bodies: whether bodies are logged.
    """

    def __init__(
        self,
        settings: RequestLog,
        usage: Usage,
        clock: Clock,
        send: Send,
        metrics: RequestLogMetrics,
        render: RenderBodies,
        exporters: Sequence[ExportQueue] = (),
        *,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._settings = settings
        self._selection = Selection(settings)
        self._usage_within_s = 2 * usage.write_every_s + _USAGE_SLACK_S if usage.enabled else 0.0
        self._clock = clock
        self._send = send
        self._metrics = metrics
        self._render = render
        self._exporters = exporters
        self._redactor = Redactor(settings.redact)
        self._pending_bytes = PendingBytes(settings.max_pending_bytes)
        self._chance = chance
        self.has_bodies = settings.bodies
        # The newest entry of each request id, until it is written.
        self._by_request_id: dict[str, RequestEntry] = {}
        self._ended: deque[RequestEntry] = deque()
        self._pending = 0  # entries that have ended, including those that are being written
        self._flushing = asyncio.Lock()
        self._running: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Write and export entries at intervals, in the background, until `stop`."""
        for exporter in self._exporters:
            exporter.start()
        self._running = asyncio.create_task(self._run())

    def begin(self, request_id: str, *, has_bodies: bool = True) -> RequestEntry | None:
        """Return the entry of a request that begins, or None if it is not logged.

        Its bodies are not captured without `has_bodies`.
        """
        if self._chance() >= self._settings.sample_rate:
            return None
        entry = self._by_request_id[request_id] = RequestEntry(request_id)
        if self.has_bodies and has_bodies:
            max_bytes = self._settings.max_body_bytes
            entry.request = CapturedBody(max_bytes, self._pending_bytes)
            entry.response = CapturedBody(max_bytes, self._pending_bytes)
        return entry

    def end(self, entry: RequestEntry, logged: LoggedRequest | None) -> None:
        """End an entry with what is stored of it, or without if it is not logged after all."""
        if logged is None or not self._selection.has(logged.key_id, logged.requested_model):
            self._forget(entry)
        elif self._pending >= self._settings.max_pending_entries:
            self._metrics.dropped.inc()
            self._forget(entry)
        else:
            logged.time_ms = self._clock.now_ms()
            logged.id = new_logged_request_id(logged.time_ms)
            entry.logged = logged
            entry.ended_s = self._clock.monotonic()
            self._ended.append(entry)
            self._add_pending(1)

    def observing(self, send_usage: SendUsage) -> SendUsage:
        """Return a function that stores usage records, and adds them to the entries."""

        async def send(batch: UsageBatch) -> None:
            await send_usage(batch)
            self.add_usage(batch)

        return send

    def add_usage(self, batch: UsageBatch) -> None:
        """Add usage records to the entries of their requests."""
        entries = self._by_request_id
        for shared, rows in batch.groups.items():
            for own in rows:
                entry = entries.get(own[_REQUEST_ID])
                if entry is None:
                    continue
                logged = entry.logged
                if logged is not None and logged.user_id != shared[_USER]:
                    continue
                entry.input_tokens += sum([own[place] for place in _INPUTS])
                entry.output_tokens += own[_OUTPUT]
                if entry.cost_pusd is not None:
                    cost = own[_COST]
                    entry.cost_pusd = None if cost is None else entry.cost_pusd + cost
                if shared[_REQUESTS]:
                    entry.has_usage = True
                    entry.attempts = shared[_ATTEMPTS]
                    entry.model, entry.provider = shared[_MODEL], shared[_PROVIDER]

    async def flush(self, *, waits_for_usage: bool = True) -> None:
        """Write the entries that have ended, except for those that still wait for their usage.

        Raises:
            GatewayError: unavailable; the next call tries the remaining entries again.
        """
        async with self._flushing:
            ready = self._take_ready(waits_for_usage=waits_for_usage)
            try:
                while ready:
                    batch = first_batch(ready)
                    await self._write(batch)
                    for entry in batch:
                        ready.popleft()
                        self._forget(entry)
                    self._add_pending(-len(batch))
            finally:
                self._ended.extendleft(reversed(ready))

    async def settle(self) -> None:
        """Write and export all entries before the process ends, each within some seconds."""
        try:
            async with asyncio.timeout(_SETTLE_S):
                await self.flush(waits_for_usage=False)
        except (GatewayError, TimeoutError) as error:
            log.warning(
                "entries of the request log could not be written before the process ended",
                extra={"error": str(error), "entries": self._pending},
            )
            self._metrics.dropped.inc(self._pending)
        await asyncio.gather(*(exporter.settle() for exporter in self._exporters))

    async def stop(self) -> None:
        """Stop writing entries."""
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self._settings.write_every_s)
            try:
                await self.flush()
            except GatewayError as error:
                log.warning(
                    "entries of the request log could not be written yet and will be retried",
                    extra={"error": error.message},
                )
            except Exception:
                log.exception("entries of the request log could not be written")

    def _take_ready(self, *, waits_for_usage: bool) -> deque[RequestEntry]:
        """Return and remove the entries that are to be written."""
        now_s = self._clock.monotonic()
        ready: deque[RequestEntry] = deque()
        waiting: deque[RequestEntry] = deque()
        for entry in self._ended:
            assert entry.logged is not None, "it has ended"
            awaits_usage = (
                waits_for_usage
                and entry.logged.requested_model != ""
                and not entry.has_usage
                and now_s - entry.ended_s < self._usage_within_s
            )
            (waiting if awaits_usage else ready).append(entry)
        self._ended = waiting
        return ready

    async def _write(self, entries: Sequence[RequestEntry]) -> None:
        bodies = await self._bodies_of(entries)
        bodies_by_id = {one.id: one for one in bodies}
        requests = [completed(entry, bodies_by_id) for entry in entries]
        try:
            await self._send(requests, bodies)
        except GatewayError as error:
            if error.reason in _PASSING:
                raise
            log.error("entries of the request log were rejected", extra={"error": error.message})
            self._metrics.dropped.inc(len(entries))
        else:
            self._metrics.written.inc(len(entries))
        if self._exporters:
            exported = [
                ExportedRequest(request, bodies_by_id.get(request.id), entry.trace)
                for entry, request in zip(entries, requests, strict=True)
            ]
            for exporter in self._exporters:
                exporter.add(exported)

    async def _bodies_of(self, entries: Sequence[RequestEntry]) -> Sequence[RequestBodies]:
        """Return the bodies of the entries that have some."""
        bodies = []
        for entry in entries:
            if entry.request is None or not entry.request.content:
                continue
            try:
                # One at a time, so that other threads run in between.
                one = await asyncio.to_thread(bodies_of, entry, self._render, self._redactor)
            except Exception:
                # It must not block the others, and without redaction it must not be stored.
                log.exception("bodies of the request log could not be rendered")
            else:
                bodies.append(one)
        return bodies

    def _add_pending(self, number: int) -> None:
        self._pending += number
        self._metrics.pending.set(self._pending)

    def _forget(self, entry: RequestEntry) -> None:
        """Receive no more usage for an entry, and free its bodies."""
        if self._by_request_id.get(entry.request_id) is entry:
            del self._by_request_id[entry.request_id]
        for body in (entry.request, entry.response):
            if body is not None:
                body.release()
