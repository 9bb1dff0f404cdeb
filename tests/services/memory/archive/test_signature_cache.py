"""The cache by itself, and in an archive over a real database of either kind."""

from sqlalchemy import insert, update
from sqlalchemy.ext.asyncio import AsyncEngine

from services.common.clock import Clock
from services.common.storage.database import writing
from services.common.storage.owners import ensure_owner
from services.memory.archive.archive import Archive, QuestionVector
from services.memory.archive.index import ArchivedTurn
from services.memory.archive.signature_cache import SignatureCache, Version
from services.memory.storage import tables

OWNER, MEMORY, MODEL = "usr_ada", "mem_a", "hub/embed"
ONE, OTHER, THIRD = ((f"mem_{name}", MODEL, 8) for name in "abc")
FIRST = Version(epoch=0, turns=2)


def test_blocks_are_those_of_the_same_version() -> None:
    cache = SignatureCache(100)
    cache.put(ONE, FIRST, [b"four", b"five."])
    assert cache.get(ONE, FIRST) == [b"four", b"five."]
    assert cache.get(ONE, Version(0, 3)) is None
    assert cache.get(ONE, Version(1, 2)) is None
    assert cache.get((ONE[0], "hub/other", 8), FIRST) is None
    cache.put(ONE, Version(1, 2), [b"new"])
    assert cache.get(ONE, FIRST) is None
    assert cache.get(ONE, Version(1, 2)) == [b"new"]


def test_the_least_recently_used_leave_first() -> None:
    cache = SignatureCache(10)
    cache.put(ONE, FIRST, [b"four"])
    cache.put(OTHER, FIRST, [b"five."])
    cache.get(ONE, FIRST)
    cache.put(THIRD, FIRST, [b"six..."])
    assert cache.get(OTHER, FIRST) is None
    assert cache.get(ONE, FIRST) == [b"four"]
    assert cache.get(THIRD, FIRST) == [b"six..."]


def test_replaced_blocks_take_no_room() -> None:
    cache = SignatureCache(10)
    cache.put(OTHER, FIRST, [b"four"])
    for turns in range(9):
        cache.put(ONE, Version(0, turns), [b"six..."])
    assert cache.get(OTHER, FIRST) == [b"four"]


def test_blocks_larger_than_the_cache_are_not_kept() -> None:
    cache = SignatureCache(10)
    cache.put(ONE, FIRST, [b"four"])
    cache.put(OTHER, FIRST, [b"twelve......"])
    assert cache.get(OTHER, FIRST) is None
    assert cache.get(ONE, FIRST) == [b"four"]


async def test_vectors_of_a_rewound_memory_are_not_used(engine: AsyncEngine) -> None:
    archive, other = (Archive(engine, Clock(now=lambda: 0.0)) for _ in range(2))
    async with writing(engine) as connection:
        await ensure_owner(connection, OWNER)
        memory = {column.name: 0 for column in tables.memories.columns}
        named = {"id": MEMORY, "owner_id": OWNER, "memory_id": "kitchen"}
        await connection.execute(insert(tables.memories).values(memory | named))
    turns = [ArchivedTurn(number, "boat", number) for number in range(1, 301)]
    far = {turn.number: [-1.0, 1.0] for turn in turns}
    async with writing(engine) as connection:
        await archive.add(connection, OWNER, MEMORY, turns)
        await archive.add_vectors(connection, MEMORY, MODEL, far)
    asked = QuestionVector(MODEL, [1.0, -1.0])

    async def nearest() -> int:
        return (await other.search(OWNER, MEMORY, "", before_turn=400, vector=asked))[0].turn

    # Of equals the later comes first; turn 5 is not among those whose whole vectors are compared.
    assert await nearest() == 300
    async with writing(engine) as connection:
        await archive.remove_from(connection, MEMORY, 5)
        await connection.execute(update(tables.memories).values(epoch=1))
        await archive.add(connection, OWNER, MEMORY, turns[4:])
        others = {turn: vector for turn, vector in far.items() if turn > 5}
        await archive.add_vectors(connection, MEMORY, MODEL, others)
    assert await nearest() == 300
    async with writing(engine) as connection:
        await archive.add_vectors(connection, MEMORY, MODEL, {5: [1.0, -1.0]})
    assert await nearest() == 5
    assert await nearest() == 5
