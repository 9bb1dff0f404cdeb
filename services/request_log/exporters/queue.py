"""Entries that wait for an exporter: bounded, sent in batches, dropped after some attempts."""

import asyncio
import logging
from collections import deque
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from services.request_log.exporters.base import ExportedRequest, Exporter, ExportError
from services.request_log.metrics import RequestLogMetrics

# Seconds before each further attempt to send a batch.
_RETRY_AFTER_S = (1.0, 2.0, 4.0, 8.0)
_SETTLE_S = 5.0

log = logging.getLogger(__name__)


class QueueLimits(NamedTuple):
    """Limits of a queue.

    Attributes:
        entries, size: maximum entries and bytes that wait; further entries are dropped.
        batch_entries, batch_size: maximum entries and bytes of a batch.
        wait_s: seconds in which an incomplete batch waits for further entries.
    """

    entries: int
    size: int
    batch_entries: int = 100
    batch_size: int = 2 << 20
    wait_s: float = 0


class ExportQueue:
    """The entries that wait for an exporter.

    Args:
        exporter: sends batches.
        limits: the limits of the queue.
        metrics: counts exported, waiting and dropped entries.
        retry_after_s: seconds before each further attempt to send a batch.
    """

    def __init__(
        self,
        exporter: Exporter,
        limits: QueueLimits,
        metrics: RequestLogMetrics,
        retry_after_s: Sequence[float] = _RETRY_AFTER_S,
    ) -> None:
        self._exporter = exporter
        self._limits = limits
        self._metrics = metrics
        self._retry_after_s = retry_after_s
        self._waiting: deque[ExportedRequest] = deque()
        self._size = 0
        self._has_entries = asyncio.Event()
        self._has_batch = asyncio.Event()
        self._is_settling = asyncio.Event()
        self._running: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Send entries in the background until `settle`."""
        self._running = asyncio.create_task(self._run())

    def add(self, entries: Iterable[ExportedRequest]) -> None:
        """Add entries; those that find no room are dropped and counted. Never waits."""
        limits = self._limits
        dropped = 0
        for entry in entries:
            size = entry.size
            if len(self._waiting) >= limits.entries or self._size + size > limits.size:
                dropped += 1
            else:
                self._waiting.append(entry)
                self._size += size
        self._drop(dropped)
        self._show_waiting()
        if self._waiting:
            self._has_entries.set()
        if len(self._waiting) >= limits.batch_entries or self._size >= limits.batch_size:
            self._has_batch.set()

    async def settle(self) -> None:
        """Send what waits, within `_SETTLE_S` seconds and without further attempts, and stop."""
        if self._running is not None:
            for event in (self._is_settling, self._has_entries, self._has_batch):
                event.set()
            try:
                async with asyncio.timeout(_SETTLE_S):
                    await self._running
            except TimeoutError:
                log.warning(
                    "entries of the request log could not be exported before the process ended",
                    extra={"exporter": self._exporter.name, "entries": len(self._waiting)},
                )
                self._drop(len(self._waiting))
        await self._exporter.close()

    async def _run(self) -> None:
        while self._waiting or not self._is_settling.is_set():
            await self._has_entries.wait()
            await _within(self._has_batch, self._limits.wait_s)
            self._has_batch.clear()
            while self._waiting:
                batch = self._first_batch()
                await self._send(batch)
                for entry in batch:
                    self._waiting.popleft()
                    self._size -= entry.size
                self._show_waiting()
            if not self._is_settling.is_set():
                self._has_entries.clear()

    def _first_batch(self) -> Sequence[ExportedRequest]:
        batch: list[ExportedRequest] = []
        size = 0
        for entry in self._waiting:
            size += entry.size
            if batch and (
                size > self._limits.batch_size or len(batch) >= self._limits.batch_entries
            ):
                break
            batch.append(entry)
        return batch

    async def _send(self, batch: Sequence[ExportedRequest]) -> None:
        """Send a batch, with some attempts; drop it if none succeeds."""
        name = self._exporter.name
        for delay_s in (*self._retry_after_s, None):
            try:
                rejected = await self._exporter.send(batch)
            except ExportError as error:
                reason = str(error)
                if error.is_passing and delay_s is not None and not self._is_settling.is_set():
                    log.warning(
                        "entries of the request log could not be exported yet and will be retried",
                        extra={"exporter": name, "error": reason},
                    )
                    await _within(self._is_settling, delay_s)
                    continue
                rejected = len(batch)
                log.error(
                    "entries of the request log were not exported",
                    extra={"exporter": name, "error": reason, "entries": rejected},
                )
            except Exception:
                rejected = len(batch)
                log.exception("entries of the request log were not exported")
            self._metrics.exported.labels(name).inc(len(batch) - rejected)
            self._drop(rejected)
            return

    def _drop(self, number: int) -> None:
        self._metrics.export_dropped.labels(self._exporter.name).inc(number)

    def _show_waiting(self) -> None:
        self._metrics.export_pending.labels(self._exporter.name).set(len(self._waiting))


async def _within(event: asyncio.Event, seconds: float) -> None:
    """Wait for an event, at most for a time."""
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return
