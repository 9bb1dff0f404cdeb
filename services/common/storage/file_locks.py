"""Locks on open files, which the system releases when their process ends, however it ends.

A process that holds a lock on its own file in a shared folder is therefore known to be alive.
"""

import fcntl
import os
from collections.abc import Callable, Iterator
from pathlib import Path


def create_locked(folder: Path, new_name: Callable[[], str]) -> tuple[str, int]:
    """Create and lock a file; its folder is created if it is missing.

    Returns:
        The name of the file, and its descriptor.
    """
    folder.mkdir(mode=0o700, exist_ok=True)
    while True:
        name = new_name()
        descriptor = os.open(folder / name, os.O_RDWR | os.O_CREAT, 0o600)
        # Before it was locked, another process may have removed the file as that of a dead process.
        if try_lock(descriptor) and is_at(descriptor, folder / name):
            return name, descriptor
        os.close(descriptor)


def open_others(folder: Path, own: str) -> Iterator[tuple[Path, int]]:
    """Yield the other files of a folder, each with a descriptor that is then closed."""
    for name in sorted(os.listdir(folder)):
        if name == own:
            continue
        try:
            descriptor = os.open(folder / name, os.O_RDWR)
        except FileNotFoundError:
            continue
        try:
            yield folder / name, descriptor
        finally:
            os.close(descriptor)


def try_lock(descriptor: int) -> bool:
    """Lock an open file for this process; return False if another one holds it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_at(descriptor: int, path: Path) -> bool:
    """Return whether a path still refers to the open file."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False
