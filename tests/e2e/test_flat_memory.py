"""Many requests of every kind, well and ill, leave no more memory, files and threads than some.

`SOAK_REQUESTS` is how many; a million takes about half an hour on two cores of one's own.
"""

import os
import random
from collections.abc import AsyncIterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import pytest

from tests.bench import processes
from tests.e2e.gateway import Gateway, gateway
from tests.e2e.mixed_requests import ADMIN_KEY, Mix
from tests.e2e.processes import PYTHON, Running

REQUESTS = int(os.environ.get("SOAK_REQUESTS", "100000"))
CALLERS = 16
POINTS = 20
# Points of the warm-up, in which caches fill and threads start.
FIRST = POINTS // 5
# What the allocator does with its holes; a leak of 20 bytes a request of a million is more.
MOST_GROWTH_MB = 16
# Between the least of two halves: connections to providers come and go by dozens with the load,
# so two looks differ by more than this; a connection that is never closed shows in every look.
MOST_MORE_DESCRIPTORS = 10
MOST_MORE_THREADS = 4
MOST_REFUSED = 0.001  # of all requests
SHOWN_OF_LOG = 4000  # characters, when the gateway answers wrong
SETTINGS = f"""
[admin]
key_sha256 = "{sha256(ADMIN_KEY.encode()).hexdigest()}"
"""


@dataclass(frozen=True)
class Held:
    """Resources of a worker after a number of requests.

    Attributes:
        requests: how many.
        rss_mb: resident memory.
        pss_mb: the same, with a share of what other processes have mapped too.
        descriptors: open files and sockets.
        threads: of the system.
    """

    requests: int
    rss_mb: float
    pss_mb: float
    descriptors: int
    threads: int


def held(pid: int, requests: int) -> Held:
    """Return what a process holds now."""
    memory = processes.memory([pid])
    return Held(
        requests,
        memory.rss,
        memory.pss,
        len(os.listdir(f"/proc/{pid}/fd")),
        len(os.listdir(f"/proc/{pid}/task")),
    )


async def points(folder: Path) -> AsyncIterator[Held]:
    """Send all requests; yield what the worker holds at equal distances."""
    with Running([PYTHON, "-m", "tests.bench.upstream"]) as upstream:
        port = int(upstream.wait_for(r"on port (\d+)")[1])
        with gateway(folder, port, settings=SETTINGS, is_forked=False) as at:
            worker = processes.of_modules(processes.family(at.process.pid), ["services.worker"])
            mix = Mix(at, CALLERS, random.Random(5))
            for _ in range(POINTS):
                await _send(mix, at, REQUESTS // POINTS)
                yield held(worker["services.worker"], mix.sent)
            mix.close()
            assert mix.refused <= MOST_REFUSED * mix.sent, mix.refused


async def _send(mix: Mix, at: Gateway, requests: int) -> None:
    try:
        await mix.send(requests)
    except* AssertionError:
        print(at.process.output[-SHOWN_OF_LOG:])
        raise


@pytest.mark.soak
async def test_requests_of_every_kind_leave_memory_flat(tmp_path: Path) -> None:
    measured = []
    async for point in points(tmp_path):
        print(point, flush=True)
        measured.append(point)
    warm = measured[FIRST:]
    first, last = warm[0], warm[-1]
    assert last.rss_mb - first.rss_mb <= MOST_GROWTH_MB, measured
    half = len(warm) // 2
    earlier, later = (min(at.descriptors for at in part) for part in (warm[:half], warm[half:]))
    assert later - earlier <= MOST_MORE_DESCRIPTORS, measured
    assert last.threads - first.threads <= MOST_MORE_THREADS, measured
