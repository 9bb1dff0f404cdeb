"""Writes that are completed even if their callers leave."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

_T = TypeVar("_T")


class DetachedWrites:
    """The writes of one process that are in progress."""

    def __init__(self) -> None:
        self._running: set[asyncio.Task[Any]] = set()

    async def complete(self, write: Coroutine[Any, Any, _T]) -> _T:
        """Run a write and return its result; cancelling the caller does not stop it."""
        task = asyncio.create_task(write)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return await asyncio.shield(task)

    async def finish(self) -> None:
        """Wait for the writes in progress."""
        await asyncio.gather(*self._running, return_exceptions=True)
