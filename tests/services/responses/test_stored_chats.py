"""The rows of stored chat completions, on both databases."""

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.errors.v1 import errors_pb2
from gateway.memory.v1.chats_pb2 import StoredChatCompletion
from services.common.errors import GatewayError
from services.common.storage.owners import stored_bytes
from services.responses.chats.records import ChatLimits
from services.responses.chats.repository import ChatRepository
from services.responses.erasure import ResponseErasure
from tests.manual_clock import ManualClock

ENOUGH = 1 << 20


def chat(name: str, size: int = 10, **metadata: str) -> StoredChatCompletion:
    return StoredChatCompletion(
        id=name, model="m", metadata=metadata, completion=b"x" * size, messages=b"[]"
    )


async def test_bytes_are_charged_and_freed(engine: AsyncEngine, clock: ManualClock) -> None:
    chats = ChatRepository(engine, clock, ChatLimits(60, 2_000))
    await chats.create("ada", ENOUGH, chat("one", a="b"))
    with pytest.raises(GatewayError) as error:
        await chats.create("ada", ENOUGH, chat("one"))
    assert error.value.reason == errors_pb2.REASON_CONFLICT
    await chats.create("bob", ENOUGH, chat("one"))
    used = await stored_bytes(engine, "ada")
    for size, most, reason in (
        (2_000, ENOUGH, errors_pb2.REASON_TOO_LARGE),
        (10, used + 10, errors_pb2.REASON_MEMORY_STORAGE_EXCEEDED),
    ):
        with pytest.raises(GatewayError) as error:
            await chats.create("ada", most, chat("two", size))
        assert error.value.reason == reason
    with pytest.raises(GatewayError):
        await chats.update("ada", used, "one", {"a": "b" * 500})
    assert await stored_bytes(engine, "ada") == used
    assert (await chats.update("ada", ENOUGH, "one", {"a": "bcd"})).metadata == {"a": "bcd"}
    assert await stored_bytes(engine, "ada") == used + 2
    await chats.delete("ada", "one")
    assert await stored_bytes(engine, "ada") == 0 < await stored_bytes(engine, "bob")


async def test_chats_expire_and_are_erased(engine: AsyncEngine, clock: ManualClock) -> None:
    chats = ChatRepository(engine, clock, ChatLimits(60, 2_000))
    for owner in ("ada", "bob"):
        for number in range(3):
            await chats.create(owner, ENOUGH, chat(f"chat_{number}"))
    kinds: dict[str, int] = {}

    async def count(connection: object, kind: str, items: int, size: int = 0) -> None:
        kinds[kind] = kinds.get(kind, 0) + items

    erase = ResponseErasure(engine)
    while await erase("ada", count):
        pass
    assert kinds["chat_completions"] == 3
    assert await stored_bytes(engine, "ada") == 0
    clock.now_s += 61
    page, has_more = await chats.page("bob", 10, "", descending=False, model="", metadata={})
    assert (list(page), has_more) == ([], False)
    assert await chats.delete_expired(2) == 2
    assert await chats.delete_expired(2) == 1
    assert await stored_bytes(engine, "bob") == 0
