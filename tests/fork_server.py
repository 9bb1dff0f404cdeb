"""A process that has imported the gateway, and forks processes which run its commands.

A start takes a sixth of the processor time of an executed one. A forked process has what an
executed one has: an id, a parent (the supervisor is its workers'), environment, working directory,
descriptors, arguments and signals of its own. What it starts itself is forked too, if it is of
`MODULES`. Its memory is shared with the server until it is written: where memory is measured, or
the command itself is what is tested, processes are executed.

`python -m tests.fork_server FD PADDING` serves `tests.forked` over the socket FD. The padding is
room for the arguments of forked processes.
"""

import array
import atexit
import ctypes
import gc
import importlib
import json
import os
import runpy
import selectors
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

# Modules whose processes are forked when a forked process starts them.
MODULES = ("services.supervisor", "services.worker", "services", "facade")
# What a worker, the commands and the processes of tests import, and libraries that some use.
WARM = (
    *("services.worker.worker", "services.cli", "services.supervisor.gateway"),
    *("services.__main__", "facade.__main__", "typer.rich_utils", "logging.config"),
    *("aiosqlite", "sqlalchemy.dialects.sqlite.aiosqlite", "numpy", "obstore", "uvloop"),
)
MAX_REQUEST = 1 << 17
STANDARD = 3

_spawn = os.posix_spawn


def main() -> None:
    """Serve until the other end of the socket is closed."""
    requests = socket.socket(fileno=int(sys.argv[1]))
    requests.set_inheritable(False)
    # Of threads that a library starts, a forked process would have none.
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    _import_gateway()
    assert threading.active_count() == 1
    os.posix_spawn = _spawned  # type: ignore[assignment]  # the parameters that the gateway uses
    os.execv = _executed  # type: ignore[assignment]  # as above
    gc.collect()
    gc.freeze()
    ends: dict[int, tuple[int, socket.socket]] = {}
    with selectors.DefaultSelector() as selector:
        selector.register(requests, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fileobj is requests:
                    received = _received(requests)
                    if received is None:
                        return
                    pid, status = received
                    descriptor = os.pidfd_open(pid)
                    ends[descriptor] = pid, status
                    selector.register(descriptor, selectors.EVENT_READ)
                else:
                    selector.unregister(key.fd)
                    pid, status = ends.pop(key.fd)
                    os.close(key.fd)
                    _, code = os.waitpid(pid, 0)
                    with suppress(OSError), status:
                        status.sendall(f"{os.waitstatus_to_exitcode(code)}\n".encode())


def _import_gateway() -> None:
    from services.common.process import lifetime as process
    from services.worker.imports import import_used_parts

    import_used_parts()
    process._set_up_grpc()
    for name in WARM:
        importlib.import_module(name)


def _received(requests: socket.socket) -> tuple[int, socket.socket] | None:
    """Fork the process that a message asks for; return it, and where its end is to be told."""
    room = socket.CMSG_SPACE((STANDARD + 1) * array.array("i").itemsize)
    message, ancillary, _, _ = requests.recvmsg(MAX_REQUEST, room, socket.MSG_CMSG_CLOEXEC)
    if not message:
        return None
    descriptors = array.array("i")
    for _, _, data in ancillary:
        descriptors.frombytes(data)
    request = json.loads(message)
    pid = os.fork()
    if not pid:
        for number in range(STANDARD):
            os.dup2(descriptors[number], number)
        _become(request["command"], request["environ"], request["folder"])
    for descriptor in descriptors[:STANDARD]:
        os.close(descriptor)
    status = socket.socket(fileno=descriptors[STANDARD])
    status.sendall(f"{pid}\n".encode())
    return pid, status


def _spawned(
    path: str,
    command: Sequence[str],
    environ: Mapping[str, str],
    *,
    file_actions: Iterable[Sequence[Any]] = (),
    setpgroup: int | None = None,
    setsigdef: Iterable[int] = (),
) -> int:
    """Do as `os.posix_spawn` does."""
    if _module(command) not in MODULES:
        grouped = {} if setpgroup is None else {"setpgroup": setpgroup}
        return _spawn(
            path, command, environ, file_actions=file_actions, setsigdef=setsigdef, **grouped
        )
    pid = os.fork()
    if not pid:
        if setpgroup is not None:
            os.setpgid(0, setpgroup)
        for action, descriptor, *arguments in file_actions:
            if action == os.POSIX_SPAWN_OPEN:
                opened = os.open(*arguments)
                os.dup2(opened, descriptor)
                os.close(opened)
            else:
                assert action == os.POSIX_SPAWN_DUP2
                os.dup2(descriptor, arguments[0])
        for number in setsigdef:
            signal.signal(number, signal.SIG_DFL)
        _become(command, environ, os.getcwd())
    return pid


def _executed(_path: str, command: Sequence[str]) -> NoReturn:
    """Do as `os.execv` does, in the same process."""
    sys.stdout.flush()
    _become(command, dict(os.environ), os.getcwd())


def _become(command: Sequence[str], environ: Mapping[str, str], folder: str) -> NoReturn:
    """Run a command in this process, as if it had been executed, and end with it."""
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.SIG_DFL)
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_IGN)
    for name in os.listdir("/proc/self/fd"):
        with suppress(OSError):
            if int(name) >= STANDARD and not os.get_inheritable(int(name)):
                os.close(int(name))
    os.environ.clear()
    os.environ.update(environ)
    os.chdir(folder)
    _show_arguments(command)
    _open_standard_streams(is_buffered="PYTHONUNBUFFERED" not in environ)
    # Chosen by the environment when the module is imported.
    from prometheus_client import values

    values.ValueClass = values.get_value_class()  # type: ignore[no-untyped-call]  # no types there
    _end_with(lambda: _run(command))


