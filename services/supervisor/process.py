"""A supervised program: started, watched, restarted when its process ends, and signalled.

A program is passed the descriptor of a pipe (`--parent-pipe N`) that closes when the supervisor
ends, even if it is killed. When the program accepts requests, it writes a line `READY` to standard
output, optionally with a message for the supervisor. If it cannot serve, it writes `FAILED` and the
reason. Its other output is copied to standard error, where the logs are. If it is watched, it
writes to another pipe (`--beat-pipe N`) while its event loop runs; see `liveness`. A process that
replaces an ended one is told why (`--replaces died` or `stalled`), to count it in its metrics.
"""

import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from time import monotonic

from services.supervisor import liveness
from services.supervisor.liveness import Liveness

READY = b"READY"
FAILED = b"FAILED"
# A program that ran for at least this long before it ended is restarted at once.
STEADY_S = 10.0

_MAX_LINE = 1 << 16
_MAX_READ = 1 << 16
# Maximum seconds before a restart: of a program that cannot start, and of one that had been ready,
# which may serve again as soon as it is restarted.
_MAX_BACKOFF_S, _MAX_BACKOFF_READY_S = 10.0, 1.0
_STALLED = "its event loop had stalled"
# Python ignores these signals; programs start with the system's default handlers.
_DEFAULT_SIGNALS = (signal.SIGPIPE, signal.SIGXFSZ)


class StartError(Exception):
    """Error raised when the gateway cannot start; the text is for operators."""


class Program:
    """A command to keep running.

    Attributes:
        name: name in logs and messages.
        argv: the command, without `--parent-pipe`.
    """

    def __init__(self, name: str, argv: Sequence[str]) -> None:
        self.name = name
        self.argv = argv


def backoff_s(deaths: int, was_ready: bool) -> float:
    """Return the seconds before a restart after `deaths` early deaths in a row.

    The values are 0, 0.2, 0.4 and so on, doubled up to 10, or up to 1 if the last process
    `was_ready`.
    """
    max_backoff_s = _MAX_BACKOFF_READY_S if was_ready else _MAX_BACKOFF_S
    return 0.0 if deaths == 0 else min(0.1 * 2**deaths, max_backoff_s)


