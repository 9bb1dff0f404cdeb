"""Start and end of a process of the gateway.

A child of `gateway up` writes `READY` to standard output when it is ready, or `FAILED` and a reason
if it cannot serve. On SIGTERM or SIGINT it finishes its running work and exits. It exits at once
when the pipe from its parent closes, so that a killed supervisor leaves no processes behind. While
its event loop runs, it writes to another pipe.
"""

import asyncio
import gc
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from typing import NoReturn

from services.common.process import logs, loop_shares
from services.common.process.allocator import (
    keep_returning_free_memory,
    return_free_memory,
    set_up_allocator,
)
from services.common.process.heartbeat import Heartbeat
from services.common.process.huge_pages import request_huge_pages
from services.common.process.metrics import write_counts
from services.common.storage.private import make_files_private

# Objects created during startup live as long as the process, so the garbage collector need not
# traverse them repeatedly; keeping young objects slightly longer is cheap. Traversing this many
# young objects blocks the event loop for half a millisecond, each time so many have accumulated.
_GC_THRESHOLDS = (15_000, 150, 100)
# Time after which a computing thread releases the GIL to a waiting thread. The event loop waits
# for the GIL before each of its steps, and after each system call.
_SWITCH_S = 0.0001
_WITHOUT_EVENT_ENGINE = "-event_engine_client,-event_engine_listener"
# A number of file descriptors that is enough for every process of the gateway.
_DESCRIPTORS = 1 << 16


class Lifecycle:
    """Lifecycle of a process: signals to stop and reload, and messages to the parent.

    Attributes:
        stopping: set by the first signal to stop.
        cancelling: set by the second signal to stop: running calls are to be cancelled.
        on_reload: called on SIGHUP.
    """

    def __init__(self, parent_pipe: int | None, beat_pipe: int | None = None) -> None:
        self.stopping = asyncio.Event()
        self.cancelling = asyncio.Event()
        self.on_reload: Callable[[], None] = lambda: None
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop)
        loop.add_signal_handler(signal.SIGHUP, lambda: self.on_reload())
        if parent_pipe is not None:
            loop.add_reader(parent_pipe, _leave)
        if beat_pipe is not None:
            Heartbeat(loop, beat_pipe)

    def _stop(self) -> None:
        if self.stopping.is_set():
            self.cancelling.set()
        self.stopping.set()

    def ready(self, word: str = "") -> None:
        """Notify the parent that the process accepts requests; `word` is a message for it."""
        gc.collect()
        gc.freeze()
        gc.enable()
        return_free_memory()
        request_huge_pages()
        write_counts()
        print(f"READY {word}".rstrip(), flush=True)

    def fail(self, reason: str) -> NoReturn:
        """Notify the parent of the reason why this process cannot serve, and exit."""
        print(f"FAILED {' '.join(reason.splitlines())}", flush=True)
        raise SystemExit(1)


def run(
    main: Callable[[Lifecycle], Awaitable[None]],
    parent_pipe: int | None,
    beat_pipe: int | None = None,
) -> None:
    """Run `main` on the fastest available event loop until it returns.

    Args:
        main: the program.
        parent_pipe: descriptor of a pipe that closes when the parent ends, or None.
        beat_pipe: descriptor of a pipe to which the event loop's beats are written, or None.
    """

    async def start() -> None:
        loop_shares.install(asyncio.get_running_loop())
        returning = asyncio.create_task(keep_returning_free_memory())
        try:
            await main(Lifecycle(parent_pipe, beat_pipe))
        finally:
            returning.cancel()
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

    gRPC's event engine reads sockets on threads of its own and passes every message on. Without it,
    a single request has half as many thread switches and a tenth less added latency, and an event
    of a stream costs a twelfth less. gRPC reads the variable when it is imported, which happens
    later. gRPC versions without an alternative ignore it.
    """
    os.environ.setdefault("GRPC_EXPERIMENTS", _WITHOUT_EVENT_ENGINE)


def _raise_descriptor_limit() -> None:
    """Raise the soft limit of open files and sockets to `_DESCRIPTORS`, or to the hard limit.

    On most systems the soft limit is 1,024, for programs that call select(), and the hard limit is
    much higher.
    """
    if sys.platform != "win32":
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        soft_limit = _DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, _DESCRIPTORS)
        if soft != resource.RLIM_INFINITY and soft < soft_limit:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft_limit, hard))


def _leave() -> None:
    os._exit(1)
