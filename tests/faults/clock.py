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
_STATUS_SIZE = 4096


class _Selector(selectors.DefaultSelector):
    """Waits for files; where it would wait in vain it adds the time to `skipped` instead."""

    def __init__(self) -> None:
        super().__init__()
        self.skipped = 0.0
        self._threads = _Threads()

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self.skipped += _TURN_S
        if timeout is None or timeout <= 0:
            return super().select(timeout)
        before = self._threads.turns()
        ready = super().select(_QUIET_S)
        if ready or before is None or self._threads.turns() != before:
            return ready
        # The last of the threads may have woken this loop before it fell asleep.
        ready = super().select(0)
        if not ready:
            self.skipped += timeout
        return ready

    def close(self) -> None:
        super().close()
        self._threads.close()


class _Threads:
    """The other threads of this process."""

    def __init__(self) -> None:
        # Asked twice for every step of the clock: to open them takes as long as to read them.
        self._opened: dict[str, int] = {}

    def turns(self) -> dict[str, bytes] | None:
        """Return how often each was given a processor, or None if one wants it now."""
        own = str(threading.get_native_id())
        turns = {}
        for thread in os.listdir(_THREADS):
            if thread != own:
                status = self._status(thread)
                if _ASLEEP not in status:
                    return None
                turns[thread] = status[status.index(b"\nvoluntary_ctxt_switches") :]
        return turns

    def close(self) -> None:
        """Close what was opened."""
        for file in self._opened.values():
            os.close(file)
        self._opened.clear()

    def _status(self, thread: str) -> bytes:
        """Return what the kernel says of a thread; nothing of one that has just ended."""
        try:
            if thread not in self._opened:
                self._opened[thread] = os.open(f"{_THREADS}/{thread}/status", os.O_RDONLY)
            return os.pread(self._opened[thread], _STATUS_SIZE, 0)
        except OSError:
            # Another may get its number.
            if thread in self._opened:
                os.close(self._opened.pop(thread))
            return b""


class SkippingLoop(asyncio.SelectorEventLoop):
    """The loop; its `time` is the clock that everything under test must go by."""

    def __init__(self) -> None:
        self._waiting = _Selector()
        super().__init__(self._waiting)

    def time(self) -> float:
        return self._waiting.skipped
