"""Confine this process, and become pandoc: `python -m services.media.conversion.pandoc_start`.

The arguments are seconds, bytes of memory, and the command.
"""

import contextlib
import os
import resource
import signal
import sys

from services.media.conversion.confinement import confine

# The kernel kills the process this many seconds after its time limit, in case the gateway is gone.
_GRACE_S = 10
_STYLE = "--csl="


def main() -> None:
    """Run the command, which replaces this process."""
    seconds, memory, program, *arguments = sys.argv[1:]
    with contextlib.suppress(ValueError, OSError):  # not supported on every system
        resource.setrlimit(resource.RLIMIT_AS, (int(memory), int(memory)))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in a terminal is meant for the gateway
    signal.alarm(int(float(seconds)) + _GRACE_S)
    os.nice(10)
    styles = [word.removeprefix(_STYLE) for word in arguments if word.startswith(_STYLE)]
    confine(program, styles)
    os.execve(program, [program, *arguments], {"LANG": "C.UTF-8", "HOME": "/nonexistent"})


if __name__ == "__main__":
    main()
