"""The chain of summaries: which one counts, and what is left when turns go."""

import pytest
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncEngine

from services.common.storage.database import writing
from services.memory.jobs.summaries import NO_SUMMARY, Summary, SummaryStore
from tests.manual_clock import ManualClock
from tests.services.memory.builders import MemoryProcess
from tests.services.memory.job_worker import summary_rows

ONE_DATABASE = pytest.mark.parametrize("storage", ["sqlite"], indirect=True)


async def chain(
    engine: AsyncEngine, *lasts: int, degraded: tuple[int, ...] = ()
) -> tuple[SummaryStore, str]:
    clock = ManualClock()
    record = await MemoryProcess(engine, clock).make()
    summaries = SummaryStore(engine, clock)
    first = 1
    async with writing(engine) as connection:
        for last in lasts:
            summary = Summary(f"up to {last}", last, last in degraded, first)
            await summaries.add(connection, record.id, 0, summary)
            first = last + 1
    return summaries, record.id


async def test_last_summary_is_current_and_withdrawn_rows_remain(engine: AsyncEngine) -> None:
    summaries, entity_id = await chain(engine, 5, 10, 15)
    assert (await summaries.current(entity_id)).text == "up to 15"
    async with writing(engine) as connection:
        assert await summaries.withdraw_from(connection, entity_id, 16) == 15
        assert await summaries.withdraw_from(connection, entity_id, 10) == 5
    assert (await summaries.current(entity_id)).text == "up to 5"
    assert [row[3] for row in await summary_rows(engine)] == [False, True, True]
    async with writing(engine) as connection:
        assert await summaries.withdraw_from(connection, entity_id, 1) == 0
    assert await summaries.current(entity_id) == NO_SUMMARY


async def test_two_summaries_never_end_at_one_turn(engine: AsyncEngine) -> None:
    summaries, entity_id = await chain(engine, 5)
    again = Summary("again", 5, False, 1)
    with pytest.raises(IntegrityError):
        async with writing(engine) as connection:
            await summaries.add(connection, entity_id, 0, again)
    async with writing(engine) as connection:
        await summaries.withdraw_from(connection, entity_id, 5)
        await summaries.add(connection, entity_id, 1, again)
    assert (await summaries.current(entity_id)).text == "again"


@ONE_DATABASE
async def test_what_would_count_before_a_turn_is_known(engine: AsyncEngine) -> None:
    summaries, entity_id = await chain(engine, 5, 10)
    assert (await summaries.before(entity_id, 11)).last_turn == 10
    assert (await summaries.before(entity_id, 10)).last_turn == 5
    assert await summaries.before(entity_id, 5) == NO_SUMMARY
    assert await summaries.before("another", 99) == NO_SUMMARY


async def test_a_degraded_summary_is_put_right_while_it_counts(engine: AsyncEngine) -> None:
    summaries, entity_id = await chain(engine, 5, 10, 15, degraded=(10, 15))
    summary, before, counts = await summaries.up_to(entity_id, 10)
    assert (summary.last_turn, summary.degraded, before.last_turn, counts) == (10, True, 5, True)
    assert (await summaries.up_to(entity_id, 5))[2] is True
    assert await summaries.up_to(entity_id, 7) == (NO_SUMMARY, NO_SUMMARY, False)
    async with writing(engine) as connection:
        assert await summaries.improve(connection, summary.id, "better")
        last = await summaries.current_in(connection, entity_id)
        await summaries.withdraw_from(connection, entity_id, 15)
        assert not await summaries.improve(connection, last.id, "too late")
    current = await summaries.current(entity_id)
    assert (current.text, current.degraded) == ("better", False)


@ONE_DATABASE
async def test_summaries_of_other_memories_are_left_alone(engine: AsyncEngine) -> None:
    summaries, entity_id = await chain(engine, 5)
    async with writing(engine) as connection:
        await summaries.withdraw_from(connection, "another", 1)
        await summaries.remove_memory(connection, "another")
    assert (await summaries.current(entity_id)).last_turn == 5
    async with writing(engine) as connection:
        await summaries.remove_memory(connection, entity_id)
    assert await summary_rows(engine) == []
