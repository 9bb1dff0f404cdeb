"""The folder in which the workers of a data folder share their observations, one file each.

A worker holds a lock on its file while it runs, so that the file of a dead worker is recognized.
The file is written in place; a digest lets a reader detect an incomplete write.
"""

import hashlib
import os
from functools import partial
from pathlib import Path
from typing import Self

from gateway.inference.v1.providers_pb2 import Provider, ProviderModel
from services.common import ids
from services.common.settings import SettingsError
from services.common.storage.file_locks import create_locked, open_others, try_lock

FOLDER = "provider_states"
_DIGEST = 16
# Maximum attempts to read a file: it is written in microseconds.
_READINGS = 10
_MAX_BYTES = 4 << 20


class SharedFolder:
    """The files of all workers, including that of this process."""

    def __init__(self, folder: Path, name: str, descriptor: int) -> None:
        self._folder = folder
        self._name = name
        self._descriptor = descriptor
        self._written = b""

    @classmethod
    def enter(cls, data_dir: Path, new_id: ids.IdGenerator = ids.new_id) -> Self:
        """Create and lock a file for this process in a data folder.

        Raises:
            SettingsError: the file cannot be created.
        """
        folder = data_dir / FOLDER
        try:
            return cls(folder, *create_locked(folder, partial(new_id, "")))
        except OSError as error:
            raise SettingsError(f"storage.data_dir: {folder}: {error.strerror}") from error

    def write(self, models: list[ProviderModel]) -> None:
        """Write the observations of this process, unless they are unchanged.

        Raises:
            OSError: the file cannot be written.
        """
        content = Provider(models=models).SerializeToString(deterministic=True)
        if content != self._written:
            os.pwrite(self._descriptor, _digest(content) + content, 0)
            os.ftruncate(self._descriptor, _DIGEST + len(content))
            self._written = content

    def read_others(self) -> list[list[ProviderModel]]:
        """Return the observations of each other worker; delete the files of dead workers.

        Reads files, so it should be called in a thread.
        """
        states = []
        for path, descriptor in open_others(self._folder, self._name):
            if try_lock(descriptor):
                path.unlink(missing_ok=True)
            elif (models := _read(descriptor)) is not None:
                states.append(models)
        return states

    def leave(self) -> None:
        """Delete this process's file."""
        (self._folder / self._name).unlink(missing_ok=True)
        os.close(self._descriptor)


def _read(descriptor: int) -> list[ProviderModel] | None:
    """Return the observations of a worker; None if its file is empty or never complete."""
    for _ in range(_READINGS):
        content = os.pread(descriptor, _MAX_BYTES, 0)
        if content[:_DIGEST] == _digest(content[_DIGEST:]):
            return list(Provider.FromString(content[_DIGEST:]).models)
    return None


def _digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=_DIGEST).digest()
