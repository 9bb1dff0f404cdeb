"""Waiting for what no event tells of: another process, or code that sets none for a test."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")


async def until(
    holds: Callable[[], T | Awaitable[T]], *, within_s: float = 60.0, every_s: float = 0.005
) -> T:
    """Ask over and over until the answer is true in Python's sense, and give it.

    Raises:
        TimeoutError: it is not within that time.
    """
    async with asyncio.timeout(within_s):
        while True:
            answer_or_awaitable = holds()
            answer = (
                await answer_or_awaitable
                if inspect.isawaitable(answer_or_awaitable)
                else answer_or_awaitable
            )
            if answer:
                return answer
            await asyncio.sleep(every_s)
