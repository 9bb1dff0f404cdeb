"""Rewinds of transcripts, and their keys."""

import random
from dataclasses import replace
from typing import Any

import pytest

from services.common.storage.database import writing
from services.memory.storage.messages import message_key
from services.memory.storage.stored_turns import StoredTurn
from services.memory.storage.transcript_rows import CHUNK
from tests.engine_events import EXECUTES, listening
from tests.services.memory.builders import (
    QUOTA,
    MemoryProcess,
    call,
    result,
    superseded,
    turn,
    turns,
    user,
)


async def test_rewind_between_turns_supersedes_without_erasing(memory: MemoryProcess) -> None:
    record = await memory.make()
    record = await memory.add(record, *turns(3, 2, 2))
    record, changed = await memory.rewind(record, 4)
    assert changed == 3
    assert (record.turns, record.messages, record.epoch) == (2, 4, 1)
    assert await memory.said(record) == ["hello", "hi", "q0", "a0"]
    assert await memory.repository.turns(record.id, 3, 9) == []
    assert await memory.repository.turn_of_message(record.id, 4) is None
    assert await superseded(memory.engine, record) == [["q1", "a1"], ["q2", "a2"]]
    assert await memory.repository.current(record) == record


async def test_rewind_into_a_turn_keeps_its_start_and_number(memory: MemoryProcess) -> None:
    record = await memory.make()
    cut = turn(2, 2, "look", call("c1"), result("c1"), "done", at_ms=20)
    record = await memory.add(record, cut, turn(3, 6, "thanks", "welcome"))
    record, changed = await memory.rewind(record, 4)
    assert changed == 2
    assert (record.turns, record.messages) == (2, 4)
    left = await memory.repository.turns(record.id, 2, 9)
    assert left == [replace(cut, messages=cut.messages[:2], open=True)]
    assert [len(one) for one in await superseded(memory.engine, record)] == [4, 2]
    record = await memory.add(record, turn(2, 2, "look", call("c1"), result("c1"), "seen"))
    assert (await memory.said(record))[-1] == "seen"
    assert (await memory.repository.turns(record.id, 2, 2))[0].created_at_ms == 20


async def test_rewind_to_nothing_leaves_an_empty_memory(memory: MemoryProcess) -> None:
    record = await memory.make()
    record, changed = await memory.rewind(record, 0)
    assert changed == 1
    assert (record.turns, record.messages, record.epoch) == (0, 0, 1)
    assert await memory.repository.keys(record.id) == b""
    await memory.release(record)
    assert await memory.repository.find("ada", "diary") == record
    record = await memory.add(record, turn(1, 0, "anew", "yes"))
    assert await memory.said(record) == ["anew", "yes"]


async def test_rewind_that_keeps_all_changes_nothing(memory: MemoryProcess) -> None:
    record = await memory.make()
    rewound, changed = await memory.rewind(record, 2)
    assert changed == 2
    assert rewound == record


async def test_rewind_cannot_keep_more_than_is_stored(memory: MemoryProcess) -> None:
    record = await memory.make()
    for keep in (-1, 3):
        with pytest.raises(ValueError, match=f"cannot keep {keep} of 2"):
            await memory.rewind(record, keep)


async def test_rewind_resets_the_summarised_turn(memory: MemoryProcess) -> None:
    record = await memory.make()
    record = await memory.add(record, *turns(5, 2, 2))
    async with writing(memory.engine) as connection:
        assert await memory.repository.mark_summarised(connection, record.id, 0, 3)
    record, _ = await memory.rewind(record, 9)
    assert record.summarised == 3
    record, changed = await memory.rewind(record, 5)
    assert (changed, record.summarised) == (3, 2)
    async with (
        memory.locks.write_lock(record) as lock,
        memory.locks.committing(lock) as (connection, stored),
    ):
        await memory.repository.rewind(connection, stored, 4)
        await memory.repository.set_summarised(connection, record.id, 1)
        await memory.repository.append(connection, stored, [turn(3, 4, "q", "a")])
    kept = await memory.repository.current(record)
    assert kept is not None
    assert kept.summarised == 1


