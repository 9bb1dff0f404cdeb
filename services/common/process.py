"""Start and end of a process of the gateway.

A child of `gateway up` is ready when it writes `READY` to standard output, or says there with
`FAILED` why it cannot be. It leaves on SIGTERM or SIGINT after its work in hand is done, and
at once when the pipe from its parent closes, so that a killed supervisor leaves nobody behind.
"""

import asyncio
import ctypes
import gc
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from typing import NoReturn

from services.common import logs
from services.common.huge_pages import request_huge_pages
from services.common.metrics import write_counts
from services.common.private import make_files_private

# Objects made while starting live as long as the process; the collector need not walk them again
# and again, and young ones are cheap to keep a little longer. To walk as many young ones as this
# holds the event loop for half a millisecond, as often as there are so many that stay.
_GC_THRESHOLDS = (15_000, 150, 100)
# After so long a thread that computes hands the interpreter to another that waits for it: the
# event loop waits for it before everything that it does.
_SWITCH_S = 0.001
_WITHOUT_EVENT_ENGINE = "-event_engine_client,-event_engine_listener"
# Parameters of glibc's malloc: how many arenas there may be; from which size on memory is
# the system's own, given back when it is freed; how much free memory is kept at an end.
_M_ARENA_MAX = -8
_M_MMAP_THRESHOLD = -3
_M_TRIM_THRESHOLD = -1
_LARGE = 1 << 20
_KEPT = 4 << 20
# File descriptors that are enough for every process of the gateway.
_DESCRIPTORS = 1 << 16


class Lifecycle:
    """Signals a process's main function to stop, and the parent that it is ready.

    Attributes:
        stopping: set once the process is to leave.
        hurrying: set once it is signalled again: calls that have begun get no more time.
        on_reload: called on SIGHUP.
    """

    def __init__(self, parent_pipe: int | None) -> None:
        self.stopping = asyncio.Event()
        self.hurrying = asyncio.Event()
        self.on_reload: Callable[[], None] = lambda: None
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop)
        loop.add_signal_handler(signal.SIGHUP, lambda: self.on_reload())
        if parent_pipe is not None:
            loop.add_reader(parent_pipe, _leave)

    def _stop(self) -> None:
        if self.stopping.is_set():
            self.hurrying.set()
        self.stopping.set()

    def ready(self, word: str = "") -> None:
        """Notify the parent that requests can come; `word` is a message for it."""
        gc.collect()
        gc.freeze()
        _return_free_memory()
        request_huge_pages()
        print(f"READY {word}".rstrip(), flush=True)

    def fail(self, reason: str) -> NoReturn:
        """Notify the parent why this process cannot serve, and leave."""
        print(f"FAILED {' '.join(reason.splitlines())}", flush=True)
        raise SystemExit(1)


def run(main: Callable[[Lifecycle], Awaitable[None]], parent_pipe: int | None) -> None:
    """Run `main` on the fastest event loop there is, until it returns."""

    async def start() -> None:
        try:
            await main(Lifecycle(parent_pipe))
        finally:
            write_counts()

    gc.set_threshold(*_GC_THRESHOLDS)
    logs.configure()
    make_files_private()
    _set_up_grpc()
    set_up_allocator()
    _raise_descriptor_limit()
    sys.setswitchinterval(_SWITCH_S)
    if sys.platform == "win32":
        asyncio.run(start())
    else:
        import uvloop

        uvloop.run(start())


def _set_up_grpc() -> None:
    """Configure gRPC to read sockets on the thread that waits for their messages.

    Its event engine has threads of its own for that, and hands every message on. Without it
    a lone request switches threads half as often and is added a tenth less time, and an event
    of a stream costs a twelfth less. gRPC reads this when it is imported, which is later; one
    that has no other way left ignores it.
    """
    os.environ.setdefault("GRPC_EXPERIMENTS", _WITHOUT_EVENT_ENGINE)


def set_up_allocator() -> None:
    """Configure malloc to use one arena for all threads, and none for large buffers.

    Buffers travel between gRPC's threads, the blob store's and ours. With an arena for
    each thread a 50 MB upload leaves 15 MB of holes behind; with one it leaves 6, and is
    no slower. Left to itself, the allocator takes ever larger buffers from the arena, where
    one that grows is copied: that costs a request of 20 MB a sixth of its memory.
    """
    if sys.platform == "linux":
        # Another allocator than glibc's may lack it.
        mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
        if mallopt is not None:
            mallopt(_M_ARENA_MAX, 1)
            mallopt(_M_MMAP_THRESHOLD, _LARGE)
            mallopt(_M_TRIM_THRESHOLD, _KEPT)


def _return_free_memory() -> None:
    """Return to the system the memory that the start has freed: the allocator keeps 4 MB."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(0)


def _raise_descriptor_limit() -> None:
    """Raise the limit of open files and sockets as far as is allowed, within reason.

    The soft limit of most systems is 1,024, for programs that call select(), and the hard one
    much higher.
    """
    if sys.platform != "win32":
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = _DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, _DESCRIPTORS)
        if soft != resource.RLIM_INFINITY and soft < wanted:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _leave() -> None:
    os._exit(1)
