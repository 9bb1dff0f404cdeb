"""Many requests of all kinds, stored ones too, leave no more memory and descriptors open.

`SOAK_REQUESTS` is how many; 20,000 by default.
"""

import asyncio
import os
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass

import aiohttp
import pytest

from tests.bench import processes
from tests.e2e.users import Answer, User
from tests.hosts.cluster import Administrator, Cluster

REQUESTS = int(os.environ.get("SOAK_REQUESTS", "20000"))
POINTS = 8
CALLERS = 8
LARGEST_GROWTH_MB = 4.0  # for each 10,000 requests, in the second half
MOST_MORE_DESCRIPTORS = 10
WRONG_KEY = "gw-" + "w" * 43


@dataclass(frozen=True)
class Held:
    """Resources of a process.

    Attributes:
        rss_mb: resident memory.
        descriptors: open files and sockets.
    """

    rss_mb: float
    descriptors: int


def held(cluster: Cluster) -> Mapping[int, Held]:
    """Return what each worker holds, by its process id."""
    return {
        pid: Held(processes.memory([pid]).rss, len(os.listdir(f"/proc/{pid}/fd")))
        for host in cluster.hosts
        for pid in host.worker_pids()
    }


class Mix:
    """Callers of everything, who delete what they have stored."""

    def __init__(self, http: aiohttp.ClientSession, users: list[User]) -> None:
        self.count = 0
        self._http = http
        self._users = users

    async def send(self, requests: int) -> None:
        """Send so many requests, or a few more."""
        goal = self.count + requests
        async with asyncio.TaskGroup() as group:
            for user in self._users:
                group.create_task(self._round_on(user, goal))

    async def _round_on(self, user: User, goal: int) -> None:
        while self.count < goal:
            before = self.count
            document = await user.create_document()
            session = await user.open_document(document)
            for number in range(10):
                await self._round(user, session, f"{before} {number}")
            await self._expect(200, user.article("doc/delete", docId=document))
            await self._expect(200, user.delete_memory("talk"))
            self.count += 2

    async def _round(self, user: User, session: str, text: str) -> None:
        made = await user.upload(text.encode() * 1000)
        assert made.status == 200, made
        assert await user.content(made.body["id"]) == text.encode() * 1000
        stored = await user.response(text)
        assert stored.status == 200, stored
        self.count += 3
        await self._expect(200, user.delete_file(made.body["id"]))
        await self._expect(200, user.stored_response(stored.body["id"]))
        await self._expect(200, user.delete_response(stored.body["id"]))
        await self._expect(200, user.insert(session, text))
        await self._expect(200, user.chat(text, memory_id="talk"))
        await self._expect(200, user.chat(text))
        await self._expect(200, user.message(text))
        await self._expect(404, user.chat(text, model=f"nobody-{self.count}"))
        await self._expect(401, user.with_key(WRONG_KEY).chat(text))
        await self._expect(400, user.chat(text, temperature="hot"))
        assert "[DONE]" in await user.streamed_chat(text)
        self.count += 1

    async def _expect(self, status: int, call: Awaitable[Answer]) -> None:
        answer = await call
        assert answer.status == status, answer
        self.count += 1


@pytest.mark.soak
async def test_requests_leave_memory_and_descriptors_flat(
    cluster: Cluster, http: aiohttp.ClientSession, admin: Administrator
) -> None:
    users = [await admin.user(f"soak-{number}") for number in range(CALLERS)]
    mix, points = Mix(http, users), []
    for _ in range(POINTS):
        await mix.send(REQUESTS // POINTS)
        points.append((mix.count, held(cluster)))
    for count, point in points:
        print(count, *(f"{one.rss_mb:.1f} MB, {one.descriptors} open;" for one in point.values()))
    (first, middle), (last, end) = points[POINTS // 2 - 1], points[-1]
    for pid, before in middle.items():
        growth_mb = (end[pid].rss_mb - before.rss_mb) * 10_000 / (last - first)
        assert growth_mb <= LARGEST_GROWTH_MB, points
        assert end[pid].descriptors <= before.descriptors + MOST_MORE_DESCRIPTORS, points
