"""Memories in the database: found, listed, appended to, deleted."""

from dataclasses import replace

import pytest
from sqlalchemy import func, select

from gateway.errors.v1 import errors_pb2
from services.common.errors import GatewayError
from services.common.storage.database import reading
from services.common.storage.owners import owners
from services.memory.storage.messages import message_key
from services.memory.storage.quota import delete_memory
from services.memory.storage.tables import memories, parts
from tests.manual_clock import ManualClock
from tests.services.memory.builders import (
    QUOTA,
    MemoryProcess,
    assistant,
    call,
    count_all,
    numbers,
    result,
    rows_of,
    superseded,
    turn,
    turns,
    user,
)


def reason_of(raised: pytest.ExceptionInfo[GatewayError]) -> errors_pb2.Reason.ValueType:
    return raised.value.reason


async def test_find_does_not_create_a_memory(memory: MemoryProcess) -> None:
    assert await memory.repository.find("ada", "diary") is None
    assert await count_all(memory.engine, memories) == 0
    assert await count_all(memory.engine, owners) == 0


async def test_a_memory_is_there_for_others_from_its_first_turn_on(
    memory: MemoryProcess, clock: ManualClock
) -> None:
    reserved = await memory.reserve("ada", "diary", QUOTA)
    assert await memory.repository.find("ada", "diary") is None
    assert await memory.repository.page("ada", 10) == ([], "")
    assert await memory.repository.current(reserved) == reserved
    clock.now_s += 5
    await memory.add(reserved, turn(1, 0, "hello", "hi"))
    listed = await memory.repository.find("ada", "diary")
    assert listed == replace(reserved, updated_at_ms=clock.now_ms(), turns=1, messages=2)
    assert await memory.repository.page("ada", 10) == ([listed], "")


async def test_every_commit_moves_the_time_of_last_use_and_never_back(
    memory: MemoryProcess, clock: ManualClock
) -> None:
    record = await memory.make()
    clock.now_s += 1
    record = await memory.add(record, turn(2, 2, "more", "yes"))
    assert record.updated_at_ms == clock.now_ms()
    clock.now_s += 1
    record, _ = await memory.rewind(record, 2)
    assert record.updated_at_ms == clock.now_ms()
    clock.now_s -= 60
    record = await memory.add(record, turn(2, 2, "again", "yes"))
    assert record.updated_at_ms == clock.now_ms() + 60_000
    assert await memory.repository.current(record) == record


async def test_one_name_of_two_users_is_two_memories(memory: MemoryProcess) -> None:
    hers, his = await memory.make("diary", "ada"), await memory.make("diary", "bob")
    his = await memory.add(his, turn(2, 2, "secret", "kept"))
    assert hers.id != his.id
    assert await memory.said(hers) == ["hello", "hi"]
    assert await memory.repository.find("eve", "diary") is None
    assert [one.owner_id for one in (await memory.repository.page("ada", 10))[0]] == ["ada"]
    await memory.delete(hers)
    assert await memory.repository.find("bob", "diary") == his


async def test_the_id_of_a_memory_serves_its_owner_alone(memory: MemoryProcess) -> None:
    hers = await memory.make()
    stolen = replace(hers, owner_id="eve")
    assert await memory.repository.current(stolen) is None
    with pytest.raises(GatewayError) as raised:
        await memory.add(stolen, turn(2, 2, "mine", "no"))
    assert reason_of(raised) == errors_pb2.REASON_CONFLICT
    async with memory.locks.write_lock(hers) as lock:
        with pytest.raises(GatewayError) as raised:
            async with memory.locks.committing(replace(lock, record=stolen)):
                raise AssertionError("a foreign memory was opened")
    assert reason_of(raised) == errors_pb2.REASON_CONFLICT
    await memory.release(replace(stolen, turns=0))
    assert await memory.repository.current(hers) == hers


async def test_memories_are_named_to_their_owner_alone(memory: MemoryProcess) -> None:
    hers, his = await memory.make("diary", "ada"), await memory.make("log", "bob")
    asked = {hers.id, his.id, "memory_gone"}
    assert await memory.repository.names("ada", asked) == {hers.id: "diary"}
    assert await memory.repository.names("ada", set()) == {}


