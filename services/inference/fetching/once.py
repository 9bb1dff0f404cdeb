"""One fetch for each URL of a request."""

import asyncio
from typing import Self

from gateway.errors.v1 import errors_pb2
from services.common.errors import GatewayError
from services.inference.fetching.fetched import Fetched, Fetches


class OncePerRequest:
    """Fetches each URL of a request once, whatever comes of it; see `Fetches`.

    All steps of a fallback chain share it. A fetch goes on when the step that began it ends;
    leaving the context ends those that still run.

    Args:
        fetches: what fetches.
        at_most_together: bytes that all URLs of the request may hold.
    """

    def __init__(self, fetches: Fetches, at_most_together: int) -> None:
        self._fetches = fetches
        self._at_most_together = at_most_together
        self._left = at_most_together
        self._tasks: dict[tuple[str, int], asyncio.Task[Fetched]] = {}

    async def __aenter__(self) -> Self:
        """Return itself."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """End the fetches that still run, and forget what was fetched."""
        tasks = list(self._tasks.values())
        self._tasks.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def fetch(self, url: str, *, at_most: int) -> Fetched:
        """Return what an address holds, or held; see `Fetches.fetch`."""
        key = (url, at_most)
        if key not in self._tasks:
            self._tasks[key] = asyncio.create_task(self._fetch(url, at_most))
        return await asyncio.shield(self._tasks[key])

    async def _fetch(self, url: str, at_most: int) -> Fetched:
        fetched = await self._fetches.fetch(url, at_most=at_most)
        self._left -= len(fetched.content)
        if self._left < 0:
            raise GatewayError(
                errors_pb2.REASON_INVALID_REQUEST,
                f"the addresses of the request hold more than {self._at_most_together:,} "
                "bytes together",
                limit="limits.max_body",
            )
        return fetched
