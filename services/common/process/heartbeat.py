"""Signs of life of a process's event loop, and the stacks of its threads, for its supervisor."""

import asyncio
import faulthandler
import os
import signal
from contextlib import suppress

EVERY_S = 1.0
_BEAT = b"\0"


class Heartbeat:
    """Writes a byte to a pipe every second for as long as the event loop runs.

    On SIGUSR1 the stacks of all threads are written to the same pipe, also while the event loop's
    thread computes or holds the GIL: `faulthandler` writes them in the signal handler itself.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, pipe: int) -> None:
        """Start to write; `pipe` is a descriptor that the process inherited."""
        self._loop = loop
        self._pipe = pipe
        os.set_inheritable(pipe, False)
        # A supervisor that does not read must not block the event loop.
        os.set_blocking(pipe, False)
        faulthandler.register(signal.SIGUSR1, file=pipe, all_threads=True)
        self._beat()

    def _beat(self) -> None:
        with suppress(BlockingIOError, BrokenPipeError):
            os.write(self._pipe, _BEAT)
        self._loop.call_later(EVERY_S, self._beat)