async def test_a_summary_counts_for_the_epoch_it_was_made_in(memory: MemoryProcess) -> None:
    record = await memory.make()
    record = await memory.add(record, *turns(5, 2, 2))
    record, _ = await memory.rewind(record, 8)
    async with writing(memory.engine) as connection:
        assert not await memory.repository.mark_summarised(connection, record.id, 0, 4)
        assert await memory.repository.mark_summarised(connection, record.id, 1, 2)
        assert not await memory.repository.mark_summarised(connection, "memory_gone", 1, 2)
    assert await memory.repository.current(record) == replace(record, summarised=2)


async def test_keys_match_the_transcript_across_row_boundaries(memory: MemoryProcess) -> None:
    messages = [user(f"m{place}") for place in range(3 * CHUNK)]
    expected = [message_key(message) for message in messages]
    for size in (1, CHUNK - 1, CHUNK, CHUNK + 1):
        record = await memory.reserve("ada", f"m{size}", QUOTA)
        for length in (size, size + 2, 2 * CHUNK - 1, 2 * CHUNK, 3 * CHUNK):
            record = await memory.add(record, turn(1, 0, *messages[:length]))
            assert await memory.repository.keys(record.id) == b"".join(expected[:length])
        for length in (2 * CHUNK + 1, 2 * CHUNK, 2 * CHUNK - 1, size):
            record, _ = await memory.rewind(record, length)
            assert await memory.repository.keys(record.id) == b"".join(expected[:length])
        record = await memory.add(record, turn(1, 0, *messages))
        assert await memory.repository.keys(record.id) == b"".join(expected)


async def test_a_commit_costs_the_same_whatever_the_memory_holds(memory: MemoryProcess) -> None:
    record = await memory.make()
    statements: list[str] = []

    def note(connection: Any, cursor: Any, statement: str, *others: Any) -> None:
        statements.append(statement)

    with listening(memory.engine, EXECUTES, note):
        record = await memory.add(record, turn(2, 2, "q", "a"))
        small = len(statements)
        record = await memory.add(record, *turns(2000, 3, 4))
        statements.clear()
        record = await memory.add(record, turn(2003, 4004, "q", "a"))
        assert len(statements) == small
        assert record.messages == 4006


async def test_appends_and_rewinds_behave_like_a_list(memory: MemoryProcess) -> None:
    await _append_and_rewind(memory, steps=80, seed=1)


@pytest.mark.soak
async def test_thousands_of_appends_and_rewinds_behave_like_a_list(memory: MemoryProcess) -> None:
    for seed in range(2, 6):
        await _append_and_rewind(memory, steps=300, seed=seed)


async def _append_and_rewind(memory: MemoryProcess, steps: int, seed: int) -> None:
    dice = random.Random(seed)
    record = await memory.reserve("ada", f"diary {seed}", QUOTA)
    model: list[StoredTurn] = []
    for step in range(steps):
        length = sum(len(one.messages) for one in model)
        if model and dice.random() < 0.3:
            keep = dice.randrange(length + 1)
            record, _ = await memory.rewind(record, keep)
            model = _cut(model, keep)
        else:
            added = _grown(model, length, f"s{step}", dice)
            record = await memory.add(record, *added)
            model = [one for one in model if one.number < added[0].number] + added
        expected = [message for one in model for message in one.messages]
        assert await memory.repository.turns(record.id, 1, len(model) + 1) == model
        assert await memory.repository.keys(record.id) == b"".join(map(message_key, expected))
        assert (record.turns, record.messages) == (len(model), len(expected))
        assert await memory.repository.current(record) == record


def _cut(model: list[StoredTurn], keep: int) -> list[StoredTurn]:
    kept = []
    for one in model:
        messages = one.messages[: max(keep - one.first_message, 0)]
        if messages:
            kept.append(turn(one.number, one.first_message, *messages, at_ms=one.created_at_ms))
    return kept


def _grown(
    model: list[StoredTurn], length: int, name: str, dice: random.Random
) -> list[StoredTurn]:
    added = []
    number = len(model) + 1
    if model and dice.random() < 0.5:
        last = model[-1]
        more = (call(name), result(name))[: dice.randint(1, 2)]
        added.append(
            turn(last.number, last.first_message, *last.messages, *more, at_ms=last.created_at_ms)
        )
        length += len(more)
    for place in range(dice.randint(0 if added else 1, 3)):
        added.append(turn(number + place, length, f"{name} q{place}", f"a{place}", at_ms=place))
        length += 2
    return added
