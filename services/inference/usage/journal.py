"""The journal of usage: files of lines that survive the death of the process that wrote them.

A process appends to one file at a time and holds a lock on each of its own, which the system lets
go of when the process ends, however it ends. A file that nobody has locked is taken over by the
first process that finds it. A line is in the hands of the system once it is written: it outlives
the process, while a power cut may lose what the disk has not got.
"""

import errno
import os
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from services.common.file_locks import is_at, try_lock

FOLDER = "usage"
# Versions that know no plain lines leave these files alone; theirs are `.journal`.
SUFFIX = ".lines"
SUFFIXES = (SUFFIX, ".journal")
# Bytes that are read of a file at a time.
_CHUNK = 256 << 10


class _File(NamedTuple):
    path: Path
    descriptor: int


class JournalFile:
    """A closed file of a journal, locked by this process until it is removed or released.

    Attributes:
        name: of the file; no two ever have the same.
    """

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor
        self.name = path.stem

    def lines(self) -> Iterator[bytes]:
        """Yield the lines; what a write left unfinished at the end is none."""
        position, rest = 0, b""
        while chunk := os.pread(self._descriptor, _CHUNK, position):
            position += len(chunk)
            *whole, rest = (rest + chunk).split(b"\n")
            yield from whole

    def remove(self) -> None:
        """Delete the file, whose lines are recorded."""
        self._path.unlink(missing_ok=True)
        os.close(self._descriptor)

    def release(self) -> None:
        """Leave the file to whoever looks for it next."""
        os.close(self._descriptor)


class Journal:
    """The journal of this process.

    Args:
        data_dir: the data folder.
        name: of this process, never used again.
        max_bytes: of all its files together.
    """

    def __init__(self, data_dir: Path, name: str, max_bytes: int) -> None:
        self._folder = data_dir / FOLDER
        self._name = name
        self._max_bytes = max_bytes
        self._number = 0
        self._current: _File | None = None
        self._size = 0  # of the current file
        self._closed: deque[tuple[JournalFile, int]] = deque()  # with their sizes
        self._closed_size = 0

    @property
    def closed_bytes(self) -> int:
        """Bytes of the closed files."""
        return self._closed_size

    def append(self, line: bytes) -> bool:
        """Write a line, which ends with a line feed; return False where the journal is full.

        Raises:
            OSError: the file cannot be written.
        """
        size = len(line)
        if self._size + self._closed_size + size > self._max_bytes:
            return False
        if self._current is None:
            self._current = self._open()
        written = os.write(self._current.descriptor, line)
        if written < size:
            # The disk is full. The next line must not follow a part of this one.
            os.ftruncate(self._current.descriptor, self._size)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._size += size
        return True

    def rotate(self) -> None:
        """Close the current file, if anything was written to it."""
        if self._current is not None:
            file = JournalFile(*self._current)
            self._closed.append((file, self._size))
            self._closed_size += self._size
            self._current, self._size = None, 0

    def oldest(self) -> JournalFile | None:
        """Return the closed file that was written first, or None."""
        return self._closed[0][0] if self._closed else None

    def remove_oldest(self) -> None:
        """Delete the oldest closed file, whose lines are recorded."""
        file, size = self._closed.popleft()
        self._closed_size -= size
        file.remove()

    def abandoned(self) -> Iterator[JournalFile]:
        """Yield the files of processes that have ended; each is to be removed or released."""
        try:
            names = sorted(os.listdir(self._folder))
        except FileNotFoundError:
            return
        for name in names:
            if not name.endswith(SUFFIXES) or name.startswith(f"{self._name}-"):
                continue
            path = self._folder / name
            try:
                descriptor = os.open(path, os.O_RDWR)
            except FileNotFoundError:
                continue
            if try_lock(descriptor) and is_at(descriptor, path):
                yield JournalFile(path, descriptor)
            else:
                os.close(descriptor)

    def close(self) -> None:
        """Leave all files to other processes, or the next start."""
        self.rotate()
        for file, _ in self._closed:
            file.release()
        self._closed.clear()

    def _open(self) -> _File:
        self._folder.mkdir(mode=0o700, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        while True:
            self._number += 1
            path = self._folder / f"{self._name}-{self._number}{SUFFIX}"
            descriptor = os.open(path, flags, 0o600)
            # Another process may have taken the file for a dead one's before it was locked.
            if try_lock(descriptor) and is_at(descriptor, path):
                return _File(path, descriptor)
            os.close(descriptor)
