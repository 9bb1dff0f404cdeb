"""Exporter to a file of JSON lines, which the processes of a machine share."""

import asyncio
import fcntl
import os
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from services.common.storage.file_locks import is_at
from services.request_log.exporters.base import ExportedRequest, ExportError, RenderEntry
from services.request_log.exporters.json_lines import json_lines


class FileExporter:
    """Appends entries to a file; a full one is renamed, and the oldest are removed.

    Args:
        path: the file. Earlier ones have the suffixes `.1`, `.2`, …, the newest first.
        max_bytes: bytes from which on a file is full; a single longer batch is written whole.
        max_files: maximum number of files, the current one included.
        render: returns the JSON object of an entry.
    """

    name = "file"

    def __init__(self, path: Path, max_bytes: int, max_files: int, render: RenderEntry) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._max_files = max_files
        self._render = render

    async def send(self, batch: Sequence[ExportedRequest]) -> int:
        """Append a batch; see `Exporter`."""
        try:
            await asyncio.to_thread(self._append, batch)
        except OSError as error:
            raise ExportError(f"{self._path}: {error.strerror}") from error
        return 0

    async def close(self) -> None:
        """Do nothing: the file is open only while a batch is written."""

    def _append(self, batch: Sequence[ExportedRequest]) -> None:
        content = json_lines(batch, self._render)
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        while True:
            descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                if not is_at(descriptor, self._path):
                    continue  # another process, or a tool, has renamed it meanwhile
                size = os.fstat(descriptor).st_size
                if size == 0 or size + len(content) <= self._max_bytes:
                    _write_whole(descriptor, content, size)
                    return
                self._rotate()
            finally:
                os.close(descriptor)

    def _rotate(self) -> None:
        """Rename the files, while the current one is locked."""
        names = [self._path, *map(self._earlier, range(1, self._max_files))]
        if len(names) == 1:
            self._path.unlink()
        for newer, older in reversed(list(pairwise(names))):
            if newer.exists():
                os.replace(newer, older)

    def _earlier(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}")


def _write_whole(descriptor: int, content: bytes, size: int) -> None:
    """Append content to a locked file of `size` bytes, or nothing of it.

    Raises:
        OSError: it could not be written, such as on a full disk.
    """
    unwritten = memoryview(content)
    try:
        while unwritten:
            unwritten = unwritten[os.write(descriptor, unwritten) :]
    except OSError:
        os.ftruncate(descriptor, size)
        raise