class SupervisedProcess:
    """A program and its current process.

    Attributes:
        name: the program's name.
        output: descriptor of the process's output, for polling; None while no process runs.
        restart_at: time of the next start, as `time.monotonic`; None while a process runs, and
            after the last process has ended.
        has_been_ready: whether any of the program's processes was ready.
        message: the message that the program wrote after `READY`.
    """

    def __init__(
        self,
        program: Program,
        *,
        environ: Mapping[str, str],
        parent_pipe: int,
        backoff_s: Callable[[int, bool], float],
        on_end: Callable[[int], None],
        is_watched: bool,
    ) -> None:
        self.name = program.name
        self.output: int | None = None
        self.restart_at: float | None = None
        self.has_been_ready = False
        self.message = ""
        self._argv = [*program.argv, "--parent-pipe", str(parent_pipe)]
        self._environ = environ
        self._backoff_s = backoff_s
        self._on_end = on_end
        self._pid = 0
        self._started_at = 0.0
        self._early_deaths = 0
        self._finishing = False
        self._accepts_requests = False
        self._reload_when_ready = False
        self._failure = ""
        self._line = b""
        self._is_watched = is_watched
        self._liveness: Liveness | None = None
        # Why a process of this program that had been ready ended, until it is replaced.
        self._replaced = ""

    @property
    def has_ended(self) -> bool:
        """Whether no process runs."""
        return not self._pid

    def start(self) -> None:
        """Start a process.

        Raises:
            StartError: the program's first process cannot be started.
        """
        self.restart_at = None
        self._started_at = monotonic()
        self._failure = ""
        self._line = b""
        output, write_end = os.pipe()
        os.set_blocking(output, False)
        beats = Liveness() if self._is_watched else None
        argv = list(self._argv)
        if beats is not None:
            argv += ["--beat-pipe", str(beats.pipe)]
        if self._replaced:
            argv += ["--replaces", self._replaced]
        try:
            self._pid = os.posix_spawn(
                argv[0],
                argv,
                self._environ,
                file_actions=[
                    (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                    (os.POSIX_SPAWN_DUP2, write_end, 1),
                ],
                # Ctrl-C in a terminal signals only the supervisor, which stops the programs.
                setpgroup=0,
                setsigdef=_DEFAULT_SIGNALS,
            )
        except OSError as error:
            os.close(output)
            if beats is not None:
                beats.close()
            self._handle_end(str(error))
        else:
            self.output = output
            self._liveness = beats
        finally:
            os.close(write_end)
            if beats is not None:
                beats.close_pipe()

    def read_output(self) -> None:
        """Handle the available output of the process."""
        while self.output is not None:
            try:
                data = os.read(self.output, _MAX_READ)
            except BlockingIOError:
                return
            if not data:
                self._close_output()
                return
            self._handle_output(data)

    def reap(self) -> None:
        """Handle the end of the process, if it has ended.

        Raises:
            StartError: the program ended before it was ever ready.
        """
        if not self._pid:
            return
        pid, status = os.waitpid(self._pid, os.WNOHANG)
        if not pid:
            return
        self._pid = 0
        self.read_output()
        # A child of the process may still have the other end open.
        self._close_output()
        if self._liveness is not None:
            self._liveness.close()
            self._liveness = None
        self._on_end(pid)
        self._handle_end(_describe(os.waitstatus_to_exitcode(status)))

    def reload(self) -> None:
        """Signal the process to reload its settings, as soon as it is ready."""
        if self._accepts_requests:
            self._signal(signal.SIGHUP)
        else:
            self._reload_when_ready = True

    def finish(self) -> None:
        """Signal the process to end, or to hurry, and do not restart it."""
        self._finishing = True
        self.restart_at = None
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """Kill the process."""
        if self._pid:
            _log("warning", "a program did not end in time and is killed", program=self.name)
            self._signal(signal.SIGKILL)

    def check_liveness(self) -> None:
        """Kill the process if its event loop has stalled; log the stacks of its threads before.

        A process that is not ready, or is ending, has other times to keep.
        """
        if self._liveness is None or not self._accepts_requests or self._finishing:
            return
        match self._liveness.check():
            case liveness.DUMP:
                self._signal(signal.SIGUSR1)
            case liveness.RESUMED:
                self._log_stacks("warning", "the event loop of a program had stalled, and runs on")
            case liveness.KILL:
                self._failure = _STALLED
                self._log_stacks("error", "the event loop of a program has stalled; it is killed")
                self._signal(signal.SIGKILL)

    def _log_stacks(self, level: str, message: str) -> None:
        _log(level, message, program=self.name, pid=self._pid)
        stacks = self._liveness.stacks if self._liveness is not None else ""
        for name, frames in liveness.threads(stacks):
            text = "the stack of a thread, innermost frame first"
            _log(level, text, program=self.name, pid=self._pid, stack_of=name, frames=frames)

    def _handle_end(self, end: str) -> None:
        was_ready, self._accepts_requests = self._accepts_requests, False
        if self._finishing:
            return
        if not self.has_been_ready:
            reason = f"{self.name}: ended before it was ready ({end})"
            raise StartError(self._failure or reason)
        if was_ready:
            self._replaced = "stalled" if self._failure == _STALLED else "died"
        now = monotonic()
        is_early = now - self._started_at < STEADY_S
        self._early_deaths = self._early_deaths + 1 if is_early else 0
        wait_s = self._backoff_s(self._early_deaths, was_ready)
        self.restart_at = now + wait_s
        _log(
            "error",
            "a program ended and will be restarted",
            program=self.name,
            end=self._failure or end,
            wait_s=wait_s,
        )

    def _handle_output(self, data: bytes) -> None:
        *lines, self._line = (self._line + data).split(b"\n")
        if len(self._line) > _MAX_LINE:
            lines, self._line = [*lines, self._line], b""
        for line in lines:
            name, _, encoded_text = line.partition(b" ")
            text = encoded_text.decode(errors="replace")
            if name == READY:
                self._handle_ready(text)
            elif name == FAILED:
                self._failure = text
            else:
                _copy(line.decode(errors="replace"))

    def _handle_ready(self, message: str) -> None:
        self.message = message
        self._replaced = ""
        self.has_been_ready = self._accepts_requests = True
        if self._reload_when_ready:
            self._reload_when_ready = False
            self._signal(signal.SIGHUP)

    def _close_output(self) -> None:
        if self.output is not None:
            os.close(self.output)
            self.output = None

    def _signal(self, number: signal.Signals) -> None:
        # The process id is not reused before the process is reaped.
        if self._pid:
            with suppress(ProcessLookupError):
                os.kill(self._pid, number)


def _copy(line: str) -> None:
    """Copy a line to standard error, which may be a file on a full disk."""
    with suppress(OSError):
        print(line, file=sys.stderr, flush=True)


def _describe(exit_code: int) -> str:
    return f"exit status {exit_code}" if exit_code >= 0 else signal.Signals(-exit_code).name


def _log(level: str, message: str, **extra: object) -> None:
    # Imported when a process dies, which is rare, rather than kept in memory.
    import logging

    if not logging.getLogger().handlers:
        from services.common.process import logs

        logs.configure()
    logging.getLogger(__name__).log(logging.getLevelName(level.upper()), message, extra=extra)
