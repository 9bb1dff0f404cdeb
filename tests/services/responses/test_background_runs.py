"""Responses that are generated in the background: leased, ended, cancelled, interrupted."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from services.common.errors import GatewayError
from services.common.process.registry import ProcessRegistry
from services.responses.records import RUN_BYTES
from services.responses.repository import ResponseRepository
from tests.manual_clock import ManualClock
from tests.services.responses.response_server import (
    LIMITS,
    STORAGE,
    ClientRun,
    ResponseProcess,
    charged,
    content,
    names,
    response,
    response_process,
    settled,
)
from tests.waiting import until


@pytest.fixture
async def other(engine: AsyncEngine, clock: ManualClock) -> AsyncIterator[ResponseProcess]:
    """Return another process on the same database."""
    async with response_process(engine, clock) as process:
        yield process


async def refused(run: ClientRun) -> str:
    """Return why a run was ended by the service."""
    with pytest.raises(GatewayError) as raised:
        await settled(asyncio.create_task(run.answer()))
    return raised.value.code


async def test_a_run_is_seen_by_every_process(
    service: ResponseProcess, other: ResponseProcess, engine: AsyncEngine
) -> None:
    async with service.running("r1", body="created") as run:
        assert await other.state("r1") == "queued"
        await run.start()
        assert await other.state("r1") == "in_progress"
        stored = await other.get("r1")
        assert (stored.background, stored.content.body) == (True, b"created")
        assert await run.finish(content("m1", body="ended", events=b"e"))
        assert await other.state("r1") == "ended"
    stored = await other.get("r1", with_events=True)
    assert stored.content == content("m1", body="ended", events=b"e")
    assert names(await other.call("GetResponseChain", id="r1")) == ["in-r1", "m1"]
    await charged(engine)


async def test_a_run_that_is_dropped_is_interrupted(
    service: ResponseProcess, engine: AsyncEngine
) -> None:
    async with service.running("r1") as run:
        await run.start()
        during = await charged(engine)
    await until(lambda: _is(service, "r1", "interrupted"))
    assert await charged(engine) == during - RUN_BYTES


async def test_a_run_that_closes_early_is_interrupted(service: ResponseProcess) -> None:
    async with service.running("r1") as run:
        await run.call.done_writing()
        await settled(asyncio.create_task(run.answer()))
        assert await service.state("r1") == "interrupted"


async def test_cancelling_ends_a_run_at_once(service: ResponseProcess) -> None:
    async with service.running("r1") as run:
        cancelled = await service.call("CancelResponse", id="r1")
        assert cancelled.response == await service.get("r1")
        assert await service.state("r1") == "cancelled"
        assert await refused(run) == "conflict"
    again = await service.call("CancelResponse", id="r1")
    assert again.response == cancelled.response


async def test_another_process_cancels_a_run(
    engine: AsyncEngine, clock: ManualClock, other: ResponseProcess
) -> None:
    async with response_process(engine, clock, lease_s=0.05) as service:
        async with service.running("r1") as run:
            await other.call("CancelResponse", id="r1")
            assert await refused(run) == "conflict"
        assert await other.state("r1") == "cancelled"


async def test_deleting_ends_a_run(service: ResponseProcess, engine: AsyncEngine) -> None:
    async with service.running("r1") as run:
        await service.call("DeleteResponse", id="r1")
        assert await refused(run) == "conflict"
    assert await charged(engine) == 0


async def test_an_ended_response_is_not_cancelled(service: ResponseProcess) -> None:
    async with service.running("r1") as run:
        await run.finish(content("m1"))
    assert (await service.call("CancelResponse", id="r1")).response == await service.get("r1")
    assert await service.state("r1") == "ended"
    await service.create("r2")
    with pytest.raises(GatewayError) as raised:
        await service.call("CancelResponse", id="r2")
    assert raised.value.code == "invalid_request"


async def test_a_run_whose_lease_has_expired_is_interrupted(
    service: ResponseProcess, other: ResponseProcess, clock: ManualClock, engine: AsyncEngine
) -> None:
    async with service.running("r1") as run, service.running("r2"):
        clock.now_s += LIMITS.lease_s - 1
        assert await other.state("r1") == "queued"
        clock.now_s += 1
        assert await other.state("r1") == "interrupted"
        assert await other.repository.interrupt_expired() == 0
        # The process was not dead after all: what it has to say comes too late.
        with pytest.raises(GatewayError) as raised:
            await run.start()
        assert raised.value.code == "conflict"
    assert await other.state("r1") == await other.state("r2") == "interrupted"
    await charged(engine)


async def test_what_comes_after_an_interruption_is_not_stored(
    service: ResponseProcess, other: ResponseProcess, clock: ManualClock
) -> None:
    async with service.running("r1") as run:
        clock.now_s += LIMITS.lease_s
        assert await other.repository.interrupt_expired() == 1
        with pytest.raises(GatewayError) as raised:
            await run.finish(content("m1"))
        assert raised.value.code == "conflict"
    assert names(await service.call("GetResponseChain", id="r1")) == ["in-r1", "out-r1"]


async def test_runs_of_a_dead_process_are_interrupted(
    engine: AsyncEngine, clock: ManualClock, service: ResponseProcess, tmp_path: Path
) -> None:
    alive = ProcessRegistry.register(tmp_path)
    for name, processes in (("r1", alive), ("r2", ProcessRegistry(tmp_path, "dead", -1))):
        one = ResponseRepository(engine, clock, LIMITS, processes)
        await one.create_leased("ada", STORAGE, response(name))
    for note in alive.on_death:
        await note("dead")
    assert await service.state("r1") == "queued"
    assert await service.state("r2") == "interrupted"
    alive.unregister()


async def test_an_end_without_room_is_stored_as_such(
    service: ResponseProcess, engine: AsyncEngine
) -> None:
    async with service.running("r1", body="{}") as run:
        long = content("m1", body="x" * STORAGE)
        assert not await run.finish(long, substitute_body=b"failed")
    stored = await service.get("r1")
    assert stored.content == content(body="failed")
    assert await charged(engine) < 1_000


async def test_the_failure_fits_where_nothing_else_does(
    service: ResponseProcess, engine: AsyncEngine
) -> None:
    async with service.running("r1") as run:
        taken = await charged(engine)
        await service.create("r2", body="x" * (STORAGE - taken - 900))
        assert not await run.finish(content(body="x" * RUN_BYTES * 2), b"y" * RUN_BYTES)
    assert (await service.get("r1")).content.body == b"y" * RUN_BYTES
    assert await charged(engine) <= STORAGE


async def test_whoever_waits_is_answered_at_the_end(
    service: ResponseProcess, other: ResponseProcess
) -> None:
    async with service.running("r1") as run:
        waiting = [
            asyncio.create_task(process.get("r1", wait_ms=30_000)) for process in (service, other)
        ]
        soon = await service.get("r1", wait_ms=1)
        assert soon.state == soon.STATE_QUEUED
        await run.finish(content("m1", body="ended"))
        for task in waiting:
            assert (await settled(task)).content.body == b"ended"
    with pytest.raises(GatewayError):
        await service.get("r1", wait_ms=30_001)


async def test_a_run_cannot_be_continued_before_its_end(service: ResponseProcess) -> None:
    async with service.running("r1", sent=["a"]) as run:
        with pytest.raises(GatewayError) as raised:
            await service.call("GetResponseChain", id="r1")
        assert raised.value.code == "conflict"
        listed = await service.call("ListInputItems", id="r1")
        assert names(listed) == ["a"]
        await run.finish(content("m1"))
    assert names(await service.call("GetResponseChain", id="r1")) == ["a", "m1"]


async def test_a_run_does_not_expire(
    engine: AsyncEngine, clock: ManualClock, service: ResponseProcess
) -> None:
    async with response_process(engine, clock, ttl_s=1, lease_s=100) as short:
        async with short.running("r1") as run:
            clock.now_s += 10
            assert await short.repository.delete_expired(10) == 0
            assert await short.state("r1") == "queued"
            await run.finish(content("m1"))
        assert await short.repository.delete_expired(10) == 1


async def test_steps_out_of_order_are_refused(service: ResponseProcess) -> None:
    async with service.running("r1") as run:
        await run.start()
        with pytest.raises(GatewayError) as raised:
            await run.start()
        assert raised.value.code == "invalid_request"
    await until(lambda: _is(service, "r1", "interrupted"))


async def _is(process: ResponseProcess, name: str, state: str) -> bool:
    return await process.state(name) == state
