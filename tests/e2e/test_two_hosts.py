"""Two hosts behind a real Envoy, over one PostgreSQL and one bucket; one of them is killed.

Each host is a gateway with processes and a data folder of its own.
"""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import pytest

from tests.bench import processes
from tests.databases import postgresql_server
from tests.e2e.gateway import envoy_alone
from tests.e2e.processes import Running, command, free_port
from tests.e2e.users import Answer, User
from tests.services.files.running_file_store import Bucket
from tests.waiting import until

CALLERS = 6
SOON_S = 5.0
RETRIABLE = {429, 502, 503, 504}


@dataclass
class Cluster:
    """Two hosts and the Envoy in front of them."""

    hosts: list[Running]
    urls: list[str]
    url: str
    key: str

    def kill(self) -> None:
        """Kill every process of the first host."""
        family = processes.family(self.hosts[0].pid)
        for pid in family:
            os.kill(pid, signal.SIGKILL)


@contextmanager
def cluster(folder: Path) -> Iterator[Cluster]:
    bucket = Bucket()
    with ExitStack() as stack:
        database = stack.enter_context(postgresql_server())
        ports = [free_port(), free_port()]
        config = folder / "gateway.toml"
        facades = ", ".join(f'"127.0.0.1:{port}"' for port in ports)
        config.write_text(
            f"[discovery]\nenabled = false\n[envoy]\nfacades = [{facades}]\n"
            f'[storage]\nblob_url = "s3://{bucket.name}"\n'
        )
        common = {
            **bucket.environment(),
            "GATEWAY_CONFIG": str(config),
            "GATEWAY_DATABASE_URL": database.url,
            "GATEWAY_METRICS_PORT": "0",
            "GATEWAY_HOST": "127.0.0.1",
            "GATEWAY_GRPC": "",
        }
        create = [command("gateway"), "keys", "create", "--user", "ada", "--plan", "enterprise"]
        with Running(create, environ=common, folder=folder) as created:
            key = created.wait_for(r"^(gw-\S+)$")[1]
        hosts = []
        for port in ports:
            own = {"GATEWAY_PORT": str(port), "GATEWAY_DATA_DIR": str(folder / f"{port}")}
            up = Running(
                [command("gateway"), "up", "--workers", "1"], environ=common | own, folder=folder
            )
            hosts.append(stack.enter_context(up))
        for host in hosts:
            host.wait_for("The gateway listens on")
        envoy = stack.enter_context(envoy_alone(common))
        url = envoy.wait_for(r"envoy listens on (\S+)")[1]
        yield Cluster(hosts, [f"http://127.0.0.1:{port}" for port in ports], url, key)


@pytest.fixture
async def two_hosts(tmp_path: Path) -> AsyncIterator[Cluster]:
    starting = cluster(tmp_path)
    yield await asyncio.to_thread(starting.__enter__)
    await asyncio.to_thread(starting.__exit__, None, None, None)


@dataclass
class Caller:
    """Someone who stores, edits and asks through Envoy, over and over."""

    name: str
    user: User
    session: str
    files: dict[str, bytes] = field(default_factory=dict)
    edits: list[str] = field(default_factory=list)
    failures: list[Answer] = field(default_factory=list)

    async def run(self, ending: asyncio.Event) -> None:
        number = 0
        while not ending.is_set():
            number += 1
            await self._store(f"{self.name} {number}")

    async def _store(self, text: str) -> None:
        uploaded = await self._served(self.user.upload(text.encode()))
        if uploaded.status == 200:
            self.files[uploaded.body["id"]] = text.encode()
        edited = await self._served(self.user.insert(self.session, text))
        if edited.status == 200:
            self.edits.append(text)
        await self._served(self.user.chat(text))

    async def _served(self, call: Awaitable[Answer]) -> Answer:
        """Return an answer; after a failure wait as long as it says, as the SDKs do."""
        answer = await call
        if answer.status != 200:
            self.failures.append(answer)
            assert answer.retry_after_s, answer
            await asyncio.sleep(answer.retry_after_s)
        return answer


async def test_what_one_host_stores_the_other_serves(two_hosts: Cluster) -> None:
    async with aiohttp.ClientSession() as http:
        one, other = (User(http, url, two_hosts.key) for url in two_hosts.urls)
        made = await one.upload(b"of the first")
        assert await other.content(made.body["id"]) == b"of the first"
        session = await one.open_document(await one.create_document())
        assert (await one.insert(session, "first")).status == 200
        assert (await other.insert(session, "second")).status == 200
        assert await one.read(session) == ["second", "first"]
        for user in (one, other, one):
            assert (await user.chat("Hello", memory_id="talk")).status == 200
        assert len(await other.turns("talk")) == 3


async def test_a_killed_host_costs_a_caller_one_request_at_most(two_hosts: Cluster) -> None:
    ending = asyncio.Event()
    async with aiohttp.ClientSession() as http:
        callers = []
        for number in range(CALLERS):
            user = User(http, two_hosts.url, two_hosts.key)
            session = await user.open_document(await user.create_document())
            callers.append(Caller(f"caller {number}", user, session))
        running = [asyncio.create_task(caller.run(ending)) for caller in callers]
        goals = dict.fromkeys(range(CALLERS), 3)

        def all_got_further() -> bool:
            assert not any(task.done() for task in running)
            return all(len(callers[one].edits) >= goal for one, goal in goals.items())

        await until(all_got_further, every_s=0.01)
        two_hosts.kill()
        killed_at = time.monotonic()
        goals = {one: len(caller.edits) + 3 for one, caller in enumerate(callers)}
        await until(all_got_further, every_s=0.01)
        recovered_s = time.monotonic() - killed_at
        ending.set()
        await asyncio.gather(*running)
        for caller in callers:
            assert len(caller.failures) <= 1, caller.failures
            assert {one.status for one in caller.failures} <= RETRIABLE, caller.failures
            for file_id, content in caller.files.items():
                assert await caller.user.content(file_id) == content
            found = await caller.user.read(caller.session)
            assert [text for text in found[::-1] if text in set(caller.edits)] == caller.edits
        assert recovered_s < SOON_S
