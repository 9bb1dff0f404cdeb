"""A worker process as seen by the pool: starts it, sends conversions and ends it."""

import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from typing import Any

from services.common.process.frames import read_frame, write_frame
from services.media.conversion.limits import MAX_RESULT, MAX_TEXT, WorkerLimits

# Environment variables passed to a worker. Providers' API keys are withheld, as a malicious
# document may take over a library.
_ENVIRONMENT = (
    *("PATH", "PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "LD_LIBRARY_PATH", "HOME", "TMPDIR"),
    *("LANG", "LC_ALL", "LC_CTYPE", "TZ"),
)
_ALLOCATOR = {
    "MALLOC_ARENA_MAX": "2",
    "MALLOC_MMAP_THRESHOLD_": str(1 << 20),
    "MALLOC_TRIM_THRESHOLD_": str(4 << 20),
}
# Disables telemetry of onnxruntime; must be set before it is imported.
_PRIVATE = {"ORT_DISABLE_TELEMETRY": "1"}
# -P keeps the working directory out of the module search path.
_COMMAND = (sys.executable, "-P", "-m", "services.media.conversion.process")


class WorkerDiedError(Exception):
    """Error raised when a worker exited instead of replying.

    Attributes:
        status: its exit status, negative for a signal.
    """

    def __init__(self, status: int) -> None:
        super().__init__(f"exit status {status}")
        self.status = status


class Worker:
    """A process that converts one medium at a time.

    All methods block, except for `kill`.

    Attributes:
        uses: number of conversions started.
    """

    # Conversions after which a worker is replaced, as libraries leak and fragment memory.
    max_uses = 50

    def __init__(self, bounds: WorkerLimits) -> None:
        """Create a worker; its process is not started yet."""
        self.uses = 0
        self._bounds = bounds
        self._lock = threading.Lock()
        self._killed = False
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """Process id; None before the process is started."""
        return None if self._process is None else self._process.pid

    @property
    def is_alive(self) -> bool:
        """Whether the process is running."""
        return self._process is not None and self._process.poll() is None

    def convert(self, head: Mapping[str, Any], content: bytes) -> tuple[Any, bytes]:
        """Send a conversion; return the reply frame.

        Raises:
            WorkerDiedError: the process has exited, or was killed after an unreadable reply.
        """
        self.uses += 1
        process = self._started()
        assert process.stdin is not None and process.stdout is not None
        try:
            write_frame(process.stdin, head, content)
            return read_frame(process.stdout, max_head=MAX_TEXT, max_content=MAX_RESULT)
        except (EOFError, OSError, ValueError):
            self.kill()
            raise WorkerDiedError(self.end()) from None

    def kill(self) -> None:
        """Kill the process at once, or keep it from being started."""
        with self._lock:
            self._killed = True
            # A process that exited by itself keeps its exit status, which shows the cause.
            if self._process is not None and self._process.poll() is None:
                self._process.kill()

    def end(self) -> int:
        """End an idle process; return its exit status."""
        process = self._process
        if process is None:
            return 0
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except OSError:
                    pass  # bytes that the process no longer reads
        return process.wait()

    def _started(self) -> "subprocess.Popen[bytes]":
        with self._lock:
            if self._killed:
                raise WorkerDiedError(0)
            if self._process is None:
                bounds = self._bounds
                self._process = subprocess.Popen(
                    (*_COMMAND, str(bounds.seconds), str(bounds.memory), str(bounds.threads)),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    env=_environment(bounds.threads),
                )
            return self._process


def _environment(threads: int) -> dict[str, str]:
    environment = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
    computing = {"OMP_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": "1"}
    return {**environment, **_ALLOCATOR, **_PRIVATE, **computing}
