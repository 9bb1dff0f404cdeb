"""Stored conversations over gRPC, on both engines: pages, appends, limits, expiry, responses."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import delete, func, select
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.memory.v1 import conversations_pb2 as pb
from gateway.memory.v1.responses_pb2 import ResponseConversation
from services.common.errors import GatewayError, invalid
from services.common.ids import new_conversation_id
from services.common.storage.database import reading, writing
from services.responses.conversations.tables import conversations, origins
from services.responses.conversations.tables import items as item_rows
from services.responses.tables import contents, output_items, responses
from tests.manual_clock import ManualClock
from tests.services.responses.response_server import (
    LIMITS,
    STORAGE,
    ResponseProcess,
    charged,
    items,
    names,
    response,
    response_process,
)
from tests.waiting import until

BOUNDS = LIMITS.conversations


async def create(
    service: ResponseProcess, *sent: str, user: str = "ada", metadata: bytes = b"{}"
) -> str:
    """Return the id of a new conversation with items of those ids."""
    created = await service.talk("CreateConversation", user, metadata=metadata, items=items(*sent))
    return str(created.conversation.id)


async def append(service: ResponseProcess, name: str, *sent: str, user: str = "ada") -> list[str]:
    """Append items; return the ids that they have."""
    created = await service.talk("CreateItems", user, conversation_id=name, items=items(*sent))
    return names(created)


async def all_of(service: ResponseProcess, name: str, user: str = "ada") -> list[str]:
    """Return the ids of all items, the oldest first."""
    return names(await service.talk("ReadItems", user, conversation_id=name))


async def refusal(service: ResponseProcess, method: str, user: str = "ada", **fields: Any) -> str:
    """Return the reason for which a call is refused."""
    with pytest.raises(GatewayError) as raised:
        await service.talk(method, user, **fields)
    return raised.value.code


def in_conversation(name: str, conversation_id: str, last_position: int = 0) -> Any:
    """Return a request that stores a response and appends it to a conversation."""
    new = response(name)
    new.conversation.CopyFrom(ResponseConversation(id=conversation_id, last_position=last_position))
    return {"response": new, "append": True}


async def walk(service: ResponseProcess, name: str, size: int, *, ascending: bool) -> Sequence[str]:
    """Return the ids of all pages, each of which begins after the last one."""
    walked: list[str] = []
    while True:
        page = await service.talk(
            "ListItems",
            conversation_id=name,
            page_size=size,
            after=walked[-1] if walked else "",
            ascending=ascending,
        )
        assert len(page.items) == size or not page.has_more
        walked += names(page)
        assert len(set(walked)) == len(walked)
        if not page.has_more:
            return walked


async def test_conversations_of_others_are_absent(service: ResponseProcess) -> None:
    name = await create(service, "a")
    for user, conversation_id in (("bob", name), ("ada", new_conversation_id()), ("ada", "x")):
        for method in ("GetConversation", "UpdateConversation", "DeleteConversation"):
            assert await refusal(service, method, user, id=conversation_id) == "not_found"
        for method in ("ListItems", "ReadItems", "CreateItems", "GetItem", "DeleteItem"):
            fields = {"id": "a"} if method in ("GetItem", "DeleteItem") else {}
            assert (
                await refusal(service, method, user, conversation_id=conversation_id, **fields)
                == "not_found"
            )
    assert await all_of(service, name) == ["a"]


async def test_ids_cannot_be_guessed(service: ResponseProcess) -> None:
    conversation_ids = {await create(service) for _ in range(10)}
    assert len({name[-20:] for name in conversation_ids}) == 10
    assert all(len(name) == len("conv_gw") + 44 for name in conversation_ids)


@given(
    count=st.integers(0, 25),
    size=st.integers(1, 9),
    deleted_numbers=st.sets(st.integers(0, 24)),
    ascending=st.booleans(),
)
@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
async def test_pages_are_all_items_in_order(
    service: ResponseProcess, count: int, size: int, deleted_numbers: set[int], ascending: bool
) -> None:
    item_ids = [f"i{number}" for number in range(count)]
    name = await create(service, *item_ids)
    for number in deleted_numbers:
        if number < count:
            await service.talk("DeleteItem", conversation_id=name, id=f"i{number}")
    remaining_ids = [
        item_id for number, item_id in enumerate(item_ids) if number not in deleted_numbers
    ]
    assert await walk(service, name, size, ascending=ascending) == (
        remaining_ids if ascending else remaining_ids[::-1]
    )
    await service.talk("DeleteConversation", id=name)


@pytest.mark.parametrize("size", [0, 101])
async def test_a_page_has_a_size(service: ResponseProcess, size: int) -> None:
    name = await create(service, "a")
    fields = {"conversation_id": name, "page_size": size}
    assert await refusal(service, "ListItems", **fields) == "invalid_request"
    deleted_item = {"conversation_id": name, "after": "b"}
    assert await refusal(service, "ListItems", **deleted_item) == "invalid_request"


async def test_appends_at_the_same_time_stay_together(
    service: ResponseProcess, engine: AsyncEngine, clock: ManualClock
) -> None:
    name = await create(service)
    async with response_process(engine, clock) as second_process:
        calls = [
            append(process, name, f"a{number}", f"b{number}")
            for number in range(6)
            for process in ((service, second_process)[number % 2],)
        ]
        stored = [
            process.call("CreateResponse", **in_conversation(f"r{number}", name))
            for number in range(6)
            for process in ((service, second_process)[number % 2],)
        ]
        await asyncio.gather(*calls, *stored)
    items = await all_of(service, name)
    pairs = {tuple(items[place : place + 2]) for place in range(0, len(items), 2)}
    assert pairs == {
        *((f"a{number}", f"b{number}") for number in range(6)),
        *((f"in-r{number}", f"out-r{number}") for number in range(6)),
    }
    assert len(items) == 24


async def test_an_id_is_in_a_conversation_once(service: ResponseProcess) -> None:
    name = await create(service, "a", "a")
    first, second = await all_of(service, name)
    assert first == "a"
    assert second != "a"
    [third] = await append(service, name, "a")
    assert len({first, second, third}) == 3
    answer = await service.talk("GetItem", conversation_id=name, id=third)
    assert answer.item.json == b'"a"'
    assert await create(service, "a") != name


async def test_what_is_stored_is_charged_and_freed(
    service: ResponseProcess, engine: AsyncEngine
) -> None:
    name = await create(service, "a", "b", metadata=b'{"k":"v"}')
    await append(service, name, "c")
    await service.call("CreateResponse", **in_conversation("r", name))
    await service.talk("UpdateConversation", id=name, metadata=b"{}")
    await service.talk("DeleteItem", conversation_id=name, id="b")
    assert await charged(engine) > 0
    await service.call("DeleteResponse", id="r")
    assert await charged(engine) > 0
    await service.talk("DeleteConversation", id=name)
    assert await charged(engine) == 0
    assert await left(engine) == [0, 0, 0]


async def left(engine: AsyncEngine) -> list[int]:
    """Return how many rows there are of conversations, items and responses' origins."""
    async with reading(engine) as connection:
        return [
            await connection.scalar(select(func.count()).select_from(table)) or 0
            for table in (conversations, item_rows, origins)
        ]


