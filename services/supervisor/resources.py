"""Resources of a running gateway: its data folder, a folder for the run, and its ports."""

import fcntl
import os
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

from services.supervisor.process import StartError

LOCK_FILE = "gateway.lock"
RUNTIME_FOLDER = "run"

# The limit for the path of a Unix socket is slightly higher on every system.
_MAX_SOCKET_PATH = 100
_LONGEST_SOCKET = "63.sock"
_DESCRIPTORS = "/proc/self/fd"


@contextmanager
def locked(data_dir: str) -> Iterator[Callable[[str], None]]:
    """Hold the lock of the data folder, which is created if it is missing.

    Yields a function that adds the gateway's address to the lock file, for commands that call it.

    Raises:
        StartError: another process holds it, or the folder cannot be used.
    """
    try:
        os.makedirs(data_dir, mode=0o700, exist_ok=True)
        file = open(os.path.join(data_dir, LOCK_FILE), "a+")
        os.fchmod(file.fileno(), 0o600)
    except OSError as error:
        raise StartError(f"{data_dir}: {error.strerror} (storage.data_dir)") from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            file.seek(0)
            holder = file.readline().strip() or "unknown"
            raise StartError(
                f"{data_dir}: another gateway uses this data folder (process {holder}); stop it, "
                "or set another data folder (GATEWAY_DATA_DIR) and other ports (GATEWAY_PORT, "
                "GATEWAY_METRICS_PORT)"
            ) from error
        # On a full disk, the message of another gateway does not name this process.
        with suppress(OSError):
            file.truncate(0)
            file.write(f"{os.getpid()}\n")
            file.flush()

        def publish(url: str) -> None:
            with suppress(OSError):
                file.write(f"{url}\n")
                file.flush()

        yield publish


@contextmanager
def runtime_folder(data_dir: str) -> Iterator[str]:
    """Create a folder for the files of one run, accessible to this user only; remove it at exit.

    The folder is in the data folder, whose lock must be held. The folder of a killed run is removed
    first.

    Raises:
        StartError: the folder cannot be created.
    """
    folder = os.path.join(data_dir, RUNTIME_FOLDER)
    if os.path.exists(folder):
        _remove(folder)
    try:
        os.mkdir(folder, mode=0o700)
    except OSError as error:
        raise StartError(f"{folder}: {error.strerror} (storage.data_dir)") from error
    try:
        yield folder
    finally:
        _remove(folder)


@contextmanager
def short_path(folder: str) -> Iterator[tuple[str, Sequence[int]]]:
    """Yield a path of a folder that is short enough for sockets, and the descriptors it needs.

    The path of a socket has at most 100 characters. A folder with a longer path is accessed through
    a descriptor, which the programs inherit.

    Raises:
        StartError: the path is too long, and this system has no paths of descriptors.
    """
    folder = os.path.abspath(folder)
    if len(os.path.join(folder, _LONGEST_SOCKET)) <= _MAX_SOCKET_PATH:
        yield folder, ()
    elif not os.path.isdir(_DESCRIPTORS):
        raise StartError(
            f"{folder}: path too long for Unix sockets; choose another storage.data_dir"
        )
    else:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            yield f"{_DESCRIPTORS}/{descriptor}", (descriptor,)
        finally:
            os.close(descriptor)


@contextmanager
def held_port(host: str, port: int, settings: str) -> Iterator[int]:
    """Reserve a port (0: any free port) and yield its number.

    Nothing listens on the port yet. Only processes of the same user can, with SO_REUSEPORT.
    `settings` names the settings that select another port, for the error message.

    Raises:
        StartError: the port is in use, or the address is not one of this machine.
    """
    # Only a socket without SO_REUSEPORT collides with one that has it.
    with _bound(host, port, settings, is_shared=False):
        pass
    with _bound(host, port, settings, is_shared=True) as holder:
        number: int = holder.getsockname()[1]
        yield number


@contextmanager
def _bound(host: str, port: int, settings: str, *, is_shared: bool) -> Iterator[socket.socket]:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as bound:
        # Without it, recently closed connections would make the port appear in use.
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if is_shared:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        try:
            bound.bind((host, port))
        except OSError as error:
            raise StartError(
                f"{host}:{port}: {error.strerror or error}; free the port, or choose another with "
                f"{settings}"
            ) from error
        yield bound


def _remove(folder: str) -> None:
    # Imported on demand, rather than kept in memory as long as the gateway runs.
    import shutil

    shutil.rmtree(folder, ignore_errors=True)
