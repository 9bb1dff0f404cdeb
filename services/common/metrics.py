"""How the counters of several processes become one page.

Under `gateway up` every process writes its counters to files in a shared folder
(PROMETHEUS_MULTIPROC_DIR), and whichever facade is asked adds them up; a process
that runs alone shows its own.
"""

import os
from typing import Any

from prometheus_client import CollectorRegistry, values
from prometheus_client.multiprocess import MultiProcessCollector

SHARED_FOLDER_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"


def count_quickly() -> None:
    """Let counters in the shared folder do without what serves forks and threads.

    At each count the library asks for the process's number and takes a lock. Processes of
    ours never fork, and all counting is done in the event loop's thread. Call it before
    the first counter is made.
    """
    if SHARED_FOLDER_VARIABLE in os.environ:
        number = os.getpid()
        shared: Any = values.MultiProcessValue(lambda: number)  # type: ignore[no-untyped-call]  # the library has no types here

        class Value(shared):  # type: ignore[misc]  # its base is made by the library
            def inc(self, amount: float) -> None:
                self._value += amount
                self._file.write_value(self._key, self._value, 0.0)

        values.ValueClass = Value


def shown(own: CollectorRegistry) -> CollectorRegistry:
    """Give the registry that /metrics shows."""
    if SHARED_FOLDER_VARIABLE not in os.environ:
        return own
    registry = CollectorRegistry()
    MultiProcessCollector(registry)  # type: ignore[no-untyped-call]  # the library has no types here
    return registry
