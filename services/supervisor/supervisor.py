"""Keeps programs running: starts them, starts again what dies, ends them.

A program is told the descriptor of a pipe (`--parent-pipe N`) that closes when this
process is gone, however it went, and says `READY` on a line of its standard output when
requests can come, with a word for the parent where it has one, or `FAILED` and why they cannot.
Whatever else it writes there goes to standard error, with the logs.

What this module cannot do: know what the programs are for (`gateway.py` does), or
notice one that hangs. It starts programs by exec and imports no gRPC, so that nothing is
forked from under gRPC's threads, and stays small.
"""

import asyncio
import contextlib
import io
import logging
import os
import signal
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

READY = b"READY"
FAILED = b"FAILED"
# A program that ran this long before it died starts again at once.
STEADY_S = 10.0
# What programs get beyond the time to drain before they are told to hurry, and after that.
HURRY_AFTER_S = 0.5
MARGIN_S = 3.0
READY_WITHIN_S = 60.0

_LONGEST_LINE = 1 << 16
_LONGEST_BACKOFF_S = 10.0

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Program:
    """Something to keep running.

    Attributes:
        name: for logs and messages.
        argv: the command, without `--parent-pipe`.
    """

    name: str
    argv: Sequence[str]


class StartError(Exception):
    """A program did not come up; the text says why, or which and how it ended."""


def backoff_s(deaths: int) -> float:
    """Return the seconds to wait after so many early deaths in a row: 0, 0.2, doubled up to 10."""
    return 0.0 if deaths == 0 else min(0.1 * 2**deaths, _LONGEST_BACKOFF_S)


class Supervisor:
    """Keeps programs running until told to stop."""

    def __init__(
        self,
        programs: Sequence[Program],
        *,
        environ: Mapping[str, str],
        drain_s: float,
        pass_fds: Sequence[int] = (),
        backoff_s: Callable[[int], float] = backoff_s,
        on_end: Callable[[int], None] = lambda pid: None,
    ) -> None:
        """Take what to run.

        Args:
            programs: what to run.
            environ: the environment of all of them.
            drain_s: seconds that they have to end what they have in hand. A program that still
                runs then gets SIGTERM again, and SIGKILL after that.
            pass_fds: descriptors that all of them inherit.
            backoff_s: seconds to wait before a start, by the early deaths in a row so far.
            on_end: called with the process id of each program that has ended.
        """
        self._read_end, self._write_end = os.pipe()
        self._drain_s = drain_s
        self._stopping = asyncio.Event()
        self._hurry = asyncio.Event()
        self._kept = [
            _Kept(program, environ, self._read_end, pass_fds, backoff_s, on_end)
            for program in programs
        ]

    async def run(
        self, on_ready: Callable[[str], None], ready_within_s: float = READY_WITHIN_S
    ) -> None:
        """Start everything, call `on_ready` once all are ready, keep them until `stop`.

        It is called with what the first program that had a word for it said with `READY`.

        Raises:
            StartError: a program ended before it was ready for the first time, or was not
                ready in time; everything has ended by then.
        """
        keeping = [asyncio.create_task(each.keep()) for each in self._kept]
        stopping = asyncio.create_task(self._stopping.wait())
        try:
            await self._until_ready(keeping, stopping, ready_within_s)
            if not stopping.done():
                on_ready(next(filter(None, (kept.word for kept in self._kept)), ""))
            # No keeper returns before it is told to: one that does has a fault to show.
            await _first([stopping, *keeping])
        finally:
            stopping.cancel()
            await self._end()
            await asyncio.gather(*keeping, return_exceptions=True)
            os.close(self._write_end)
            os.close(self._read_end)

    def stop(self) -> None:
        """End everything; called again, end it at once."""
        if self._stopping.is_set():
            self._hurry.set()
        self._stopping.set()

    def reload(self) -> None:
        """Signal every program to read its settings again (SIGHUP)."""
        for kept in self._kept:
            kept.reload()

    async def _until_ready(
        self,
        keeping: Sequence["asyncio.Task[None]"],
        stopping: "asyncio.Task[bool]",
        within_s: float,
    ) -> None:
        ready = asyncio.create_task(_all_set(each.ready for each in self._kept))
        try:
            if not await _first([ready, stopping, *keeping], within_s):
                late = ", ".join(
                    each.program.name for each in self._kept if not each.ready.is_set()
                )
                raise StartError(f"{late}: not ready after {within_s:.0f} s")
        finally:
            ready.cancel()
            await asyncio.wait([ready])

    async def _end(self) -> None:
        self._finish()
        ended = asyncio.create_task(_all_set(kept.ended for kept in self._kept))
        hurry = asyncio.create_task(self._hurry.wait())
        if not await _first([ended, hurry], self._drain_s + HURRY_AFTER_S):
            self._finish()
            await _first([ended, hurry], MARGIN_S)
        for kept in self._kept:
            kept.kill()
        await ended
        hurry.cancel()

    def _finish(self) -> None:
        for kept in self._kept:
            kept.finish()


