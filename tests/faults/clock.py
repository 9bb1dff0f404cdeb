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
_SIZE = 4096


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
        before = self._threads.used()
        ready = super().select(_QUIET_S)
        if ready or not self._threads.are_asleep() or self._threads.used() != before:
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
        # Read for every step of the clock: to open them takes as long as to read them.
        self._opened: dict[tuple[str, str], int] = {}
        own = self._read(str(threading.get_native_id()), "schedstat")
        assert not own.startswith(b"0 "), "the kernel does not count how long threads run"

    def used(self) -> dict[str, bytes]:
        """Return for how long, and how often, each was given a processor."""
        return {thread: self._read(thread, "schedstat") for thread in self._others()}

    def are_asleep(self) -> bool:
        """Return whether none of them runs, or wants to."""
        # The state follows the name, which may hold anything.
        return all(
            not stat or stat.rpartition(b") ")[2].startswith(b"S")
            for stat in (self._read(thread, "stat") for thread in self._others())
        )

    def close(self) -> None:
        """Close what was opened."""
        for file in self._opened.values():
            os.close(file)
        self._opened.clear()

    def _others(self) -> list[str]:
        own = str(threading.get_native_id())
        return [thread for thread in os.listdir(_THREADS) if thread != own]

    def _read(self, thread: str, name: str) -> bytes:
        """Return what the kernel says of a thread; nothing of one that has just ended."""
        try:
            if (thread, name) not in self._opened:
                file = os.open(f"{_THREADS}/{thread}/{name}", os.O_RDONLY)
                self._opened[thread, name] = file
            return os.pread(self._opened[thread, name], _SIZE, 0)
        except OSError:
            # Another may get its number.
            if (thread, name) in self._opened:
                os.close(self._opened.pop((thread, name)))
            return b""


class SkippingLoop(asyncio.SelectorEventLoop):
    """The loop; its `time` is the clock that everything under test must go by."""

    def __init__(self) -> None:
        self._waiting = _Selector()
        super().__init__(self._waiting)

    def time(self) -> float:
        return self._waiting.skipped