async def test_turns_are_read_as_they_were_written(memory: MemoryProcess) -> None:
    record = await memory.make()
    written = [
        turn(2, 2, "look", call("c1"), result("c1"), "done", at_ms=20),
        turn(3, 6, "again", call("c2"), at_ms=30),
    ]
    record = await memory.add(record, *written)
    assert (record.turns, record.messages) == (3, 8)
    assert await memory.repository.turns(record.id, 2, 9) == written
    assert numbers(await memory.repository.turns(record.id, 1, 2)) == [1, 2]
    assert await memory.repository.turns(record.id, 4, 9) == []


async def test_turn_of_message_finds_each_message(memory: MemoryProcess) -> None:
    record = await memory.make()
    record = await memory.add(record, turn(2, 2, "look", call("c1"), result("c1"), "done"))
    turns = [await memory.repository.turn_of_message(record.id, index) for index in range(7)]
    assert [one.number if one else None for one in turns] == [1, 1, 2, 2, 2, 2, None]
    assert turns[5] == turns[2]


async def test_continued_turn_writes_only_new_messages(
    memory: MemoryProcess, clock: ManualClock
) -> None:
    record = await memory.reserve("ada", "diary", QUOTA)
    messages = [user("look around")]
    for step in range(20):
        messages += [call(f"c{step}")]
        record = await memory.add(record, turn(1, 0, *messages, at_ms=7))
        assert (await memory.repository.turns(record.id, 1, 1))[0].open
        messages += [result(f"c{step}")]
    whole = turn(1, 0, *messages, "all seen", at_ms=7)
    record = await memory.add(record, replace(whole, created_at_ms=8))
    assert await memory.repository.turns(record.id, 1, 9) == [whole]
    assert await memory.repository.keys(record.id) == b"".join(map(message_key, whole.messages))
    assert (record.turns, record.messages, record.epoch) == (1, 42, 0)
    async with reading(memory.engine) as connection:
        written = await connection.scalar(select(func.sum(parts.c.messages)))
    assert written == 42


async def test_a_new_user_message_closes_a_turn_without_results(memory: MemoryProcess) -> None:
    record = await memory.reserve("ada", "diary", QUOTA)
    waiting = turn(1, 0, "look", call("c1"), result("c1"), call("c2"))
    record = await memory.add(record, turn(1, 0, "look", call("c1")))
    record = await memory.add(record, waiting)
    closed = replace(waiting, open=False)
    record = await memory.add(record, closed, turn(2, 4, "never mind", "fine"))
    assert (await memory.repository.turns(record.id, 1, 1)) == [closed]
    record, changed = await memory.rewind(record, 4)
    assert (changed, record.turns) == (2, 1)
    assert (await memory.repository.turns(record.id, 1, 2)) == [closed]
    record, changed = await memory.rewind(record, 2)
    assert (changed, record.turns) == (1, 1)
    [cut] = await memory.repository.turns(record.id, 1, 2)
    assert cut == replace(waiting, messages=waiting.messages[:2])


async def test_continued_last_message_replaces_the_stored_one(memory: MemoryProcess) -> None:
    record = await memory.make()
    record = await memory.add(record, turn(1, 0, "hello", "hi there"))
    assert await memory.said(record) == ["hello", "hi there"]
    assert (record.turns, record.messages, record.epoch) == (1, 2, 1)
    assert await superseded(memory.engine, record) == [["hello", "hi"]]
    assert await memory.repository.keys(record.id) == message_key(user("hello")) + message_key(
        assistant("hi there")
    )


async def test_a_message_that_was_merely_echoed_is_not_written_again(memory: MemoryProcess) -> None:
    record = await memory.make()
    record = await memory.add(record, turn(1, 0, " hello ", "hi"), turn(2, 2, "more", "yes"))
    assert await memory.said(record) == ["hello", "hi", "more", "yes"]
    assert record.epoch == 0


