"""Detects programs whose event loop has stalled, by beats that they write to a pipe.

The pipe is read at regular checks. A program that has not beaten at `CHECKS` of them in a row is
signalled to write its stacks to the pipe, and at the next check it is to be killed. Checks are
counted instead of time: after the supervisor itself was stopped, or its machine was suspended or
overloaded, a late check counts once, and programs have the time of the others to beat.
"""

import os
from collections.abc import Iterator, Sequence

# Number of checks in the time after which a program has stalled.
CHECKS = 10

# As `services.common.process.heartbeat` writes it. Stacks contain no such byte.
_BEAT = b"\0"
_MAX_READ = 1 << 16

# What is to be done with a program.
NOTHING, DUMP, RESUMED, KILL = "nothing", "dump", "resumed", "kill"


class Liveness:
    """The beats of one process.

    Attributes:
        pipe: the descriptor that the process inherits.
        stacks: the stacks that it has written since it was signalled to.
    """

    def __init__(self) -> None:
        self._beats, self.pipe = os.pipe()
        os.set_blocking(self._beats, False)
        os.set_inheritable(self.pipe, True)
        self._silent_checks = 0
        self.stacks = ""

    def close_pipe(self) -> None:
        """Close the descriptor that the process has inherited."""
        os.close(self.pipe)

    def close(self) -> None:
        """Close the other end, once the process has ended."""
        os.close(self._beats)

    def check(self) -> str:
        """Read the beats since the last check; return what is to be done with the process.

        DUMP: it has stalled, and is to be signalled. RESUMED: it beats again after that signal.
        KILL: it does not. NOTHING: it beats, or has not been silent for long enough.
        """
        data = self._read()
        was_silent, self._silent_checks = self._silent_checks, self._silent_checks + 1
        self.stacks = data.replace(_BEAT, b"").decode(errors="replace")
        if _BEAT in data:
            self._silent_checks = 0
            return RESUMED if was_silent >= CHECKS else NOTHING
        if self._silent_checks == CHECKS:
            return DUMP
        return KILL if self._silent_checks == CHECKS + 1 else NOTHING

    def _read(self) -> bytes:
        data = b""
        try:
            while piece := os.read(self._beats, _MAX_READ):
                data += piece
        except BlockingIOError:
            pass
        return data


def threads(stacks: str) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield each thread of stacks that `faulthandler` wrote, with its frames.

    The event loop's thread, which is the oldest, comes first, and of each the innermost frame.
    """
    for part in reversed(stacks.strip().split("\n\n")):
        name, *frames = [line.strip() for line in part.splitlines()] or [""]
        if frames:
            yield name.partition(" (")[0], frames
