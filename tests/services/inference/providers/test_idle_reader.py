import asyncio
import weakref
from collections.abc import Callable

import pytest

from services.common import http
from services.common.process.timer_wheel import TimerWheel
from services.inference.providers.idle_reader import IdleTimeoutReader
from services.inference.stream.patience import Patience
from tests.services.inference.fallback.virtual_time import in_no_time


class Body:
    """An answer whose next bytes come after so many seconds each."""

    def __init__(self, *delays: float, ends: Callable[[], bytes]) -> None:
        self.broken_off = 0
        self._delays = list(delays)
        self._ends = ends
        self._broken = asyncio.Event()

    async def read(self) -> bytes:
        try:
            async with asyncio.timeout(self._delays.pop(0)):
                await self._broken.wait()
        except TimeoutError:
            return b"x"
        return self._ends()

    def close(self) -> None:
        self.broken_off += 1
        self._broken.set()


def cut_off() -> bytes:
    raise http.CutOffError


@in_no_time
async def test_an_answer_may_take_long_where_something_comes_in_time() -> None:
    body = Body(*[9] * 20, ends=cut_off)
    reader = IdleTimeoutReader(body, Patience(10, 60), TimerWheel())
    for _ in range(20):
        assert await reader.read() == b"x"
        reader.progress()
    reader.stop()
    assert body.broken_off == 0
    gone = weakref.ref(reader)
    del reader
    assert gone() is None


@pytest.mark.parametrize("ends", [cut_off, bytes])
@in_no_time
async def test_an_answer_that_stays_silent_is_broken_off(ends: Callable[[], bytes]) -> None:
    body = Body(9, 99, ends=ends)
    reader = IdleTimeoutReader(body, Patience(10, 60), TimerWheel())
    await reader.read()
    with pytest.raises(TimeoutError):
        await reader.read()
    reader.stop()
    assert (round(asyncio.get_running_loop().time(), 3), body.broken_off) == (19, 1)


@in_no_time
async def test_time_between_reads_is_no_silence() -> None:
    body = Body(9, 9, ends=cut_off)
    reader = IdleTimeoutReader(body, Patience(10, 60), TimerWheel())
    await reader.read()
    await asyncio.sleep(1000)
    assert await reader.read() == b"x"
    reader.stop()


@in_no_time
async def test_an_answer_without_content_is_broken_off() -> None:
    body = Body(*[9] * 99, ends=cut_off)
    reader = IdleTimeoutReader(body, Patience(10, 60), TimerWheel())
    for _ in range(3):
        await reader.read()
        reader.progress()
    await asyncio.sleep(1000)  # time between reads does not count
    with pytest.raises(TimeoutError):
        while True:
            await reader.read()
    reader.stop()
    assert (round(asyncio.get_running_loop().time() - 1027, 3), body.broken_off) == (60, 1)


@in_no_time
async def test_an_end_in_time_is_what_it_is() -> None:
    body = Body(9, 9, ends=cut_off)
    reader = IdleTimeoutReader(body, Patience(10, 60), TimerWheel())
    asyncio.get_running_loop().call_later(1, body._broken.set)
    with pytest.raises(http.CutOffError):
        await reader.read()
    reader.stop()
