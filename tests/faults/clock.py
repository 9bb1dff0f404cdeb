"""An event loop that does not wait: its clock stands, and jumps where nothing happens.

A test can let a provider be silent for 30 s, or count what was asked within 3 s, and is
over at once. The clock shows no time that is used, however slow the machine: only when
nothing came for a moment, and in that moment no other thread of this process ran or
wanted to, does it go on to the next thing that is due. So no timer is ever early, and
what is measured is exact. What tests with this clock talk to must live in this process.
"""

import asyncio
import os
import selectors
import threading

# Long enough for what the kernel hands from one socket to another.
_QUIET_S = 0.005
# What a turn of the loop takes by its clock: something, so that whoever looks again and
# again, being a rounding error short of a moment, gets there.
_TURN_S = 1e-6

_THREADS = "/proc/self/task"
_ASLEEP = b"\nState:\tS"


class _Selector(selectors.DefaultSelector):
    """Waits for files; where it would wait in vain it adds the time to `skipped` instead."""

    def __init__(self) -> None:
        super().__init__()
        self.skipped = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self.skipped += _TURN_S
        if timeout is None or timeout <= 0:
            return super().select(timeout)
        before = _threads()
        ready = super().select(_QUIET_S)
        if ready or before is None or _threads() != before:
            return ready
        # The last of the threads may have woken this loop before it fell asleep.
        ready = super().select(0)
        if not ready:
            self.skipped += timeout
        return ready


def _threads() -> dict[str, bytes] | None:
    """Return how often each other thread was given a processor, or None if one wants it now."""
    own = str(threading.get_native_id())
    turns = {}
    # Asked twice for every step of the clock: pathlib takes as long as the kernel.
    for thread in os.listdir(_THREADS):
        if thread != own:
            try:
                with open(f"{_THREADS}/{thread}/status", "rb", buffering=0) as file:
                    status = file.read()
            except OSError:
                return None  # it has just ended
            if _ASLEEP not in status:
                return None
            turns[thread] = status[status.index(b"\nvoluntary_ctxt_switches") :]
    return turns


class SkippingLoop(asyncio.SelectorEventLoop):
    """The loop; its `time` is the clock that everything under test must go by."""

    def __init__(self) -> None:
        self._waiting = _Selector()
        super().__init__(self._waiting)

    def time(self) -> float:
        return self._waiting.skipped
