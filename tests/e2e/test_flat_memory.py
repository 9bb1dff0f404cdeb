"""A million requests of every kind, well and ill, leave no more memory than some did."""

import asyncio
import random
import string
from collections.abc import AsyncIterator, Coroutine, Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.bench import load, processes, wire
from tests.e2e.gateway import Gateway, gateway
from tests.e2e.processes import PYTHON, Running

REQUESTS = 1_000_000
WARM_UP = 100_000
# What the allocator does with its holes; a leak of 20 bytes a request is more.
MOST_GROWTH_MB = 16
SLICE_S = 5.0
SHOWN_OF_LOG = 4000  # characters, when the gateway answers wrong
MALFORMED = {"messages": [{"role": "nobody", "content": "Hello"}]}
DIALECTS: tuple[wire.Dialect, ...] = ("openai", "anthropic")
LETTERS = string.ascii_letters + string.digits + "-_"


class Mix:
    """Requests of every kind, at once.

    Args:
        at: the gateway.
        chance: draws the keys and names that are wrong.
    """

    def __init__(self, at: Gateway, chance: random.Random) -> None:
        self._at = at
        self._chance = chance
        self.sent = 0

    async def send(self, seconds: float) -> None:
        """Send for so long."""
        async with asyncio.TaskGroup() as group:
            sending = [group.create_task(one) for one in self._all(seconds)]
        self.sent += sum(task.result() for task in sending)

    def _all(self, seconds: float) -> Iterator[Coroutine[None, None, int]]:
        key, port = self._at.key, self._at.port

        async def drive(request: load.Request, connections: int = 1, **how: int) -> int:
            driven = await load.drive(
                port, request, connections=connections, seconds=seconds, **how
            )
            return driven.count

        for caller, upstream in wire.PAIRS:
            yield drive(wire.request(caller, f"{upstream}/bench", key), 6)
            streamed = wire.request(caller, f"{upstream}/bench", key, stream=True)
            yield drive(streamed, text_pieces=wire.pieces(upstream))
        for dialect in DIALECTS:
            request = partial(wire.request, dialect)
            yield drive(lambda request=request: request(f"openai/{self._word()}", key))
            yield drive(lambda request=request: request(self._word(), key), status=404)
            yield drive(lambda request=request: request("bench", self._wrong_key()), status=401)
            yield drive(request("openai/bench", key, fields=MALFORMED), status=400)
            yield load.leave(port, request("openai/bench", key), seconds=seconds)
            paced = request("anthropic/bench-paced", key, stream=True)
            yield load.leave(port, paced, seconds=seconds, after=wire.MARK)

    def _wrong_key(self) -> str:
        return "gw-" + "".join(self._chance.choices(LETTERS, k=43))

    def _word(self) -> str:
        # Nobody's names begin like this.
        return "w-" + "".join(self._chance.choices(LETTERS, k=12))


async def curve(folder: Path, requests: int, every: int) -> AsyncIterator[dict[str, float]]:
    """Send so many requests; give the memory of each process, in MB, after `every` so many."""
    with Running([PYTHON, "-m", "tests.bench.upstream"]) as upstream:
        port = int(upstream.wait_for(r"on port (\d+)")[1])
        with gateway(folder, port) as at:
            pids = processes.of_modules(processes.family(at.process.pid), ["services.worker"])
            mix = Mix(at, random.Random(5))
            for number in range(every, requests + 1, every):
                while mix.sent < number:
                    try:
                        await mix.send(SLICE_S)
                    except* load.WrongAnswerError:
                        print(at.process.output[-SHOWN_OF_LOG:])
                        raise
                yield {name: processes.memory([pid]).rss for name, pid in pids.items()}


@pytest.mark.soak
async def test_a_million_requests_leave_memory_flat(tmp_path: Path) -> None:
    points = [point async for point in curve(tmp_path, REQUESTS, WARM_UP)]
    for name, first in points[0].items():
        assert points[-1][name] - first <= MOST_GROWTH_MB, points