async def test_a_conversation_has_so_many_items_and_bytes(
    service: ResponseProcess, engine: AsyncEngine
) -> None:
    name = await create(service, *(f"i{number}" for number in range(BOUNDS.max_items - 1)))
    before = await charged(engine)
    fields = {"conversation_id": name, "items": items("x", "y")}
    assert await refusal(service, "CreateItems", **fields) == "too_large"
    assert await refusal(service, "ReadItems", conversation_id=name, new_items=2) == "too_large"
    many = {"conversation_id": name, "new_bytes": BOUNDS.max_bytes}
    assert await refusal(service, "ReadItems", **many) == "too_large"
    with pytest.raises(GatewayError) as raised:
        await service.call("CreateResponse", **in_conversation("r", name))
    assert (raised.value.code, raised.value.param) == ("too_large", "conversation")
    assert await charged(engine) == before
    await append(service, name, "last")
    assert len(await all_of(service, name)) == BOUNDS.max_items


async def test_of_responses_at_once_one_has_no_room(service: ResponseProcess) -> None:
    name = await create(service, *(f"i{number}" for number in range(BOUNDS.max_items - 2)))
    free = await create(service)
    outcomes = await asyncio.gather(
        *(service.call("CreateResponse", **in_conversation(f"r{n}", name)) for n in range(2)),
        *(service.call("CreateResponse", **in_conversation(f"s{n}", free)) for n in range(3)),
        return_exceptions=True,
    )
    assert [outcome.code for outcome in outcomes if isinstance(outcome, GatewayError)] == [
        "too_large"
    ]
    assert len(await all_of(service, free)) == 6


