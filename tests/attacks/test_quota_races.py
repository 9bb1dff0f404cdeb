"""Hundreds of requests at once that each fit into what is left of a plan, and together do not."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Iterator, Sequence

import aiohttp
import pytest
import pytest_asyncio
from sqlalchemy import func, select

from services.accounts.repository import AccountRepository
from services.common.settings import Storage
from services.common.storage.database import open_engine, reading
from services.common.storage.owners import owners
from tests.databases import PostgreSQL
from tests.databases import postgresql as postgresql
from tests.e2e.gateway import Gateway, gateway
from tests.e2e.users import Answer, User

pytestmark = pytest.mark.asyncio(loop_scope="module")

NOBODY = 9  # a port on which no provider listens
AT_ONCE = 200
FILES = 100_000
DOCUMENTS = 7
EDITS = 2 << 20
MEMORIES = 6
MEMORY = 1 << 20
TEXT = "x" * 20_000
PLAN = "personal_free"
SETTINGS = f"""
# The longest: on a busy machine a process loses a shorter one, and a turn fails.
[memory]
lock_lease_s = 30

[articles.quota]
{PLAN} = {EDITS}

[articles.documents]
{PLAN} = {DOCUMENTS}

[memory.quota]
{PLAN} = {MEMORIES}

[memory.storage]
{PLAN} = {MEMORY}

[limits.storage]
{PLAN} = {FILES}
"""
# Beside the quota, callers are told to come back where too many want the same at once.
_LATER = {429, 503}


class Target:
    """A gateway with two workers.

    Attributes:
        gateway: the gateway.
        storage: its database.
    """

    def __init__(self, gateway: Gateway, storage: Storage) -> None:
        self.gateway = gateway
        self.storage = storage


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def raced(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Target]:
    """Run a gateway with two workers on either database."""
    folder = tmp_path_factory.mktemp("raced")
    url = ""
    if request.param == "postgresql":
        server: PostgreSQL = request.getfixturevalue("postgresql")
        asyncio.run(server.execute("CREATE DATABASE raced"))
        url = server.named("raced")
    settings = f'{SETTINGS}\n[storage]\ndatabase_url = "{url}"\n'
    with gateway(folder, NOBODY, workers=2, settings=settings) as started:
        yield Target(started, Storage(data_dir=started.data_dir, database_url=url))


@pytest_asyncio.fixture(loop_scope="module")
async def user(request: pytest.FixtureRequest, raced: Target) -> AsyncIterator[User]:
    """Return a user of a small plan, of the test."""
    engine = open_engine(raced.storage)
    try:
        key = await AccountRepository(engine).create_key(request.function.__name__, plan=PLAN)
    finally:
        await engine.dispose()
    # A connection for each request, so that both workers get some.
    connector = aiohttp.TCPConnector(limit=0, force_close=True)
    async with aiohttp.ClientSession(connector=connector) as http:
        yield User(http, raced.gateway.address, key)


async def race(calls: Sequence[Awaitable[Answer]], refusal: tuple[int, object]) -> int:
    """Make calls at once; return how many succeeded. Some must have been refused."""
    answers = await asyncio.gather(*calls)
    outcomes = {(answer.status, answer.code) for answer in answers if answer.status not in _LATER}
    assert refusal in outcomes, outcomes
    assert {status for status, _ in outcomes - {refusal}} <= {200}, outcomes
    return sum(answer.status == 200 for answer in answers)


async def test_uploads_at_once_fit_into_the_quota(user: User) -> None:
    content = b"x" * 3_000
    stored = await race(
        [user.upload(content) for _ in range(AT_ONCE)], (403, "storage_quota_exceeded")
    )
    assert stored == FILES // len(content)
    listed = (await user.files()).body["data"]
    assert sum(file["bytes"] for file in listed) <= FILES


async def test_documents_at_once_fit_into_their_count(user: User) -> None:
    made = await race(
        [user.article("doc/create", group=0, name="") for _ in range(AT_ONCE)], (403, 40303)
    )
    assert made == DOCUMENTS


async def test_edits_at_once_fit_into_the_quota(user: User) -> None:
    documents = [await user.create_document() for _ in range(DOCUMENTS)]
    sessions = [await user.open_document(document) for document in documents]
    await race(
        [user.insert(sessions[number % DOCUMENTS], TEXT) for number in range(AT_ONCE)],
        (403, 40303),
    )
    stored = [text for session in sessions for text in await user.read(session)]
    # Their operations, their inverses and snapshots count too.
    assert 10 * len(TEXT) < sum(map(len, stored)) <= EDITS


async def test_memories_at_once_fit_into_their_count(user: User) -> None:
    made = await race(
        [user.chat("Hi", memory_id=f"memory-{number}") for number in range(AT_ONCE)],
        (403, "memory_quota_exceeded"),
    )
    assert made == MEMORIES


@pytest.mark.thorough(one_in=2)
async def test_turns_and_responses_at_once_fit_into_the_quota(user: User, raced: Target) -> None:
    conversations = [await user.create_conversation() for _ in range(MEMORIES)]
    ids = [f"memory-{number}" for number in range(MEMORIES)]
    calls: list[Awaitable[Answer]] = []
    # Alternately, so that none of them uses up the quota before the others begin.
    for number in range(AT_ONCE):
        calls.append(user.chat(TEXT, memory_id=ids[number % MEMORIES]))
        calls.append(user.response(TEXT))
        calls.append(user.add_item(conversations[number % MEMORIES], TEXT))
    stored = await race(calls, (403, "memory_storage_exceeded"))
    # Each of them holds the text at least once.
    assert 10 * len(TEXT) < stored * len(TEXT) <= MEMORY
    engine = open_engine(raced.storage)
    try:
        async with reading(engine) as connection:
            counted = await connection.scalar(select(func.max(owners.c.size_bytes)))
    finally:
        await engine.dispose()
    assert stored * len(TEXT) <= counted <= MEMORY