async def test_turns_out_of_order_are_refused(memory: MemoryProcess) -> None:
    record = await memory.make()
    odd = {
        "a gap": [turn(3, 2, "q", "a")],
        "a missing message": [turn(2, 3, "q", "a")],
        "a gap within": [turn(2, 2, "q", "a"), turn(4, 4, "q", "a")],
        "a number twice": [turn(1, 2, "q", "a")],
        "too short": [turn(1, 0, "hello")],
    }
    for name, one in odd.items():
        with pytest.raises(ValueError, match="do not follow on 1 of 2"):
            await memory.add(record, *one)
        assert await memory.repository.current(record) == record, name
    assert await memory.said(record) == ["hello", "hi"]


async def test_a_commit_that_fails_leaves_nothing(memory: MemoryProcess) -> None:
    record = await memory.make()
    with pytest.raises(ZeroDivisionError):
        async with (
            memory.locks.write_lock(record) as lock,
            memory.locks.committing(lock) as (connection, stored),
        ):
            await memory.repository.rewind(connection, stored, 1)
            await memory.repository.append(connection, stored, [turn(1, 0, "hello", "changed")])
            raise ZeroDivisionError
    assert await memory.repository.current(record) == record
    assert await memory.said(record) == ["hello", "hi"]


async def test_what_another_process_wrote_is_read(
    memory: MemoryProcess, clock: ManualClock
) -> None:
    record = await memory.make()
    other = MemoryProcess(memory.engine, clock)
    assert await other.repository.find("ada", "diary") == record
    assert await other.said(record) == ["hello", "hi"]


async def test_memories_are_listed_in_pages_the_one_used_last_first(
    memory: MemoryProcess, clock: ManualClock
) -> None:
    made = []
    for number in range(5):
        # Two of them at one moment.
        clock.now_s += number % 2
        made.append(await memory.make(f"m{number}"))
    await memory.make("foreign", "bob")
    expected = sorted(made, key=lambda one: (one.updated_at_ms, one.id), reverse=True)
    listed, token = await memory.repository.page("ada", 2)
    assert listed == expected[:2]
    # What is used or made while somebody turns the pages is not told again.
    clock.now_s += 1
    await memory.add(expected[0], turn(2, 2, "q", "a"))
    await memory.make("new")
    while token:
        page, token = await memory.repository.page("ada", 2, token)
        listed += page
    assert listed == expected


async def test_turns_are_listed_in_pages_the_newest_first(memory: MemoryProcess) -> None:
    record = await memory.make()
    record = await memory.add(record, *turns(6, 2, 2))
    listed, token = await memory.repository.turn_page(record, 3)
    assert numbers(listed) == [7, 6, 5]
    record = await memory.add(record, turn(8, 14, "q", "a"))
    listed, token = await memory.repository.turn_page(record, 3, token)
    assert numbers(listed) == [4, 3, 2]
    listed, token = await memory.repository.turn_page(record, 3, token)
    assert (numbers(listed), token) == ([1], "")
    assert numbers((await memory.repository.turn_page(record, 8))[0]) == [8, 7, 6, 5, 4, 3, 2, 1]


async def test_deleting_takes_all_away_and_leaves_others_alone(memory: MemoryProcess) -> None:
    record, other = await memory.make(), await memory.make("other")
    record = await memory.add(record, *turns(3, 2, 2))
    record, _ = await memory.rewind(record, 3)
    async with memory.locks.read_lock(record):
        await memory.delete(record)
    assert set((await rows_of(memory.engine, record.id)).values()) == {0}
    assert await memory.repository.current(record) is None
    assert await memory.repository.find("ada", "diary") is None
    assert await memory.said(other) == ["hello", "hi"]
    assert await memory.repository.find("ada", "other") == other
    again = await memory.make()
    assert again.id != record.id
    assert await memory.said(again) == ["hello", "hi"]


async def test_a_memory_that_was_deleted_meanwhile_takes_no_commit(memory: MemoryProcess) -> None:
    record = await memory.make()
    async with memory.locks.write_lock(record) as lock:
        async with memory.locks.committing(lock) as (connection, stored):
            await delete_memory(connection, stored)
        with pytest.raises(GatewayError) as raised:
            async with memory.locks.committing(lock):
                raise AssertionError("a memory that is gone was opened")
    assert reason_of(raised) == errors_pb2.REASON_CONFLICT
    with pytest.raises(GatewayError) as raised:
        await memory.add(record, turn(2, 2, "q", "a"))
    assert reason_of(raised) == errors_pb2.REASON_CONFLICT
