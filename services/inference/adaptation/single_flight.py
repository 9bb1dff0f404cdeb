"""Deduplicate and parallelize asynchronous work."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Sequence
from typing import Any, TypeVar

from services.common.errors import GatewayError

T = TypeVar("T")


class SingleFlight:
    """Results by key, each computed once.

    The first caller computes the result and concurrent callers wait for it. If the first caller is
    cancelled or fails, the next one computes it.
    """

    def __init__(self) -> None:
        self._results: dict[Hashable, Any] = {}
        self._locks: dict[Hashable, asyncio.Lock] = {}

    async def get(self, key: Hashable, make: Callable[[], Awaitable[T]]) -> T:
        """Return the result under a key, calling `make` if there is none."""
        async with self._locks.setdefault(key, asyncio.Lock()):
            if key not in self._results:
                self._results[key] = await make()
            result: T = self._results[key]
            return result


async def all_of(work: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """Return the results of awaitables in order; a failure cancels the others.

    Raises:
        GatewayError: the error of the first failed one in order.
    """
    tasks: list[asyncio.Task[T]] = []
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one) for one in work]
    except* GatewayError:
        pass
    failed = next((error for task in tasks if (error := _failure(task))), None)
    if failed is not None:
        raise failed
    return [task.result() for task in tasks]


def _failure(task: "asyncio.Task[Any]") -> BaseException | None:
    return None if task.cancelled() else task.exception()
