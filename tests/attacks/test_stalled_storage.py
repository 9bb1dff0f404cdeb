"""PostgreSQL and S3 that accept connections and answer nothing any more.

What needs them ends in bounded time with 503 in the endpoint's shape, everything else goes on, and
all of it works again without a restart.
"""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import aiohttp
import pytest

from services.accounts.repository import AccountRepository
from services.common.settings import Storage
from services.common.storage.database import open_engine
from services.common.storage.migrations.runner import migrate
from tests.attacks.observer import WORKER
from tests.attacks.stalling_proxy import StallingProxy, stalling_proxy
from tests.bench import processes
from tests.databases import postgresql_server
from tests.e2e.gateway import Gateway, gateway
from tests.e2e.users import User
from tests.services.files.running_file_store import Bucket
from tests.waiting import until

NOBODY = 9  # a port on which no provider listens
# Longer than what the gateway waits for a database or a bucket, retries included.
BOUND_S = 150.0
CHATS = 20
HELLO = {"role": "user", "content": "Hello"}
CHAT = {"model": "sandbox/echo", "messages": [HELLO]}
REMEMBERED = {**CHAT, "memory_id": "m"}
STORED = {"model": "sandbox/echo", "input": "Hello", "store": True}


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[StallingProxy, str]]:
    """Run PostgreSQL behind a proxy; give the proxy, and the address of the database there."""
    folder = tmp_path_factory.mktemp("pg")
    with postgresql_server() as server:
        socket_folder = parse_qs(urlsplit(server.url).query)["host"][0]
        name = ".s.PGSQL.5432"
        with stalling_proxy(path=f"{socket_folder}/{name}", at=folder / name) as proxy:
            yield proxy, server.url.replace(socket_folder, str(folder))


@pytest.fixture(scope="module")
def bucket() -> Iterator[tuple[StallingProxy, Bucket]]:
    """Run a bucket behind a proxy."""
    bucket = Bucket()
    try:
        with stalling_proxy(("127.0.0.1", bucket.port)) as proxy:
            yield proxy, bucket
    finally:
        bucket.stop()


@pytest.fixture(scope="module")
def target(
    tmp_path_factory: pytest.TempPathFactory,
    database: tuple[StallingProxy, str],
    bucket: tuple[StallingProxy, Bucket],
) -> Iterator[Gateway]:
    settings = (
        f'[storage]\ndatabase_url = "{database[1]}"\nblob_url = "s3://{bucket[1].name}"\n'
        "[limits]\nidentify_cache_s = 30\n"
    )
    with pytest.MonkeyPatch.context() as patched:
        for name, value in bucket[1].environment().items():
            patched.setenv(name, value)
        patched.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{bucket[0].port}")
        folder: Path = tmp_path_factory.mktemp("target")
        # A gateway makes a key of its own only where nobody shares the database.
        (folder / "var").mkdir(mode=0o700)
        (folder / "var" / "dev.key").write_text(asyncio.run(create_key(database[1])))
        with gateway(folder, NOBODY, settings=settings) as started:
            yield started


async def create_key(database_url: str) -> str:
    """Create the tables and a user; return a key of the user."""
    engine = open_engine(Storage(database_url=database_url))
    try:
        await migrate(engine)
        return await AccountRepository(engine).create_key("tester", plan="enterprise")
    finally:
        await engine.dispose()


class Caller:
    """Asks for what needs storage, and for what does not."""

    def __init__(self, http: aiohttp.ClientSession, target: Gateway) -> None:
        self.user = User(http, target.address, target.key)
        self._http = http
        self._target = target
        self._headers = {"x-api-key": target.key, "compat-version": "2023-06-01"}

    async def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Return the status and the body of an answer."""
        url = self._target.address + path
        async with self._http.request(method, url, json=body, headers=self._headers) as answer:
            return answer.status, await answer.json(content_type=None)

    async def go_on(self) -> None:
        """Assert that what needs no storage is served."""
        for _ in range(CHATS):
            status, body = await self.ask("POST", "/beta/v1/chat/completions", CHAT)
            assert status == 200, body
            async with self._http.get(f"{self._target.address}/healthz") as answer:
                assert answer.status == 200


@pytest.fixture
async def caller(target: Gateway) -> Any:
    timeout = aiohttp.ClientTimeout(total=BOUND_S)
    async with aiohttp.ClientSession(timeout=timeout) as http:
        yield Caller(http, target)


@pytest.mark.soak
async def test_a_database_that_stalls_costs_what_needs_it(
    target: Gateway, caller: Caller, database: tuple[StallingProxy, str]
) -> None:
    proxy, _ = database
    document = await caller.user.create_document()
    session = await caller.user.open_document(document)
    worker = processes.running_module(processes.family(target.process.pid), WORKER)
    await caller.go_on()
    proxy.stall()
    try:
        waiting = asyncio.gather(
            caller.ask("POST", "/beta/v1/chat/completions", REMEMBERED),
            caller.ask("POST", "/beta/v1/responses", STORED),
            caller.ask("GET", "/beta/v1/files"),
            caller.ask("GET", "/beta/v1/memories"),
            caller.user.insert(session, "late"),
        )
        await caller.go_on()
        chat, stored, files, memories, article = await waiting
    finally:
        proxy.resume()
    assert (article.status, article.body["data"]) == (503, {}), article
    for status, body in (chat, stored):
        assert (status, body["error"]["code"]) == (503, "unavailable"), body
    for status, body in (files, memories):
        assert (status, body["type"]) == (503, "error"), body

    async def works() -> bool:
        status, _ = await caller.ask("POST", "/beta/v1/chat/completions", REMEMBERED)
        return status == 200

    await until(works, every_s=0.2)
    assert (await caller.ask("GET", "/beta/v1/files"))[0] == 200
    assert (await caller.user.insert(session, "again")).status == 200
    await caller.go_on()
    assert processes.running_module(processes.family(target.process.pid), WORKER) == worker


@pytest.mark.soak  # its requests end after a minute, which nothing can shorten
async def test_a_bucket_that_stalls_costs_what_needs_it(
    target: Gateway, caller: Caller, bucket: tuple[StallingProxy, Bucket]
) -> None:
    proxy, _ = bucket
    uploaded = await caller.user.upload(b"before")
    assert uploaded.status == 200, uploaded
    proxy.stall()
    try:
        upload = asyncio.create_task(caller.user.upload(b"meanwhile"))
        content = asyncio.create_task(
            caller.ask("GET", f"/beta/v1/files/{uploaded.body['id']}/content")
        )
        await caller.go_on()
        # The database goes on.
        status, body = await caller.ask("POST", "/beta/v1/chat/completions", REMEMBERED)
        assert status == 200, body
        assert (await caller.ask("GET", "/beta/v1/files"))[0] == 200
        refused = await upload
        status, body = await content
    finally:
        proxy.resume()
    assert (refused.status, refused.code) == (503, "storage_unavailable")
    assert (status, body["type"]) == (503, "error"), body

    async def works() -> bool:
        return (await caller.user.upload(b"again")).status == 200

    await until(works, every_s=0.2)
    assert await caller.user.content(uploaded.body["id"]) == b"before"
    await caller.go_on()
    assert "Traceback" not in target.process.output
