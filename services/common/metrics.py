"""How the counters of several processes become one page.

Under `gateway up` every process writes its counters to files in a shared folder
(PROMETHEUS_MULTIPROC_DIR), and whichever facade is asked adds them up; a process
that runs alone shows its own.
"""

import os

from prometheus_client import CollectorRegistry, values
from prometheus_client.multiprocess import MultiProcessCollector

SHARED_FOLDER_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"


def count_without_asking() -> None:
    """Let counters in the shared folder take this process's number as settled.

    The library asks the system for it at each count, for the sake of processes that fork;
    ours never do. Call it before the first counter is made.
    """
    if SHARED_FOLDER_VARIABLE in os.environ:
        number = os.getpid()
        values.ValueClass = values.MultiProcessValue(lambda: number)  # type: ignore[no-untyped-call]  # the library has no types here


def shown(own: CollectorRegistry) -> CollectorRegistry:
    """Give the registry that /metrics shows."""
    if SHARED_FOLDER_VARIABLE not in os.environ:
        return own
    registry = CollectorRegistry()
    MultiProcessCollector(registry)  # type: ignore[no-untyped-call]  # the library has no types here
    return registry