def _run(command: Sequence[str]) -> None:
    module = _module(command)
    if module:
        sys.argv = ["", *command[command.index("-m") + 2 :]]
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    elif "-c" in command:
        place = command.index("-c")
        sys.argv = [*command[place : place + 1], *command[place + 2 :]]
        exec(command[place + 1], {"__name__": "__main__"})
    else:
        assert Path(command[0]).name == "gateway", command
        from services.cli import main

        sys.argv = list(command)
        main()


def _end_with(run: Callable[[], None]) -> NoReturn:
    """End the process as the interpreter does after a program."""
    code: Any = 0
    try:
        run()
    except SystemExit as end:
        code = end.code
        if isinstance(code, str):
            print(code, file=sys.stderr)
            code = 1
    except BaseException:
        traceback.print_exc()
        code = 1
    threading._shutdown()  # type: ignore[attr-defined]  # as the interpreter does
    atexit._run_exitfuncs()
    with suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code or 0)


def _module(command: Sequence[str]) -> str:
    """Return the module that a command runs, or "" for a program."""
    return command[command.index("-m") + 1] if "-m" in command else ""


def _open_standard_streams(is_buffered: bool) -> None:
    # Those of before may hold text of the parent, and are neither flushed nor closed.
    _BEFORE.extend((sys.stdin, sys.stdout, sys.stderr))
    sys.stdin = open(0, closefd=False)
    sys.stdout = open(1, "w", closefd=False)
    sys.stdout.reconfigure(write_through=not is_buffered, line_buffering=os.isatty(1))
    sys.stderr = open(2, "w", closefd=False, errors="backslashreplace")
    sys.stderr.reconfigure(write_through=True, line_buffering=True)


def _show_arguments(command: Sequence[str]) -> None:
    """Have /proc show the arguments: some tests find processes by them."""
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    start, end = int(fields[45]), int(fields[46])
    shown = "\0".join(command).encode()[: end - start - 1]
    ctypes.memmove(start, shown.ljust(end - start, b"\0"), end - start)


_BEFORE: list[Any] = []

if __name__ == "__main__":
    main()