async def test_the_plan_bounds_conversations(service: ResponseProcess, engine: AsyncEngine) -> None:
    name = await create(service)
    await service.create("r", body="x" * (STORAGE - await charged(engine) - 2_000))
    before = await charged(engine)
    large = pb.CreateItemsRequest(conversation_id=name, items=items("x" * 100, "y" * 100))
    for item in large.items:
        item.json = b"1" * 1_000
    fields = {"conversation_id": name, "items": large.items}
    assert await refusal(service, "CreateItems", **fields) == "memory_storage_exceeded"
    new = {"metadata": b"x" * 3_000}
    assert await refusal(service, "CreateConversation", **new) == "memory_storage_exceeded"
    assert await refusal(service, "UpdateConversation", id=name, **new) == "memory_storage_exceeded"
    assert await charged(engine) == before
    assert await all_of(service, name) == []


async def test_a_conversation_lives_from_its_last_change(
    service: ResponseProcess, engine: AsyncEngine, clock: ManualClock
) -> None:
    continued, idle = await create(service, "a"), await create(service, "a")
    clock.now_s += BOUNDS.ttl_s - 1
    await append(service, continued, "b")
    await all_of(service, idle)
    clock.now_s += 2
    assert await refusal(service, "ReadItems", conversation_id=idle) == "not_found"
    assert await all_of(service, continued) == ["a", "b"]
    assert await service.conversations.delete_expired(100) == 1
    assert await left(engine) == [1, 2, 0]
    clock.now_s += BOUNDS.ttl_s
    assert await service.conversations.delete_expired(100) == 1
    assert await charged(engine) == 0


async def test_a_run_is_appended_with_its_end(service: ResponseProcess) -> None:
    name = await create(service, "a")
    origin = ResponseConversation(id=name, last_position=1)
    answered = await service.run("r", conversation=origin)
    assert await all_of(service, name) == ["a"]
    answered.finish("m")
    assert (await service.ended("r")).content.body == b"m"
    assert await all_of(service, name) == ["a", "in-r", "out-r"]
    failed = await service.run("s", conversation=origin)
    failed.failure = invalid("a", "a: no")
    failed.finish("n")
    assert (await service.ended("s")).content.body == b"invalid_request"
    assert await all_of(service, name) == ["a", "in-r", "out-r"]


async def test_a_run_without_room_in_its_conversation_fails(
    service: ResponseProcess, engine: AsyncEngine
) -> None:
    name = await create(service, *(f"i{number}" for number in range(BOUNDS.max_items)))
    call = await service.run("r", conversation=ResponseConversation(id=name))
    call.finish("m")
    assert (await service.ended("r")).content.body == b"does not fit"
    assert len(await all_of(service, name)) == BOUNDS.max_items
    assert await charged(engine) > 0


