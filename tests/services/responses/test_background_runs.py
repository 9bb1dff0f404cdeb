"""Responses that are generated in the background: queued, ended, followed, interrupted."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.inference.v1.inference_pb2 import GenerateRequest
from gateway.memory.v1 import responses_pb2 as pb
from services.common.errors import GatewayError, invalid
from services.common.process.registry import ProcessRegistry
from services.responses.records import RUN_BYTES
from services.responses.repository import ResponseRepository
from tests.manual_clock import ManualClock
from tests.services.responses.background_model import ModelCall, TextRenderer
from tests.services.responses.response_server import (
    LIMITS,
    STORAGE,
    ResponseProcess,
    charged,
    names,
    response,
    response_process,
    rows,
    settled,
)
from tests.waiting import until


@pytest.fixture
async def other(engine: AsyncEngine, clock: ManualClock) -> AsyncIterator[ResponseProcess]:
    """Return another process on the same database."""
    async with response_process(engine, clock) as process:
        yield process


async def asked(call: ModelCall) -> ModelCall:
    """Return a call of the model once it has been made."""
    await until(lambda: call.is_asked)
    return call


async def refused(service: ResponseProcess, name: str, **new: object) -> GatewayError:
    """Return why a background response was not created."""
    with pytest.raises(GatewayError) as raised:
        await service.run(name, **new)
    return raised.value


async def test_a_run_is_seen_by_every_process(
    service: ResponseProcess, other: ResponseProcess, engine: AsyncEngine
) -> None:
    first = await asked(await service.run("r0"))
    call = await service.run("r1", body="created")
    assert await other.state("r0") == "in_progress"
    assert await other.state("r1") == "queued"
    stored = await other.get("r1")
    assert (stored.background, stored.content.body) == (True, b"created")
    first.finish()
    await asked(call)
    assert await other.state("r1") == "in_progress"
    call.finish("Hel", "lo")
    stored = await settled(asyncio.create_task(other.ended("r1")))
    assert await other.state("r1") == "ended"
    assert (stored.content.body, stored.content.events) == (b"Hello", b"")
    assert names(await other.call("GetResponseChain", id="r1")) == ["in-r1", "out-r1"]
    await charged(engine)


async def test_the_model_is_called_as_the_caller(service: ResponseProcess) -> None:
    call = await asked(await service.run("r1"))
    assert call.metadata == {"authorization": f"Bearer gw-{'ada':_<43}", "x-request-id": "req_1"}


async def test_events_are_followed_as_they_occur(service: ResponseProcess) -> None:
    async with service.following("r1") as pieces:
        assert await anext(pieces) == b"queued "
        call = await asked(service.model.calls["r1"])
        call.say("Hel")
        assert await anext(pieces) == b"Hel"
        call.finish("lo")
        assert b"".join([piece async for piece in pieces]) == b"lo finished"
    stored = await service.get("r1", with_events=True)
    assert stored.content.events == b"queued Hello finished"


async def test_a_run_goes_on_without_its_caller(service: ResponseProcess) -> None:
    async with service.following("r1") as pieces:
        await anext(pieces)
    call = await asked(service.model.calls["r1"])
    call.finish("Hello")
    assert (await service.ended("r1")).content.events == b"queued Hello finished"


async def test_more_events_than_are_held_are_not_followed(
    service: ResponseProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("services.responses.live_events.MAX_EVENTS", 100)
    async with service.following("r1") as pieces:
        service.model.calls["r1"].finish("x" * 101)
        with pytest.raises(GatewayError) as raised:
            assert [piece async for piece in pieces]
    assert raised.value.code == "too_large"
    stored = await service.ended("r1")
    assert (stored.content.body, stored.content.events) == (b"x" * 101, b"")


async def test_cancelling_ends_a_run_at_once(service: ResponseProcess) -> None:
    async with service.following("r1") as pieces:
        call = await asked(service.model.calls["r1"])
        cancelled = await service.call("CancelResponse", id="r1")
        assert b"".join([piece async for piece in pieces]) == b"queued  conflict"
    await call.left.wait()
    assert cancelled.response == await service.get("r1")
    assert await service.state("r1") == "cancelled"
    again = await service.call("CancelResponse", id="r1")
    assert again.response == cancelled.response


async def test_a_queued_run_is_cancelled(service: ResponseProcess) -> None:
    first = await asked(await service.run("r0"))
    waiting = await service.run("r1")
    await service.call("CancelResponse", id="r1")
    await asked(await service.run("r2", "bob"))
    first.finish()
    await service.ended("r0")
    assert not waiting.is_asked
    assert await service.state("r1") == "cancelled"


async def test_another_process_cancels_a_run(
    engine: AsyncEngine, clock: ManualClock, other: ResponseProcess
) -> None:
    async with response_process(engine, clock, lease_s=0.05) as service:
        call = await asked(await service.run("r1"))
        await other.call("CancelResponse", id="r1")
        await call.left.wait()
        assert await other.state("r1") == "cancelled"


async def test_deleting_ends_a_run(service: ResponseProcess, engine: AsyncEngine) -> None:
    call = await asked(await service.run("r1"))
    await service.call("DeleteResponse", id="r1")
    await call.left.wait()
    assert await charged(engine) == 0


async def test_an_ended_response_is_not_cancelled(service: ResponseProcess) -> None:
    (await service.run("r1")).finish("m")
    ended = await service.ended("r1")
    assert (await service.call("CancelResponse", id="r1")).response.content == ended.content
    assert await service.state("r1") == "ended"
    await service.create("r2")
    with pytest.raises(GatewayError) as raised:
        await service.call("CancelResponse", id="r2")
    assert raised.value.code == "invalid_request"


async def test_a_run_whose_lease_has_expired_is_interrupted(
    service: ResponseProcess, other: ResponseProcess, clock: ManualClock, engine: AsyncEngine
) -> None:
    first = await asked(await service.run("r1"))
    second = await service.run("r2")
    during = await charged(engine)
    clock.now_s += LIMITS.lease_s - 1
    assert await other.state("r2") == "queued"
    clock.now_s += 1
    assert await other.state("r1") == await other.state("r2") == "interrupted"
    assert await other.repository.interrupt_expired() == 0
    assert await charged(engine) == during - 2 * RUN_BYTES
    # The process was not dead after all: what it generates comes too late.
    first.finish("late")
    await settled(asyncio.create_task(service.background.drain(60)))
    assert not second.is_asked
    assert await other.state("r1") == await other.state("r2") == "interrupted"
    assert names(await service.call("GetResponseChain", id="r1")) == ["in-r1"]
    await charged(engine)


async def test_runs_of_a_dead_process_are_interrupted(
    engine: AsyncEngine, clock: ManualClock, service: ResponseProcess, tmp_path: Path
) -> None:
    alive = ProcessRegistry.register(tmp_path)
    for name, processes in (("r1", alive), ("r2", ProcessRegistry(tmp_path, "dead", -1))):
        dead_process = ResponseRepository(engine, clock, LIMITS, processes)
        await dead_process.create_leased("ada", STORAGE, response(name))
    for note in alive.on_death:
        await note("dead")
    assert await service.state("r1") == "queued"
    assert await service.state("r2") == "interrupted"
    alive.unregister()


async def test_a_process_that_stops_ends_its_runs(
    engine: AsyncEngine, clock: ManualClock, service: ResponseProcess
) -> None:
    async with response_process(engine, clock) as stopping:
        running = await asked(await stopping.run("r1"))
        queued = await stopping.run("r2")
    assert running.left.is_set() and not queued.is_asked
    for name in ("r1", "r2"):
        assert (await service.get(name)).content.body == b"unavailable"
        assert await service.state(name) == "ended"


async def test_a_failure_of_the_model_is_stored(service: ResponseProcess) -> None:
    failing = await service.run("r1")
    failing.failure = invalid("a", "a: no")
    failing.finish("Hel")
    assert (await service.ended("r1")).content.body == b"invalid_request"
    (await service.run("r2")).say("unforeseen")
    assert (await service.ended("r2")).content.body == b"internal"


async def test_an_end_without_room_is_stored_as_such(
    service: ResponseProcess, engine: AsyncEngine
) -> None:
    async with service.following("r1") as pieces:
        service.model.calls["r1"].finish("x" * STORAGE)
        *_, last = [piece async for piece in pieces]
    assert last.endswith(b" memory_storage_exceeded")
    stored = await service.get("r1", with_events=True)
    assert (stored.content.body, stored.content.events) == (b"does not fit", b"")
    assert await charged(engine) < 1_000


async def test_the_failure_fits_where_nothing_else_does(
    service: ResponseProcess, engine: AsyncEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TextRenderer, "failed_body", lambda *_: b"y" * RUN_BYTES)
    call = await service.run("r1")
    charged_bytes = await charged(engine)
    await service.create("r2", body="x" * (STORAGE - charged_bytes - 900))
    call.finish("x" * RUN_BYTES * 2)
    assert (await service.ended("r1")).content.body == b"y" * RUN_BYTES
    assert await charged(engine) <= STORAGE


async def test_whoever_waits_is_answered_at_the_end(
    service: ResponseProcess, other: ResponseProcess
) -> None:
    call = await service.run("r1")
    waiting = [
        asyncio.create_task(process.get("r1", wait_ms=30_000)) for process in (service, other)
    ]
    await asked(call)
    soon = await service.get("r1", wait_ms=1)
    assert soon.state == soon.STATE_IN_PROGRESS
    call.finish("ended")
    for task in waiting:
        assert (await settled(task)).content.body == b"ended"
    with pytest.raises(GatewayError):
        await service.get("r1", wait_ms=30_001)


async def test_a_run_cannot_be_continued_before_its_end(service: ResponseProcess) -> None:
    call = await service.run("r1", sent=["a"])
    with pytest.raises(GatewayError) as raised:
        await service.call("GetResponseChain", id="r1")
    assert raised.value.code == "conflict"
    assert names(await service.call("ListInputItems", id="r1")) == ["a"]
    call.finish("m")
    await service.ended("r1")
    assert names(await service.call("GetResponseChain", id="r1")) == ["a", "out-r1"]


async def test_a_run_does_not_expire(
    engine: AsyncEngine, clock: ManualClock, service: ResponseProcess
) -> None:
    async with response_process(engine, clock, ttl_s=1, lease_s=100) as short:
        call = await asked(await short.run("r1"))
        clock.now_s += 10
        assert await short.repository.delete_expired(10) == 0
        assert await short.state("r1") == "in_progress"
        call.finish("m")
        await settled(asyncio.create_task(short.background.drain(60)))
        assert await short.repository.delete_expired(10) == 1


async def test_more_runs_than_may_wait_are_refused(service: ResponseProcess) -> None:
    first = await asked(await service.run("r0"))
    await service.run("r1")
    error = await refused(service, "r2")
    assert (error.code, error.param) == ("rate_limited", "background")
    await service.run("r3", user="bob")
    first.finish()
    await service.ended("r0")
    await until(lambda: service.model.calls["r1"].is_asked)
    await service.run("r4")


async def test_a_refused_run_leaves_nothing(service: ResponseProcess, engine: AsyncEngine) -> None:
    await service.create("r1")
    for name, new, param in (
        ("r2", {"body": "invalid"}, "create.presentation"),
        ("", {}, "create.response.id"),
        ("r1", {}, "id"),
        ("r3", {"sent": ["x" * 129]}, "create.response.input[0].id"),
    ):
        assert (await refused(service, name, **new)).param == param
    service.disk.fill()
    assert (await refused(service, "r4")).code == "storage_full"
    assert await rows(engine) == 1
    service.disk.clear()
    # None of them counts as running.
    for name in ("r5", "r6"):
        await service.run(name)


async def test_steps_out_of_order_are_refused(service: ResponseProcess) -> None:
    create = pb.CreateBackgroundResponse(response=response("r1"))
    steps = [
        pb.RunInBackgroundRequest(create=create),
        pb.RunInBackgroundRequest(generate=GenerateRequest()),
    ]
    for sent_steps, expected in (
        ([], "create"),
        (steps[1:], "create"),
        (steps[:1] * 2, "generate"),
    ):
        assert (await service.refusal_of_run(sent_steps)).param == expected
