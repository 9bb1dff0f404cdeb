"""The queue of an exporter: what waits, what is tried again, and what is dropped."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from services.request_log.exporters.base import ExportedRequest, ExportError
from services.request_log.exporters.queue import ExportQueue, QueueLimits
from services.request_log.metrics import RequestLogMetrics
from tests.services.request_log.exporters.exported_requests import exported
from tests.waiting import until

LIMITS = QueueLimits(entries=10, size=1 << 20, batch_entries=3)


class Place:
    """An exporter that holds what it was sent; `failures` are raised first, one a batch."""

    name = "file"

    def __init__(self, *failures: Exception) -> None:
        self.failures = list(failures)
        self.attempts = 0
        self.batches: list[list[str]] = []
        self.may_send = asyncio.Event()
        self.may_send.set()
        self.is_closed = False

    async def send(self, batch: Sequence[ExportedRequest]) -> int:
        self.attempts += 1
        await self.may_send.wait()
        if self.failures:
            raise self.failures.pop(0)
        self.batches.append([entry.logged.request_id for entry in batch])
        return sum(entry.logged.status == 400 for entry in batch)

    async def close(self) -> None:
        self.is_closed = True


class Exporting:
    """A queue with its counters; it is started, and settles at the end."""

    def __init__(self, place: Place, limits: QueueLimits = LIMITS, **options: Any) -> None:
        self.registry = CollectorRegistry()
        metrics = RequestLogMetrics(self.registry)
        self.queue = ExportQueue(place, limits, metrics, **({"retry_after_s": (0, 0)} | options))

    def count(self, name: str) -> float:
        labels = {"exporter": "file"}
        return self.registry.get_sample_value(f"gateway_request_log_{name}", labels) or 0

    async def settled(self, *entries: ExportedRequest) -> tuple[float, float]:
        """Add entries, settle, and return how many were exported and dropped."""
        self.queue.start()
        self.queue.add(entries)
        await self.queue.settle()
        return self.count("exported_total"), self.count("export_dropped_total")


async def test_entries_are_sent_in_order_in_batches() -> None:
    place = Place()
    exporting = Exporting(place)
    assert await exporting.settled(*map(exported, range(7))) == (7, 0)
    assert [len(batch) for batch in place.batches] == [3, 3, 1]
    assert [name for batch in place.batches for name in batch] == [
        f"req_{number}" for number in range(7)
    ]
    assert exporting.count("export_pending") == 0 and place.is_closed


@pytest.mark.parametrize("limits", [LIMITS._replace(entries=2), LIMITS._replace(size=2_000)])
async def test_a_full_queue_drops_and_counts(limits: QueueLimits) -> None:
    place = Place()
    place.may_send.clear()
    exporting = Exporting(place, limits)
    exporting.queue.start()
    exporting.queue.add(map(exported, range(5)))
    assert (exporting.count("export_pending"), exporting.count("export_dropped_total")) == (2, 3)
    place.may_send.set()
    # What has been sent has room again.
    await until(lambda: exporting.count("exported_total") == 2)
    assert await exporting.settled(exported(6)) == (3, 3)


@pytest.mark.parametrize(
    ("failures", "outcome", "attempts"),
    [
        ([ExportError("away")] * 2, (1, 0), 3),
        ([ExportError("away")] * 3, (0, 1), 3),
        ([ExportError("wrong key", is_passing=False)], (0, 1), 1),
        ([RuntimeError("a bug")], (0, 1), 1),
    ],
)
async def test_a_batch_has_bounded_attempts(
    failures: list[Exception], outcome: tuple[int, int], attempts: int
) -> None:
    place = Place(*failures)
    exporting = Exporting(place)
    exporting.queue.start()
    exporting.queue.add([exported()])
    await until(lambda: exporting.count("export_pending") == 0)
    assert (exporting.count("exported_total"), exporting.count("export_dropped_total")) == outcome
    assert place.attempts == attempts
    # Later batches are sent.
    assert await exporting.settled(exported(2)) == (outcome[0] + 1, outcome[1])


async def test_rejected_entries_are_counted() -> None:
    entries = exported(1), exported(2, status=400), exported(3)
    assert await Exporting(Place()).settled(*entries) == (2, 1)


async def test_a_stop_does_not_wait_for_further_attempts() -> None:
    place = Place(ExportError("away"))
    exporting = Exporting(place, retry_after_s=(3600,))
    exporting.queue.start()
    exporting.queue.add([exported()])
    await until(lambda: place.attempts == 1)
    await exporting.queue.settle()
    assert exporting.count("exported_total") == 1


async def test_a_stop_ends_though_the_place_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("services.request_log.exporters.queue._SETTLE_S", 0.01)
    place = Place()
    place.may_send.clear()
    assert await Exporting(place).settled(exported(), exported(2)) == (0, 2)


@pytest.mark.parametrize(
    "is_ready", [lambda size: size == 3, lambda size: size == 1], ids=["full", "time"]
)
async def test_a_batch_waits_until_it_is_full_or_for_a_time(
    is_ready: Callable[[int], bool],
) -> None:
    place = Place()
    wait_s = 3600 if is_ready(3) else 0.01
    exporting = Exporting(place, LIMITS._replace(wait_s=wait_s))
    exporting.queue.start()
    for number in range(3 if is_ready(3) else 1):
        exporting.queue.add([exported(number)])
        await asyncio.sleep(0)
    await until(lambda: bool(place.batches))
    assert is_ready(len(place.batches[0]))
    await exporting.queue.settle()
