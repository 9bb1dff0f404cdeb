"""The journal of usage: files of lines that survive the process that wrote them.

A process appends to one file at a time, and holds a lock on each of its files, which the operating
system releases when the process ends for any reason. A file without a lock is taken over by the
first process that finds it. A written line survives the process, but a power failure may lose lines
that have not reached the disk.

Where possible, the file is mapped into memory, so that a line costs no system call. The blocks are
allocated beforehand, so that a full disk raises an error: writing to a mapping without blocks ends
the process by a signal. File systems that do not overwrite allocated blocks are not mapped. A file
that is being written ends with NUL bytes, which no line contains.
"""

import errno
import logging
import mmap
import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

from orjson import OPT_APPEND_NEWLINE, dumps

from services.common.process.metrics import Counter
from services.common.storage.file_locks import create_locked, is_at, try_lock
from services.common.storage.file_systems import overwrites_in_place
from services.inference.usage.lines import SEPARATOR

FOLDER = "usage"
# Versions that cannot read plain lines ignore these files; theirs are `.journal`.
SUFFIX = ".lines"
SUFFIXES = (SUFFIX, ".journal")
# Bytes read from a file at a time, in some 0.1 milliseconds.
_CHUNK = 64 << 10
# Lines made into records before other tasks run, in some 30 microseconds.
_LINES_AT_ONCE = 20
# Bytes allocated and mapped at a time, in some 0.1 milliseconds.
_EXTENT = 256 << 10
# Maximum lines held in memory while the journal cannot be written.
_MAX_HELD = 10_000
# Maximum heads of plain lines whose JSON is cached.
_KEPT_HEADS = 1_000

log = logging.getLogger(__name__)


