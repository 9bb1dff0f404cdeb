"""Registry of the processes that share a data folder, which detects dead processes.

Each process holds a lock on a file of its own. The system releases the lock when the process ends,
however it ends. Other processes on the same machine therefore know at once that the resources of a
dead process are free, and need not wait for its leases to expire.
"""

import os
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Self

from services.common import ids
from services.common.settings import SettingsError
from services.common.storage.file_locks import create_locked, open_others, try_lock

FOLDER = "instances"


class ProcessRegistry:
    """The registry entry of this process.

    Attributes:
        name: name of this process, never reused.
        on_death: callbacks that are called with the name of each dead process, at least once.
    """

    def __init__(self, folder: Path, name: str, descriptor: int) -> None:
        self._folder = folder
        self._descriptor = descriptor
        self.name = name
        self.on_death: list[Callable[[str], Awaitable[None]]] = []

    @classmethod
    def register(cls, data_dir: Path, new_id: ids.IdGenerator = ids.new_id) -> Self:
        """Register this process as alive, and return its entry.

        Raises:
            SettingsError: its file cannot be created.
        """
        folder = data_dir / FOLDER
        try:
            return cls(folder, *create_locked(folder, partial(new_id, "")))
        except OSError as error:
            raise SettingsError(f"storage.data_dir: {folder}: {error.strerror}") from error

    async def reap_dead(self) -> None:
        """Call `on_death` for every dead process, and remove its entry.

        Raises:
            GatewayError: raised by a callback; the next call reports that process again.
        """
        for path, descriptor in open_others(self._folder, self.name):
            if try_lock(descriptor):
                for call in self.on_death:
                    await call(path.name)
                path.unlink(missing_ok=True)

    def unregister(self) -> None:
        """Remove the entry of this process, which must no longer hold anything."""
        (self._folder / self.name).unlink(missing_ok=True)
        os.close(self._descriptor)
