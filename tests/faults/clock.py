"""An event loop that does not wait: where nothing happens, its clock jumps ahead.

A test can let a provider be silent for 30 s, or count what was asked within 3 s, and is
over at once. Time that is used passes as always; only when nothing has come for a moment,
and no thread of this process has anything to do, does the clock go on to the next thing
that is due. What tests with this clock talk to must live in this process.
"""

import asyncio
import os
import selectors
import threading
from pathlib import Path

# Long enough for what one thread hands to another, or the kernel to a socket.
_QUIET_S = 0.015
# On a machine with more to do than processors that can take longer by some times.
_TIMES_WHEN_BUSY = 2

_THREADS = Path("/proc/self/task")
_LOAD = Path("/proc/loadavg")


class _Selector(selectors.DefaultSelector):
    """Waits for files; the time it does not wait is added up in `skipped`."""

    def __init__(self) -> None:
        super().__init__()
        self.skipped = 0.0
        self._quiet = 0  # looks in a row that found nothing
        self._processors = len(os.sched_getaffinity(0))

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None or timeout <= _QUIET_S:
            return super().select(timeout)
        ready = super().select(_QUIET_S)
        if ready or _is_working():
            self._quiet = 0
            return ready
        # A thread may have woken this loop while it was looked at.
        ready = super().select(0)
        self._quiet = 0 if ready else self._quiet + 1
        if self._quiet >= (_TIMES_WHEN_BUSY if _running() > self._processors else 1):
            self._quiet = 0
            self.skipped += timeout - _QUIET_S
        return ready


def _is_working() -> bool:
    """Tell whether another thread runs, or would if the machine let it."""
    own = str(threading.get_native_id())
    for thread in _THREADS.iterdir():
        if thread.name != own:
            try:
                state = (thread / "stat").read_text().rpartition(") ")[2][:1]
            except OSError:
                continue  # it has just ended
            if state != "S":
                return True
    return False


def _running() -> int:
    """Tell how many threads of the whole machine run or would, this one included."""
    return int(_LOAD.read_text().split()[3].partition("/")[0])


class SkippingLoop(asyncio.SelectorEventLoop):
    """The loop; its `time` is the clock that everything under test must go by."""

    def __init__(self) -> None:
        self._waiting = _Selector()
        super().__init__(self._waiting)

    def time(self) -> float:
        return super().time() + self._waiting.skipped
