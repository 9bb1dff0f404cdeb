"""The files in which prometheus_client shares a process's metrics with other processes.

The library maps these files into memory. Writing to a mapping ends the process by SIGBUS if the
disk is full: when the block is not allocated, and on file systems that do not overwrite blocks,
such as btrfs and ZFS, even if it is. `MetricsFile` keeps the values in memory and copies them to
the file by system calls, which report errors. While the disk is full, other processes see earlier
values of this process, or none.
"""

import logging
import os
import struct
from contextlib import suppress

from prometheus_client import values
from prometheus_client.mmap_dict import MmapedDict

log = logging.getLogger(__name__)

# The format of a file: the number of used bytes and four unused ones, then for each value the size
# of its key, the key, padded with spaces to a multiple of eight bytes, the value and its time.
_HEADER = struct.Struct("i4x")
_KEY_SIZE = struct.Struct("i")
_VALUE = struct.Struct("dd")
_ALIGNMENT = 8
# Readers find a file once it has its name. They cannot read an empty one.
_UNNAMED = ".new"


class MetricsFile:
    """The values of one kind of metrics of this process, and their file.

    It has the format and the methods of `prometheus_client.mmap_dict.MmapedDict`.

    Args:
        filename: path of the file; values that it contains are continued.
    """

    def __init__(self, filename: str) -> None:
        self._path = filename
        self._descriptor = -1
        self._content = bytearray(_HEADER.pack(_HEADER.size))
        self._positions: dict[str, int] = {}
        self._written_size = 0
        # The bytes of the content that the file does not have yet.
        self._changed_from, self._changed_to = _HEADER.size, 0
        with suppress(FileNotFoundError):
            entries = MmapedDict.read_all_values_from_file(filename)  # type: ignore[no-untyped-call]  # no types there
            for key, value, timestamp, _ in entries:
                self.write_value(key, value, timestamp)

    def read_value(self, key: str) -> tuple[float, float]:
        """Return a value and its time; both are 0 for a new key."""
        value, timestamp = _VALUE.unpack_from(self._content, self._position(key))
        return value, timestamp

    def write_value(self, key: str, value: float, timestamp: float) -> None:
        """Set a value and its time; `write_files` copies them to the file."""
        position = self._position(key)
        _VALUE.pack_into(self._content, position, value, timestamp)
        self._note_change(position, position + _VALUE.size)

    def close(self) -> None:
        """Close the file; changes that have not been written are lost."""
        _changed.pop(self, None)
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def write(self) -> None:
        """Copy the changed values to the file.

        Raises:
            OSError: some were not written; the next call writes them.
        """
        if self._descriptor < 0:
            flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC
            self._descriptor = os.open(self._path + _UNNAMED, flags, 0o600)
        self._write_range(self._changed_from, self._changed_to)
        size = len(self._content)
        if size > self._written_size:
            # After the values, so that a reader finds all that the header announces.
            self._write_range(0, _HEADER.size)
            if not self._written_size:
                os.rename(self._path + _UNNAMED, self._path)
            self._written_size = size
        self._changed_from, self._changed_to = size, 0

    def _write_range(self, start: int, end: int) -> None:
        while start < end:
            start += os.pwrite(self._descriptor, self._content[start:end], start)

    def _position(self, key: str) -> int:
        """Return the position of a key's value; a missing key is added."""
        position = self._positions.get(key)
        if position is not None:
            return position
        start = len(self._content)
        encoded = key.encode()
        padding = _ALIGNMENT - (_KEY_SIZE.size + len(encoded)) % _ALIGNMENT
        self._content += _KEY_SIZE.pack(len(encoded)) + encoded + b" " * padding
        position = self._positions[key] = len(self._content)
        self._content += _VALUE.pack(0.0, 0.0)
        _HEADER.pack_into(self._content, 0, len(self._content))
        self._note_change(start, len(self._content))
        return position

    def _note_change(self, start: int, end: int) -> None:
        self._changed_from = min(self._changed_from, start)
        self._changed_to = max(self._changed_to, end)
        _changed[self] = None


# Files with changes that have not been written, and whether the last attempt failed.
_changed: dict[MetricsFile, None] = {}
_fails = False


def write_files() -> None:
    """Copy all changed values to their files; those of a file that cannot be written stay noted."""
    global _fails
    failure: OSError | None = None
    for file in list(_changed):
        try:
            file.write()
        except OSError as error:
            failure = error
        else:
            del _changed[file]
    if _fails != (failure is not None):
        _fails = failure is not None
        if failure is not None:
            log.error("the metrics of this process cannot be shared", extra={"error": str(failure)})
        else:
            log.warning("the metrics of this process are shared again")


def use_metrics_files() -> None:
    """Make the library use `MetricsFile`; to be called before the first metric is created."""
    # The library looks the name up when it creates the first value of a kind.
    values.MmapedDict = MetricsFile  # type: ignore[attr-defined, assignment]  # not exported
