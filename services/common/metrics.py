"""Metrics whose updates are cheap, and the sum of those of several processes.

At each count the library takes a lock and, under `gateway up`, writes to a file in a shared
folder (PROMETHEUS_MULTIPROC_DIR), from which whichever facade is asked adds up the counts of all
processes. The metrics here collect their counts in an attribute, and give them to the library
when they are read: a process that runs alone shows its own; into the shared folder they go a
moment after they were counted. All counting is done in the event loop's thread.
"""

import asyncio
import os
from bisect import bisect_left
from collections.abc import Iterable
from typing import Any

import prometheus_client
from prometheus_client import CollectorRegistry, Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.samples import Sample

SHARED_FOLDER_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"

# How much later than they are counted counts may reach the shared folder.
_DELAY_S = 0.25


class Counter(prometheus_client.Counter):
    """A counter of the library's whose counts reach it late."""

    _is_noted = False
    _counted = 0.0

    def inc(self, amount: float = 1, exemplar: dict[str, str] | None = None) -> None:
        """Count; exemplars are not kept."""
        self._counted += amount
        if not self._is_noted:
            _note(self, self._value)

    def write(self) -> None:
        """Add what was counted to the library's value."""
        self._is_noted = False
        counted, self._counted = self._counted, 0.0
        super().inc(counted)

    def _child_samples(self) -> Iterable[Sample]:
        self.write()
        return super()._child_samples()


class Gauge(prometheus_client.Gauge):
    """A gauge of the library's whose changes reach it late; a value that is set does at once."""

    _is_noted = False
    _change = 0.0

    def inc(self, amount: float = 1) -> None:
        """Raise the value."""
        self._change += amount
        if not self._is_noted:
            _note(self, self._value)

    def dec(self, amount: float = 1) -> None:
        """Lower the value."""
        self._change -= amount
        if not self._is_noted:
            _note(self, self._value)

    def set(self, value: float) -> None:
        """Set the value."""
        self._change = 0.0
        super().set(value)

    def write(self) -> None:
        """Add what has changed to the library's value."""
        self._is_noted = False
        change, self._change = self._change, 0.0
        if change:  # which a gauge of the latest value never has
            super().inc(change)

    def _child_samples(self) -> Iterable[Sample]:
        self.write()
        return super()._child_samples()


class Histogram(prometheus_client.Histogram):
    """A histogram of the library's whose observations reach it late."""

    _is_noted = False

    def _metric_init(self) -> None:
        super()._metric_init()
        self._counted = [0] * len(self._upper_bounds)
        self._total = 0.0

    def observe(self, amount: float, exemplar: dict[str, str] | None = None) -> None:
        """Observe an amount; exemplars are not kept."""
        self._counted[bisect_left(self._upper_bounds, amount)] += 1
        self._total += amount
        if not self._is_noted:
            _note(self, self._sum)

    def write(self) -> None:
        """Add what was observed to the library's values."""
        self._is_noted = False
        total, self._total = self._total, 0.0
        self._sum.inc(total)
        for index, count in enumerate(self._counted):
            if count:
                self._buckets[index].inc(count)
                self._counted[index] = 0

    def _child_samples(self) -> Iterable[Sample]:
        self.write()
        return super()._child_samples()


# Metrics whose counts the shared folder does not have yet.
_unwritten: list[Counter | Gauge | Histogram] = []


def _note(metric: Counter | Gauge | Histogram, value: Any) -> None:
    """Note that a metric has counts, which goes for all until they are written.

    `value` is where the library keeps the metric's; it knows whether that is in a file.
    """
    if value._multiprocess:
        if not _unwritten:
            asyncio.get_running_loop().call_later(_DELAY_S, write_counts)
        _unwritten.append(metric)
    metric._is_noted = True


def write_counts() -> None:
    """Write what was counted to the shared folder; to be called before the process ends, too."""
    for metric in _unwritten:
        metric.write()
    _unwritten.clear()


def shown(own: CollectorRegistry) -> CollectorRegistry:
    """Return the registry that /metrics shows."""
    if SHARED_FOLDER_VARIABLE not in os.environ:
        return own
    registry = CollectorRegistry()
    _Shared(registry)  # type: ignore[no-untyped-call]  # the library has no types here
    return registry


class _Shared(MultiProcessCollector):
    """The counters of all processes, with the latest of this one."""

    def collect(self) -> Iterable[Metric]:
        write_counts()
        collected: Iterable[Metric] = super().collect()  # type: ignore[no-untyped-call]  # the library has no types here
        return collected
