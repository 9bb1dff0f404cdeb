"""Metrics with cheap updates, and their sums over several processes.

On each update, prometheus_client takes a lock and, under `gateway up`, writes to a file in a shared
folder (PROMETHEUS_MULTIPROC_DIR), from which any facade can sum up the metrics of all processes.
The metrics of this module buffer updates in an attribute. They pass them to the library when the
metrics are read, and to the shared folder (`metrics_files`) after a short delay. All updates must
be made in the event loop's thread.
"""

import asyncio
import os
from bisect import bisect_left
from collections.abc import Callable, Iterable
from typing import Any

import prometheus_client
from prometheus_client import CollectorRegistry, Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.samples import Sample

from services.common.process.metrics_files import use_metrics_files, write_files

SHARED_FOLDER_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"

# Maximum delay of updates of the shared folder.
_DELAY_S = 0.25

use_metrics_files()


class Counter(prometheus_client.Counter):
    """A counter with buffered updates."""

    _is_noted = False
    _counted = 0.0

    def inc(self, amount: float = 1, exemplar: dict[str, str] | None = None) -> None:
        """Increment the counter; exemplars are ignored."""
        self._counted += amount
        if not self._is_noted:
            _note(self, self._value)

    def write(self) -> None:
        """Add the buffered increments to the library's value."""
        self._is_noted = False
        counted, self._counted = self._counted, 0.0
        super().inc(counted)

    def _child_samples(self) -> Iterable[Sample]:
        self.write()
        return super()._child_samples()


class Gauge(prometheus_client.Gauge):
    """A gauge with buffered increments and decrements."""

    _is_noted = False
    _change = 0.0
    _read: Callable[[], float] | None = None

    def follow(self, read: Callable[[], float]) -> None:
        """Take the value from a function whenever the metrics are read or written.

        Changes are seen in the shared folder with the next update of any metric that is buffered.
        """
        self._read = read
        if self._value._multiprocess:
            _following.append(self)

    def inc(self, amount: float = 1) -> None:
        """Increment the value, or decrement it by a negative amount."""
        self._change += amount
        if not self._is_noted:
            _note(self, self._value)

    def set(self, value: float) -> None:
        """Set the value."""
        self._change = 0.0
        super().set(value)
        if not self._is_noted:
            _note(self, self._value)

    def write(self) -> None:
        """Add the buffered change to the library's value."""
        self._is_noted = False
        if self._read is not None:
            super().set(self._read())
        change, self._change = self._change, 0.0
        if change:  # never for gauges in "mostrecent" mode, which do not support `inc`
            super().inc(change)

    def _child_samples(self) -> Iterable[Sample]:
        self.write()
        return super()._child_samples()


class Histogram(prometheus_client.Histogram):
    """A histogram with buffered observations."""

    _is_noted = False

    def _metric_init(self) -> None:
        super()._metric_init()
        self._counted = [0] * len(self._upper_bounds)
        self._total = 0.0

    def observe(self, amount: float, exemplar: dict[str, str] | None = None) -> None:
        """Observe an amount; exemplars are ignored."""
        self._counted[bisect_left(self._upper_bounds, amount)] += 1
        self._total += amount
        if not self._is_noted:
            _note(self, self._sum)

    def write(self) -> None:
        """Add the buffered observations to the library's values."""
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


# Gauges that follow a function.
_following: list[Gauge] = []
# Metrics with updates that are not in the shared folder yet.
_unwritten: list[Counter | Gauge | Histogram] = []


def _note(metric: Counter | Gauge | Histogram, value: Any) -> None:
    """Note that a metric has buffered updates; called once until they are written.

    `value` is the library's value object of the metric, which knows whether it is in a file.
    """
    if value._multiprocess:
        if not _unwritten:
            asyncio.get_running_loop().call_later(_DELAY_S, write_counts)
        _unwritten.append(metric)
    metric._is_noted = True


def write_counts() -> None:
    """Write buffered updates to the shared folder; must also be called before the process ends."""
    for metric in (*_unwritten, *_following):
        metric.write()
    _unwritten.clear()
    write_files()


def shown(own: CollectorRegistry) -> CollectorRegistry:
    """Return the registry for /metrics: of this process, or of all in the shared folder."""
    if SHARED_FOLDER_VARIABLE not in os.environ:
        return own
    registry = CollectorRegistry()
    _Shared(registry)  # type: ignore[no-untyped-call]  # the library has no types here
    return registry


class _Shared(MultiProcessCollector):
    """The metrics of all processes, including the buffered updates of this one."""

    def collect(self) -> Iterable[Metric]:
        write_counts()
        collected: Iterable[Metric] = super().collect()  # type: ignore[no-untyped-call]  # the library has no types here
        return collected
