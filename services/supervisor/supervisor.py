"""Keeps several programs running: starts them, restarts ended ones, and stops them.

The supervisor starts programs by `posix_spawn`, without a fork of its own. It detects that a
program has ended, and that its event loop has stalled; `liveness` describes how. `_wait` is the
only place that waits, for output of the programs, for wake-ups and for the next check of liveness.
"""

import os
import select
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from time import monotonic

from services.supervisor.liveness import CHECKS
from services.supervisor.process import Program, StartError, SupervisedProcess, backoff_s

READY_WITHIN_S = 60.0
# After the drain time: seconds until a program is signalled to hurry, and then until it is killed.
HURRY_AFTER_S = 0.5
MARGIN_S = 3.0


class Supervisor:
    """Keeps programs running until `stop` is called.

    Attributes:
        wakeup: a non-blocking descriptor; a byte written to it makes `run` check its processes. To
            be passed to `signal.set_wakeup_fd`, so that SIGCHLD wakes `run`.
    """

    def __init__(
        self,
        programs: Sequence[Program],
        *,
        environ: Mapping[str, str],
        drain_s: float,
        stall_s: float = 0,
        pass_fds: Sequence[int] = (),
        backoff_s: Callable[[int, bool], float] = backoff_s,
        on_end: Callable[[int], None] = lambda pid: None,
    ) -> None:
        """Create a supervisor; `run` starts the programs.

        Args:
            programs: the programs to run.
            environ: the environment of all programs.
            drain_s: seconds that programs may take to finish after SIGTERM. A program that still
                runs then is sent SIGTERM again, and later SIGKILL.
            stall_s: seconds after which a program is killed if its event loop does not run; 0:
                never.
            pass_fds: descriptors that all programs inherit.
            backoff_s: returns the seconds before a restart, from the number of early deaths in a
                row and whether the last process had been ready.
            on_end: called with the process id of each process that has ended.
        """
        self._parent_pipe, self._parent_end = os.pipe()
        self._woken, self.wakeup = os.pipe()
        for descriptor in (self._woken, self.wakeup):
            os.set_blocking(descriptor, False)
        for descriptor in (self._parent_pipe, *pass_fds):
            os.set_inheritable(descriptor, True)
        self._drain_s = drain_s
        self._check_every_s = stall_s / CHECKS
        self._next_check = monotonic() + self._check_every_s if stall_s else None
        self._stops = 0
        self._reloads = False
        self._processes = [
            SupervisedProcess(
                program,
                environ=environ,
                parent_pipe=self._parent_pipe,
                backoff_s=backoff_s,
                on_end=on_end,
                is_watched=stall_s > 0,
            )
            for program in programs
        ]

    def run(
        self, on_ready: Callable[[str], object], ready_within_s: float = READY_WITHIN_S
    ) -> None:
        """Start all programs, call `on_ready` when all are ready, keep them running until `stop`.

        `on_ready` is called with the first message that a program wrote after `READY`, or "".

        Raises:
            StartError: a program ended before it was first ready, or was not ready in time; all
                programs have been stopped.
        """
        try:
            for process in self._processes:
                process.start()
            self._wait_until_ready(ready_within_s)
            if not self._stops:
                messages = (process.message for process in self._processes)
                on_ready(next(filter(None, messages), ""))
            while not self._stops:
                self._wait(None)
        finally:
            self._end()

    def close(self) -> None:
        """Close the supervisor's descriptors; no other method may be called afterwards."""
        for descriptor in (self._parent_end, self._parent_pipe, self._woken, self.wakeup):
            os.close(descriptor)

    def stop(self) -> None:
        """End all programs; a second call kills them.

        `stop`, `reload` and `wake` may be called by signal handlers and other threads.
        """
        self._stops += 1
        self.wake()

    def reload(self) -> None:
        """Signal every program to reload its settings (SIGHUP)."""
        self._reloads = True
        self.wake()

    def wake(self) -> None:
        """Make `run` check its processes."""
        # BlockingIOError: the pipe is full, which wakes `run` as well.
        with suppress(BlockingIOError):
            os.write(self.wakeup, b"\0")

    def _wait_until_ready(self, within_s: float) -> None:
        deadline = monotonic() + within_s
        while not self._stops:
            late = [each.name for each in self._processes if not each.has_been_ready]
            if not late:
                return
            if monotonic() >= deadline:
                raise StartError(f"{', '.join(late)}: not ready after {within_s:.0f} s")
            self._wait(deadline)

    def _end(self) -> None:
        """End all programs: SIGTERM, SIGTERM again after the drain time, then SIGKILL."""
        for within_s in (self._drain_s + HURRY_AFTER_S, MARGIN_S):
            deadline = monotonic() + within_s
            for process in self._processes:
                process.finish()
            while self._is_any_running() and self._stops < 2 and monotonic() < deadline:
                self._wait(deadline)
            if self._stops >= 2:
                break
        for process in self._processes:
            process.kill()
        while self._is_any_running():
            self._wait(None)

    def _is_any_running(self) -> bool:
        return not all(process.has_ended for process in self._processes)

    def _wait(self, deadline: float | None) -> None:
        """Wait for an event, at most until `deadline`, and handle all pending events."""
        poll = select.poll()
        poll.register(self._woken, select.POLLIN)
        for process in self._processes:
            if process.output is not None:
                poll.register(process.output, select.POLLIN)
        times = [deadline, self._next_check, *(process.restart_at for process in self._processes)]
        due_times = [time for time in times if time is not None]
        # Rounded up, so that the deadline has passed when `poll` returns.
        wait_ms = max(0.0, (min(due_times) - monotonic()) * 1000 + 1) if due_times else None
        poll.poll(wait_ms)
        self._clear_wakeups()
        if self._reloads:
            self._reloads = False
            for process in self._processes:
                process.reload()
        for process in self._processes:
            process.read_output()
            process.reap()
            if process.restart_at is not None and monotonic() >= process.restart_at:
                process.start()
        if self._next_check is not None and (now := monotonic()) >= self._next_check:
            self._next_check = now + self._check_every_s
            for process in self._processes:
                process.check_liveness()

    def _clear_wakeups(self) -> None:
        with suppress(BlockingIOError):
            while os.read(self._woken, 4096):
                pass
