"""Quotas of memories by plan, and their release by deletion: on both engines."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.errors.v1 import errors_pb2
from gateway.memory.v1 import memory_pb2
from services.common.errors import GatewayError
from services.common.storage.database import reading
from services.common.storage.owners import owners
from services.memory.storage.tables import memories, parts
from tests.services.memory.conversations import model, user
from tests.services.memory.memory_server import READ_ONLY, MemoryServer, memory_server, texts

STORAGE = 20_000
WORDS = "x" * 2_000


@pytest.fixture
async def service(engine: AsyncEngine) -> AsyncIterator[MemoryServer]:
    async with memory_server(engine, storage={"personal_free": STORAGE}) as one:
        yield one


async def stored(engine: AsyncEngine) -> int:
    """Return what is charged, which is the same for the owner and for all memories together."""
    async with reading(engine) as connection:
        of_owner = await connection.scalar(select(func.coalesce(func.sum(owners.c.size_bytes), 0)))
        of_memories = await connection.scalar(
            select(func.coalesce(func.sum(memories.c.size_bytes), 0))
        )
    assert of_owner == of_memories
    return int(of_owner)


async def fill(service: MemoryServer) -> tuple[int, GatewayError]:
    """Take turns until one is refused; return how many were taken, and the refusal."""
    for taken in range(100):
        try:
            await service.say(f"{taken} {WORDS}")
        except GatewayError as error:
            return taken, error
    raise AssertionError("nothing was refused")


async def forget(service: MemoryServer, memory_id: str = "diary") -> None:
    await service.call("DeleteMemory", memory_pb2.DeleteMemoryRequest(memory_id=memory_id))


async def test_storage_quota_is_checked_before_the_model_is_asked(
    service: MemoryServer, engine: AsyncEngine
) -> None:
    taken, refusal = await fill(service)
    assert taken == 4
    assert refusal.reason == errors_pb2.REASON_MEMORY_STORAGE_EXCEEDED
    assert "DELETE /v1/memories" in refusal.message
    assert await stored(engine) <= STORAGE
    with pytest.raises(GatewayError):
        async with service.taking(WORDS):
            raise AssertionError("a model was to be asked")


async def test_an_answer_that_does_not_fit_is_not_remembered(
    service: MemoryServer, engine: AsyncEngine
) -> None:
    await service.say("short")
    before = await stored(engine)
    with pytest.raises(GatewayError) as raised:
        await service.say("short", answer=model("x" * STORAGE))
    assert raised.value.reason == errors_pb2.REASON_MEMORY_STORAGE_EXCEEDED
    assert await stored(engine) == before
    context = await service.say("again")
    assert [texts(turn.messages) for turn in context.turns] == [["short", "Noted."]]


async def test_deleting_a_memory_frees_all_it_took_up(
    service: MemoryServer, engine: AsyncEngine
) -> None:
    await service.say("other", memory_id="notes")
    left = await stored(engine)
    await fill(service)
    await forget(service)
    assert await stored(engine) == left
    await service.say(WORDS)
    await forget(service)
    await forget(service, "notes")
    assert await stored(engine) == 0


async def test_rewound_turns_stay_charged_until_deletion(
    service: MemoryServer, engine: AsyncEngine
) -> None:
    await service.say("one")
    before = await stored(engine)
    for number in range(3):
        # A regenerate: the transcript ends where the client's does.
        await service.say(user("one"), model("Noted."), user(f"two {number}"))
    assert await stored(engine) > before
    async with reading(engine) as connection:
        content = await connection.scalar(
            select(func.count()).where(parts.c.superseded_at_ms.is_not(None))
        )
    assert content
    await forget(service)
    assert await stored(engine) == 0


async def test_turns_at_once_do_not_exceed_the_storage_together(
    service: MemoryServer, engine: AsyncEngine
) -> None:
    outcomes = await asyncio.gather(
        *(service.say(WORDS, memory_id=f"m{number}") for number in range(8)),
        return_exceptions=True,
    )
    refused = [one for one in outcomes if isinstance(one, BaseException)]
    assert all(
        isinstance(one, GatewayError) and one.reason == errors_pb2.REASON_MEMORY_STORAGE_EXCEEDED
        for one in refused
    )
    assert len(refused) == 4
    assert await stored(engine) <= STORAGE


async def test_one_who_has_no_room_may_still_read_a_memory(service: MemoryServer) -> None:
    await fill(service)
    async with service.taking("What was said?", mode=READ_ONLY) as holding:
        assert len(holding.context.turns) == 4


async def test_full_disk_refuses_turns_but_not_reads_and_deletes(service: MemoryServer) -> None:
    await service.say("there")
    async with service.taking("while it fills") as holding:
        service.disk.fill()
        with pytest.raises(GatewayError) as raised:
            await holding.commit(model("Noted."))
    assert raised.value.reason == errors_pb2.REASON_STORAGE_FULL
    with pytest.raises(GatewayError) as raised:
        await service.say("more")
    assert raised.value.reason == errors_pb2.REASON_STORAGE_FULL
    async with service.taking("What was said?", mode=READ_ONLY) as reading_only:
        assert len(reading_only.context.turns) == 1
    await forget(service)
    service.disk.clear()
    await service.say("more")