async def test_a_chain_begins_with_what_the_first_was_told(service: ResponseProcess) -> None:
    name = await create(service, "a", "b", "c")
    await service.call("CreateResponse", **in_conversation("r1", name, 3))
    await service.create("r2", "r1")
    await service.talk("DeleteItem", conversation_id=name, id="b")
    chain = await service.call("GetResponseChain", id="r2")
    assert names(chain) == ["a", "c", "in-r1", "out-r1", "in-r2", "out-r2"]
    input_items = await service.call("ListInputItems", id="r1", ascending=True)
    assert names(input_items) == ["a", "c", "in-r1"]
    await service.talk("DeleteConversation", id=name)
    with pytest.raises(GatewayError) as raised:
        await service.call("GetResponseChain", id="r2")
    assert (raised.value.code, raised.value.param) == ("not_found", "conversation_id")


async def test_a_chain_and_its_conversation_have_one_bound(service: ResponseProcess) -> None:
    name = await create(service, "x" * 120)
    new = in_conversation("r1", name, 1)
    new["response"].input[0].json = b"1" * (LIMITS.max_conversation_bytes - 100)
    new["append"] = False
    await service.call("CreateResponse", **new)
    with pytest.raises(GatewayError) as raised:
        await service.call("GetResponseChain", id="r1")
    assert raised.value.code == "too_large"


async def test_a_conversation_is_not_taken_with_a_previous_response(
    service: ResponseProcess,
) -> None:
    for previous, name in (("r0", new_conversation_id()), ("", "talk")):
        new = response("r1", previous)
        new.conversation.id = name
        with pytest.raises(GatewayError) as raised:
            await service.call("CreateResponse", response=new)
        assert raised.value.param.startswith("response.conversation")


async def test_a_conversation_that_is_gone_gets_no_response(service: ResponseProcess) -> None:
    name = await create(service)
    await service.talk("DeleteConversation", id=name)
    await service.call("CreateResponse", **in_conversation("r", name))
    assert (await service.get("r")).id == "r"
    others_conversation = await create(service, user="bob")
    await service.call("CreateResponse", **in_conversation("s", others_conversation))
    assert await all_of(service, others_conversation, "bob") == []


async def test_a_version_before_can_delete_responses(
    service: ResponseProcess, engine: AsyncEngine
) -> None:
    name = await create(service)
    await service.call("CreateResponse", **in_conversation("r", name))
    async with writing(engine) as connection:
        for table in (output_items, contents, responses):
            await connection.execute(delete(table))
    assert (await left(engine))[2] == 0


async def test_items_are_appended_without_their_response(service: ResponseProcess) -> None:
    name = await create(service, "a")
    new = {**in_conversation("r", name), "append": False, "append_only": True}
    await service.call("CreateResponse", **new)
    assert await all_of(service, name) == ["a", "in-r", "out-r"]
    with pytest.raises(GatewayError) as raised:
        await service.get("r")
    assert raised.value.code == "not_found"
    await service.talk("DeleteConversation", id=name)
    await service.call("CreateResponse", **new)  # nothing is left to append to
    new["response"].ClearField("conversation")
    with pytest.raises(GatewayError) as raised:
        await service.call("CreateResponse", **new)
    assert raised.value.param == "response.conversation"


async def test_items_are_appended_without_their_caller(service: ResponseProcess) -> None:
    name = await create(service, "a")
    new = {**in_conversation("r", name), "append": False, "append_only": True}
    calling = asyncio.create_task(service.call("CreateResponse", **new))
    await asyncio.sleep(0)  # the call has begun
    calling.cancel()

    async def are_appended() -> bool:
        return await all_of(service, name) == ["a", "in-r", "out-r"]

    await until(are_appended)
    assert calling.cancelled()


async def test_a_full_disk_refuses_what_adds(service: ResponseProcess) -> None:
    name = await create(service, "a")
    service.disk.fill()
    for method, fields in (
        ("CreateConversation", {}),
        ("UpdateConversation", {"id": name}),
        ("CreateItems", {"conversation_id": name, "items": items("b")}),
    ):
        assert await refusal(service, method, **fields) == "storage_full"
    await service.talk("DeleteConversation", id=name)
