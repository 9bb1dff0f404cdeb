"""Registry of the processes that share a data folder, which finds those that died.

Each process holds a lock on a file of its own for as long as it lives; the system lets go
of it when the process ends, however it ends. So others of the same machine know at once
that whatever a dead process held is free, and need not wait for a lease to end.
"""

import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Self

from services.common import ids
from services.common.file_locks import is_at, try_lock
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
            folder.mkdir(mode=0o700, exist_ok=True)
            while True:
                name = new_id("")
                descriptor = os.open(folder / name, os.O_RDWR | os.O_CREAT, 0o600)
                # Another process may have taken the file for a dead one's before it was locked.
                if try_lock(descriptor) and is_at(descriptor, folder / name):
                    return cls(folder, name, descriptor)
                os.close(descriptor)
        except OSError as error:
            raise SettingsError(f"storage.data_dir: {folder}: {error.strerror}") from error

    async def bury(self) -> None:
        """Call `on_death` for every process that has died, and forget those.

        Raises:
            GatewayError: what a callback raises; that process is found dead again.
        """
        for name in os.listdir(self._folder):
            if name == self.name:
                continue
            with suppress(FileNotFoundError):
                descriptor = os.open(self._folder / name, os.O_RDWR)
                try:
                    if try_lock(descriptor):
                        for call in self.on_death:
                            await call(name)
                        os.unlink(self._folder / name)
                finally:
                    os.close(descriptor)

    def leave(self) -> None:
        """End this process's time, when it holds nothing any more."""
        with suppress(FileNotFoundError):
            os.unlink(self._folder / self.name)
        os.close(self._descriptor)