def chunks_of(lines: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    """Yield lines in groups of the same size as `JournalFile.lines`."""
    for start in range(0, len(lines), _LINES_AT_ONCE):
        yield lines[start : start + _LINES_AT_ONCE]


class _Writer(Protocol):
    """Appends to a file."""

    def append(self, line: bytes) -> None:
        """Append a line, completely or not at all.

        Raises:
            OSError: the line was not written.
        """

    def close(self) -> None:
        """End the file after the last line; its descriptor stays open."""


class _CallingWriter:
    """A writer with one system call per line.

    Args:
        descriptor: the descriptor of an empty file.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._size = 0

    def append(self, line: bytes) -> None:
        """Write a line; see `_Writer`."""
        written_bytes = os.pwrite(self._descriptor, line, self._size)
        if written_bytes < len(line):
            # The disk is full. Remove the part that was written, before the next line.
            os.ftruncate(self._descriptor, self._size)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._size += written_bytes

    def close(self) -> None:
        """Do nothing: the file ends with its last line."""


class _MappingWriter:
    """A writer to a memory-mapped file.

    Args:
        descriptor: the descriptor of an empty file.

    Raises:
        OSError: the file cannot be mapped, or the disk is full.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._size = 0
        os.posix_fallocate(descriptor, 0, _EXTENT)
        self._mapped = _EXTENT
        self._memory = mmap.mmap(descriptor, _EXTENT)

    def append(self, line: bytes) -> None:
        """Write a line; see `_Writer`."""
        start = self._size
        end = start + len(line)
        if end > self._mapped:
            self._extend(end)
        # The line feed last: a process that is killed before leaves no complete line.
        self._memory[start : end - 1] = line[:-1]
        self._memory[end - 1] = line[-1]
        self._size = end

    def _extend(self, needed: int) -> None:
        mapped = -(-needed // _EXTENT) * _EXTENT
        os.posix_fallocate(self._descriptor, self._mapped, mapped - self._mapped)
        # Not every system can resize a mapping.
        longer = mmap.mmap(self._descriptor, mapped)
        self._memory.close()
        self._memory, self._mapped = longer, mapped

    def close(self) -> None:
        """Unmap the file, and truncate it after the last line."""
        self._memory.close()
        os.ftruncate(self._descriptor, self._size)


def _writer(descriptor: int) -> _Writer:
    """Return the writer that the system supports for an empty file."""
    if not overwrites_in_place(descriptor):
        return _CallingWriter(descriptor)
    try:
        return _MappingWriter(descriptor)
    except (AttributeError, OSError):
        # Not every system can allocate blocks, and not every file system supports mappings. If the
        # disk is full, the first line raises the same error.
        os.ftruncate(descriptor, 0)
        return _CallingWriter(descriptor)


class JournalFile:
    """A closed file of a journal, locked by this process until it is removed or released.

    Attributes:
        name: the name of the file, never used twice.
    """

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor
        self.name = path.stem

    def lines(self) -> Iterator[Sequence[bytes]]:
        """Yield the lines in groups, without an unfinished last line and NUL bytes."""
        position, incomplete_line = 0, b""
        while chunk := os.pread(self._descriptor, _CHUNK, position):
            position += len(chunk)
            *complete_lines, incomplete_line = (incomplete_line + chunk).split(b"\n")
            yield from chunks_of(complete_lines)

    def remove(self) -> None:
        """Delete the file; its lines have been recorded."""
        self._path.unlink(missing_ok=True)
        os.close(self._descriptor)

    def release(self) -> None:
        """Unlock the file, to be taken over by another process."""
        os.close(self._descriptor)


class Journal:
    """The journal of this process.

    Args:
        data_dir: the data folder.
        name: the name of this process, never used again.
        max_bytes: maximum bytes of all its files together.
    """

    def __init__(self, data_dir: Path, name: str, max_bytes: int) -> None:
        self._folder = data_dir / FOLDER
        self._name = name
        self._max_bytes = max_bytes
        self._number = 0
        self._current: JournalFile | None = None
        self._writer: _Writer | None = None  # of the current file
        self._size = 0  # of the current file
        self._closed: deque[tuple[JournalFile, int]] = deque()  # with their sizes
        self._closed_size = 0

    @property
    def closed_bytes(self) -> int:
        """Bytes of the closed files."""
        return self._closed_size

    def append(self, line: bytes) -> bool:
        """Write a line, which must end with a line feed; return False if the journal is full.

        Raises:
            OSError: the file cannot be written.
        """
        size = len(line)
        if self._size + self._closed_size + size > self._max_bytes:
            return False
        if self._writer is None:
            self._current, self._writer = self._open()
        self._writer.append(line)
        self._size += size
        return True

    def rotate(self) -> None:
        """Close the current file, if there is one."""
        if self._current is not None and self._writer is not None:
            self._writer.close()
            self._closed.append((self._current, self._size))
            self._closed_size += self._size
            self._current, self._writer, self._size = None, None, 0

    def oldest(self) -> JournalFile | None:
        """Return the oldest closed file, or None."""
        return self._closed[0][0] if self._closed else None

    def remove_oldest(self) -> None:
        """Delete the oldest closed file; its lines have been recorded."""
        file, size = self._closed.popleft()
        self._closed_size -= size
        file.remove()

    def abandoned(self) -> Iterator[JournalFile]:
        """Yield the files of processes that have ended; each must be removed or released."""
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
        """Release all files, to be taken over by other processes or after the next start."""
        self.rotate()
        for file, _ in self._closed:
            file.release()
        self._closed.clear()

    def _open(self) -> tuple[JournalFile, _Writer]:
        name, descriptor = create_locked(self._folder, self._next_name)
        return JournalFile(self._folder / name, descriptor), _writer(descriptor)

    def _next_name(self) -> str:
        self._number += 1
        return f"{self._name}-{self._number}{SUFFIX}"


class LineWriter:
    """Writes lines to a journal; holds them in memory while that fails.

    Args:
        journal: the journal.
        now: returns Unix seconds; also an attribute.
        dropped: counts lines that are lost.
    """

    def __init__(self, journal: Journal, now: Callable[[], float], dropped: Counter) -> None:
        self.now = now
        self._journal = journal
        self._dropped = dropped
        self._held: list[bytes] = []
        self._heads: dict[tuple[Any, ...], bytes] = {}
        self._is_disk_failing = False

    def write(self, values: tuple[Any, ...], head: tuple[Any, ...] = ()) -> None:
        """Write a line, or hold it; never raises.

        Args:
            values: the values of a whole line (`UsedLine`), or of the second part of a plain one.
            head: the values of the first part of a plain line.
        """
        try:
            before = (self._heads.get(head) or self._head(head)) if head else b""
            content = before + dumps(values, option=OPT_APPEND_NEWLINE)
            if self._journal.append(content):
                return
        except TypeError as error:
            log.error("a usage record cannot be serialized", extra={"error": str(error)})
        except OSError as error:
            if not self._is_disk_failing:
                log.error("the usage journal cannot be written", extra={"error": str(error)})
            self._is_disk_failing = True
            if len(self._held) < _MAX_HELD:
                self._held.append(content)
                return
        self._dropped.inc()

    def take_held(self) -> list[bytes]:
        """Return and remove the lines that are held in memory; the disk may work again."""
        self._is_disk_failing = False
        held_lines, self._held = self._held, []
        return held_lines

    def put_back(self, held_lines: Sequence[bytes]) -> None:
        """Hold lines again, before those that were written meanwhile."""
        self._held = [*held_lines, *self._held][:_MAX_HELD]

    def _head(self, head: tuple[Any, ...]) -> bytes:
        """Return the JSON of the first part of plain lines, and cache it."""
        if len(self._heads) == _KEPT_HEADS:
            self._heads.clear()
        json = self._heads[head] = dumps(head) + SEPARATOR
        return json
