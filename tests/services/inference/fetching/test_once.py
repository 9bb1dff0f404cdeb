import asyncio

import pytest

from services.common.errors import GatewayError, invalid
from services.inference.fetching.fetched import Fetched
from services.inference.fetching.once import OncePerRequest


class Slow:
    """Fetches when it is let."""

    def __init__(self) -> None:
        self.urls: list[str] = []
        self.cancelled: list[str] = []
        self.go = asyncio.Event()
        self.begun = asyncio.Event()

    async def fetch(self, url: str, *, at_most: int) -> Fetched:
        self.urls.append(url)
        self.begun.set()
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.cancelled.append(url)
            raise
        if url == "bad":
            raise invalid("", "not public")
        return Fetched(url, url.encode(), "", "", "")


async def test_a_url_is_fetched_once_for_all_steps() -> None:
    slow = Slow()
    slow.go.set()
    async with OncePerRequest(slow, 100) as once:
        found = await asyncio.gather(*(once.fetch("a", at_most=9) for _ in range(3)))
        found.append(await once.fetch("a", at_most=9))
        await once.fetch("b", at_most=9)
    assert slow.urls == ["a", "b"]
    assert len(set(map(id, found))) == 1


async def test_a_failure_is_told_again_and_not_tried_again() -> None:
    slow = Slow()
    slow.go.set()
    async with OncePerRequest(slow, 100) as once:
        for _ in range(2):
            with pytest.raises(GatewayError, match="not public"):
                await once.fetch("bad", at_most=9)
    assert slow.urls == ["bad"]


async def test_a_step_that_ends_does_not_end_its_fetch() -> None:
    slow = Slow()
    async with OncePerRequest(slow, 100) as once:
        first = asyncio.create_task(once.fetch("a", at_most=9))
        await slow.begun.wait()
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        slow.go.set()
        assert (await once.fetch("a", at_most=9)).content == b"a"
    assert slow.urls == ["a"]


async def test_the_end_of_the_request_ends_its_fetches() -> None:
    slow = Slow()
    async with OncePerRequest(slow, 100) as once:
        waiting = asyncio.create_task(once.fetch("a", at_most=9))
        await slow.begun.wait()
    assert slow.cancelled == ["a"]
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_all_urls_of_a_request_together_are_bounded() -> None:
    slow = Slow()
    slow.go.set()
    async with OncePerRequest(slow, 5) as once:
        await once.fetch("aaa", at_most=9)
        with pytest.raises(GatewayError) as caught:
            await once.fetch("bbb", at_most=9)
    assert caught.value.limit == "limits.max_body"
