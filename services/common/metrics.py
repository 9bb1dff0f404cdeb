"""How the counters of several processes become one page.

Under `gateway up` every process writes its counters to files in a shared folder
(PROMETHEUS_MULTIPROC_DIR), and whichever facade is asked adds them up; a process
that runs alone shows its own.
"""

import asyncio
import os
from collections.abc import Iterable
from typing import Any

from prometheus_client import CollectorRegistry, Metric, values
from prometheus_client.multiprocess import MultiProcessCollector

SHARED_FOLDER_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"

# How much later than they are counted counts may reach the shared folder.
_DELAY_S = 0.25

# Values of this process whose counts the shared folder does not have yet.
_unwritten: list[Any] = []


def count_quickly() -> None:
    """Make counters in the shared folder do without what serves forks and threads.

    At each count the library asks for the process's number, takes a lock and writes. Processes
    of ours never fork, and all counting is done in the event loop's thread; what was counted
    is written a moment later (`write_counts`). Call it before the first counter is made.
    """
    if SHARED_FOLDER_VARIABLE in os.environ:
        number = os.getpid()
        shared: Any = values.MultiProcessValue(lambda: number)  # type: ignore[no-untyped-call]  # the library has no types here

        class Value(shared):  # type: ignore[misc]  # its base is made by the library
            _is_written = True

            def inc(self, amount: float) -> None:
                self._value += amount
                if self._is_written:
                    self._is_written = False
                    if not _unwritten:
                        asyncio.get_running_loop().call_later(_DELAY_S, write_counts)
                    _unwritten.append(self)

            def write(self) -> None:
                self._is_written = True
                self._file.write_value(self._key, self._value, 0.0)

        values.ValueClass = Value


def write_counts() -> None:
    """Write what was counted to the shared folder; to be called before the process ends, too."""
    for value in _unwritten:
        value.write()
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
