"""Registry of the processes that share a data folder, which finds those that died.

Each process holds a lock on a file of its own for as long as it lives; the system lets go
of it when the process ends, however it ends. So others of the same machine know at once
that whatever a dead process held is free, and need not wait for a lease to end.
"""

import os
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Self

from services.common import ids
from services.common.file_locks import create_locked, open_others, try_lock
from services.common.settings import SettingsError

FOLDER = "instances"


class Instances:
    """This process among those of a data folder.

    Attributes:
        name: of this process, never used again.
        on_death: what is called with the name of each process that has died, once or more.
    """

    def __init__(self, folder: Path, name: str, descriptor: int) -> None:
        self._folder = folder
        self._descriptor = descriptor
        self.name = name
        self.on_death: list[Callable[[str], Awaitable[None]]] = []

    @classmethod
    def enter(cls, data_dir: Path, new_id: ids.IdGenerator = ids.new_id) -> Self:
        """Return this process, alive from now on to the others.

        Raises:
            SettingsError: its file cannot be made.
        """
        folder = data_dir / FOLDER
        try:
            return cls(folder, *create_locked(folder, partial(new_id, "")))
        except OSError as error:
            raise SettingsError(f"storage.data_dir: {folder}: {error.strerror}") from error

    async def bury(self) -> None:
        """Call `on_death` for every process that has died, and forget those.

        Raises:
            GatewayError: what a callback raises; that process is found dead again.
        """
        for path, descriptor in open_others(self._folder, self.name):
            if try_lock(descriptor):
                for call in self.on_death:
                    await call(path.name)
                path.unlink(missing_ok=True)

    def leave(self) -> None:
        """End this process's time, when it holds nothing any more."""
        (self._folder / self.name).unlink(missing_ok=True)
        os.close(self._descriptor)