class _Kept:
    """One program, started again whenever it ends, until it is told to finish."""

    def __init__(
        self,
        program: Program,
        environ: Mapping[str, str],
        parent_pipe: int,
        pass_fds: Sequence[int],
        backoff_s: Callable[[int], float],
        on_end: Callable[[int], None],
    ) -> None:
        self.program = program
        self.ready = asyncio.Event()
        self.ended = asyncio.Event()
        self.word = ""
        self._reason = ""
        self._environ = environ
        self._parent_pipe = parent_pipe
        self._pass_fds = (parent_pipe, *pass_fds)
        self._backoff_s = backoff_s
        self._on_end = on_end
        self._finishing = asyncio.Event()
        self._process: asyncio.subprocess.Process | None = None
        self._takes_requests = False
        self._reload_when_ready = False

    async def keep(self) -> None:
        """Run the program again and again; return once it has ended after `finish`.

        Raises:
            StartError: it ended before it was ever ready, or could not be started.
        """
        try:
            await self._keep()
        finally:
            self.ended.set()

    async def _keep(self) -> None:
        clock = asyncio.get_running_loop().time
        deaths = 0
        while not self._finishing.is_set():
            began = clock()
            self._reason = ""
            try:
                status = await self._run_once()
                end = self._reason or _told(status)
            except OSError as error:
                end = str(error)
            if self._finishing.is_set():
                return
            if not self.ready.is_set():
                if self._reason:
                    raise StartError(self._reason)
                raise StartError(f"{self.program.name}: ended before it was ready ({end})")
            deaths = 0 if clock() - began >= STEADY_S else deaths + 1
            wait_s = self._backoff_s(deaths)
            log.error(
                "a program ended and is started again",
                extra={"program": self.program.name, "end": end, "wait_s": wait_s},
            )
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._finishing.wait(), wait_s)

    async def _run_once(self) -> int:
        """Run the program to its end; return its exit status, negative for a signal."""
        output, transport = await self._open_output()
        try:
            process = await asyncio.create_subprocess_exec(
                *self.program.argv,
                "--parent-pipe",
                str(self._parent_pipe),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                env=self._environ,
                pass_fds=self._pass_fds,
                # A Ctrl-C in the terminal is for this process, which ends the others.
                process_group=0,
            )
        except OSError:
            transport.close()
            raise
        finally:
            os.close(output)
        self._process = process
        if self._finishing.is_set():
            self._signal(signal.SIGTERM)
        status = await process.wait()
        self._process = None
        self._takes_requests = False
        transport.close()
        self._on_end(process.pid)
        return status

    async def _open_output(self) -> tuple[int, asyncio.BaseTransport]:
        # Not a pipe of asyncio's: that one would wait for whatever the program leaves behind.
        read_end, write_end = os.pipe()
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: _Output(self._is_ready, self._has_failed), io.FileIO(read_end)
        )
        return write_end, transport

    def _is_ready(self, word: str) -> None:
        self.word = word
        self.ready.set()
        self._takes_requests = True
        if self._reload_when_ready:
            self._reload_when_ready = False
            self._signal(signal.SIGHUP)

    def _has_failed(self, reason: str) -> None:
        self._reason = reason

    def reload(self) -> None:
        """Signal the program to read its settings again, as soon as it can take the signal."""
        if self._takes_requests:
            self._signal(signal.SIGHUP)
        else:
            self._reload_when_ready = True

    def finish(self) -> None:
        """Signal the program to end, or to hurry, and do not start it again."""
        self._finishing.set()
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """End the program at once if it still runs."""
        if self._process is not None:
            log.warning("a program took too long to end", extra={"program": self.program.name})
            self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(number)


class _Output(asyncio.Protocol):
    """Hears READY and FAILED in what a program writes, and passes the rest to standard error."""

    def __init__(self, on_ready: Callable[[str], None], on_failed: Callable[[str], None]) -> None:
        self._heard = {READY: on_ready, FAILED: on_failed}
        self._begun = b""

    def data_received(self, data: bytes) -> None:
        *lines, self._begun = (self._begun + data).split(b"\n")
        if len(self._begun) > _LONGEST_LINE:
            lines, self._begun = [*lines, self._begun], b""
        for line in lines:
            name, _, said = line.partition(b" ")
            if name in self._heard:
                self._heard[name](said.decode(errors="replace"))
            else:
                sys.stderr.write(line.decode(errors="replace") + "\n")
        sys.stderr.flush()


async def _first(tasks: Sequence["asyncio.Task[Any]"], within_s: float | None = None) -> bool:
    """Wait until one of the tasks is done, and raise what it raised; return whether one is."""
    done, _ = await asyncio.wait(tasks, timeout=within_s, return_when=asyncio.FIRST_COMPLETED)
    for task in done:
        task.result()
    return bool(done)


async def _all_set(events: Iterable[asyncio.Event]) -> None:
    for event in events:
        await event.wait()


def _told(status: int) -> str:
    return f"exit status {status}" if status >= 0 else signal.Signals(-status).name
