"""Storing, reading, expiring and deleting responses, on both engines."""

import asyncio

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.errors.v1 import errors_pb2
from gateway.memory.v1 import responses_pb2 as pb
from services.common.errors import GatewayError
from tests.manual_clock import ManualClock
from tests.services.responses.response_server import (
    DAY_S,
    LIMITS,
    STORAGE,
    ResponseProcess,
    charged,
    content,
    items,
    names,
    response_process,
    rows,
)

NOT_FOUND = errors_pb2.REASON_NOT_FOUND


async def refusal(service: ResponseProcess, method: str, user: str = "ada", **fields) -> str:
    """Return the reason for which a call is refused."""
    with pytest.raises(GatewayError) as raised:
        await service.call(method, user, **fields)
    return raised.value.code


async def test_a_response_is_read_as_it_was_stored(
    service: ResponseProcess, clock: ManualClock
) -> None:
    stored = content("m1", "m2", body='{"id": "r1"}', events=b"data")
    new = pb.NewResponse(id="r1", input=items("i1"), content=stored)
    await service.call("CreateResponse", response=new)
    response = await service.get("r1", with_events=True)
    assert response == pb.StoredResponse(
        id="r1",
        state=pb.StoredResponse.STATE_ENDED,
        created_at_ms=clock.now_ms(),
        expires_at_ms=clock.now_ms() + int(LIMITS.ttl_s * 1000),
        content=stored,
    )
    response.content.events = b""
    assert await service.get("r1") == response


async def test_responses_of_others_are_absent(service: ResponseProcess) -> None:
    await service.create("r1")
    for method in (
        "GetResponse",
        "CancelResponse",
        "DeleteResponse",
        "ListInputItems",
        "GetResponseChain",
    ):
        assert await refusal(service, method, "bob", id="r1") == "not_found"
        assert await refusal(service, method, "ada", id="r2") == "not_found"
    await service.create("r1", user="bob")
    await service.call("DeleteResponse", "bob", id="r1")
    assert (await service.get("r1")).id == "r1"


async def test_an_id_is_used_once(service: ResponseProcess, engine: AsyncEngine) -> None:
    await service.create("r1")
    size = await charged(engine)
    with pytest.raises(GatewayError) as raised:
        await service.create("r1")
    assert raised.value.reason == errors_pb2.REASON_CONFLICT
    assert await charged(engine) == size


async def test_of_responses_stored_at_once_each_is_refused_for_itself(
    service: ResponseProcess, engine: AsyncEngine
) -> None:
    await service.create("r0")
    large = "x" * (STORAGE - await charged(engine))
    calls = [
        *(service.create(f"r{number}", previous="r0") for number in range(1, 6)),
        service.create("r0"),
        service.create("large", body=large),
        *(service.create(f"b{number}", user="bob") for number in range(5)),
    ]
    outcomes = await asyncio.gather(*calls, return_exceptions=True)
    errors = [outcome.code for outcome in outcomes if isinstance(outcome, GatewayError)]
    assert errors == ["conflict", "memory_storage_exceeded"]
    for name in (f"r{number}" for number in range(6)):
        assert (await service.get(name)).id == name
    for name in (f"b{number}" for number in range(5)):
        assert (await service.get(name, "bob")).id == name
    assert await charged(engine) == 6 * await charged(engine, "bob") // 5


async def test_a_cancelled_caller_leaves_the_others_their_responses(
    service: ResponseProcess,
) -> None:
    calls = [asyncio.create_task(service.create(f"r{number}")) for number in range(8)]
    await asyncio.sleep(0)
    calls[0].cancel()
    calls[3].cancel()
    await asyncio.gather(*calls, return_exceptions=True)
    for number in (1, 2, 4, 5, 6, 7):
        assert (await service.get(f"r{number}")).id == f"r{number}"


async def test_a_deleted_response_is_gone_and_freed(
    service: ResponseProcess, engine: AsyncEngine
) -> None:
    await service.create("r1")
    await service.create("r2")
    both = await charged(engine)
    await service.call("DeleteResponse", id="r1")
    assert await refusal(service, "GetResponse", id="r1") == "not_found"
    assert await refusal(service, "DeleteResponse", id="r1") == "not_found"
    assert await charged(engine) == both / 2
    assert await rows(engine) == 1


async def test_a_response_expires(
    service: ResponseProcess, engine: AsyncEngine, clock: ManualClock
) -> None:
    await service.create("r1")
    clock.now_s += LIMITS.ttl_s - 1
    await service.create("r2")
    assert await service.repository.delete_expired(10) == 0
    clock.now_s += 1
    for method in ("GetResponse", "DeleteResponse", "ListInputItems", "GetResponseChain"):
        assert await refusal(service, method, id="r1") == "not_found"
    assert await service.repository.delete_expired(10) == 1
    assert await rows(engine) == 1
    await charged(engine)
    assert (await service.get("r2")).id == "r2"


async def test_expired_responses_are_deleted_in_batches(
    service: ResponseProcess, engine: AsyncEngine, clock: ManualClock
) -> None:
    for number in range(5):
        await service.create(f"r{number}", user=f"user{number % 2}")
    clock.now_s += LIMITS.ttl_s
    assert [await service.repository.delete_expired(3) for _ in range(3)] == [3, 2, 0]
    assert await charged(engine, "user0") == await charged(engine, "user1") == 0


async def test_storage_is_bounded_by_the_plan(
    service: ResponseProcess, engine: AsyncEngine
) -> None:
    body = "x" * (STORAGE // 3)
    await service.create("r1", body=body)
    await service.create("r2", body=body)
    with pytest.raises(GatewayError) as raised:
        await service.create("r3", body=body)
    assert raised.value.code == "memory_storage_exceeded"
    assert raised.value.param == "store"
    assert await rows(engine) == 2
    await service.create("r1", user="bob", body=body)
    await service.call("DeleteResponse", id="r1")
    await service.create("r3", body=body)
    assert 2 * len(body) < await charged(engine) <= STORAGE


async def test_room_is_checked_before(service: ResponseProcess) -> None:
    await service.call("CheckCapacity", input_bytes=STORAGE - 600)
    await service.create("r1")
    await service.call("CheckCapacity", input_bytes=1)
    exceeded = "memory_storage_exceeded"
    assert await refusal(service, "CheckCapacity", input_bytes=STORAGE - 600) == exceeded
    await service.call("CheckCapacity", "bob", input_bytes=STORAGE - 600)
    assert await refusal(service, "CheckCapacity", input_bytes=LIMITS.max_bytes) == "too_large"
    service.disk.fill()
    assert await refusal(service, "CheckCapacity", input_bytes=1) == "storage_full"


@pytest.mark.parametrize("name", ["", "a\0", "x" * 65])
async def test_impossible_ids_are_absent(service: ResponseProcess, name: str) -> None:
    for method in (
        "GetResponse",
        "CancelResponse",
        "DeleteResponse",
        "ListInputItems",
        "GetResponseChain",
    ):
        assert await refusal(service, method, id=name) == "not_found"


async def test_one_response_is_bounded_in_size(engine: AsyncEngine, clock: ManualClock) -> None:
    async with response_process(engine, clock, max_bytes=10_000) as service:
        await service.create("r1", body="x" * 9_000)
        with pytest.raises(GatewayError) as raised:
            await service.create("r2", body="x" * 10_000)
        assert raised.value.code == "too_large"
        assert await rows(engine) == 1


async def test_nothing_is_stored_on_a_full_disk(service: ResponseProcess) -> None:
    await service.create("r1")
    service.disk.fill()
    with pytest.raises(GatewayError) as raised:
        await service.create("r2")
    assert raised.value.code == "storage_full"
    assert (await service.get("r1")).id == "r1"
    await service.call("DeleteResponse", id="r1")


@pytest.mark.parametrize(
    ("new", "param"),
    [
        (pb.NewResponse(), "response.id"),
        (pb.NewResponse(id="x" * 65), "response.id"),
        (pb.NewResponse(id="a\0"), "response.id"),
        (pb.NewResponse(id="a", previous_id="\n"), "response.previous_id"),
        (pb.NewResponse(id="a", input=items("x" * 129)), "response.input[0].id"),
        (pb.NewResponse(id="a", content=content("a", "")), "response.content.output[1].id"),
    ],
)
async def test_ids_are_checked(service: ResponseProcess, new: pb.NewResponse, param: str) -> None:
    with pytest.raises(GatewayError) as raised:
        await service.call("CreateResponse", response=new)
    assert (raised.value.code, raised.value.param) == ("invalid_request", param)


async def test_a_conversation_has_all_items_in_order(service: ResponseProcess) -> None:
    await service.create("r1", sent=["a", "b"])
    await service.create("r2", "r1")
    await service.create("r3", "r2")
    await service.create("other", "r1")
    chain = await service.call("GetResponseChain", id="r3")
    before = ["a", "b", "out-r1", "in-r2", "out-r2", "in-r3"]
    assert names(chain) == [*before, "out-r3"]
    assert chain.items[0].json == b'"a"'
    input_items = await service.call("ListInputItems", id="r3", ascending=True)
    assert names(input_items) == before
    assert not input_items.has_more
    assert names(await service.call("GetResponseChain", id="other")) == [
        *("a", "b", "out-r1", "in-other", "out-other")
    ]


async def test_input_items_are_listed_in_pages(service: ResponseProcess) -> None:
    item_ids = [f"i{number}" for number in range(5)]
    await service.create("r1", sent=item_ids)
    for ascending, expected in ((True, item_ids), (False, item_ids[::-1])):
        listed_ids: list[str] = []
        has_more = True
        while has_more:
            page = await service.call(
                "ListInputItems",
                id="r1",
                page_size=2,
                after=listed_ids[-1] if listed_ids else "",
                ascending=ascending,
            )
            listed_ids += names(page)
            has_more = page.has_more
        assert listed_ids == expected
    assert names(await service.call("ListInputItems", id="r1")) == item_ids[::-1]
    assert await refusal(service, "ListInputItems", id="r1", after="out-r1") == "invalid_request"
    for size in (0, 101):
        assert await refusal(service, "ListInputItems", id="r1", page_size=size) == (
            "invalid_request"
        )


async def test_a_conversation_needs_all_of_its_responses(service: ResponseProcess) -> None:
    await service.create("r1")
    await service.create("r2", "r1")
    await service.create("r3", "r2")
    await service.call("DeleteResponse", id="r1")
    with pytest.raises(GatewayError) as raised:
        await service.call("GetResponseChain", id="r3")
    assert raised.value.reason == NOT_FOUND
    assert "'r1'" in raised.value.message
    assert (await service.get("r3")).previous_id == "r2"


async def test_a_conversation_never_crosses_users(service: ResponseProcess) -> None:
    await service.create("r1", user="bob")
    await service.create("r2", "r1")
    assert await refusal(service, "GetResponseChain", id="r2") == "not_found"


async def test_a_conversation_is_bounded_in_responses(service: ResponseProcess) -> None:
    previous = ""
    for number in range(LIMITS.max_conversation + 1):
        await service.create(f"r{number}", previous)
        previous = f"r{number}"
    last = f"r{LIMITS.max_conversation - 1}"
    assert len(names(await service.call("GetResponseChain", id=last))) == 10
    assert await refusal(service, "GetResponseChain", id=previous) == "too_large"


async def test_a_conversation_is_bounded_in_bytes(service: ResponseProcess) -> None:
    padding = "x" * 100
    item_ids = [f"{number:03}{padding}" for number in range(40)]
    await service.create("r1", sent=item_ids)
    await service.create("r2", "r1", sent=item_ids)
    await service.create("r3", "r2", sent=item_ids)
    assert len(names(await service.call("GetResponseChain", id="r2"))) == 82
    with pytest.raises(GatewayError) as raised:
        await service.call("GetResponseChain", id="r3")
    assert raised.value.code == "too_large"


async def test_a_conversation_lives_as_long_as_its_last_response(
    service: ResponseProcess, clock: ManualClock
) -> None:
    await service.create("r0")
    previous = "r0"
    for number in range(1, LIMITS.max_conversation):
        clock.now_s += LIMITS.ttl_s - DAY_S / 2
        await service.create(f"r{number}", previous)
        previous = f"r{number}"
    clock.now_s += LIMITS.ttl_s - 1
    assert names(await service.call("GetResponseChain", id=previous))[0] == "in-r0"
    clock.now_s += DAY_S + 1
    assert await service.repository.delete_expired(100) == LIMITS.max_conversation


async def test_output_items_are_found_by_their_ids(
    service: ResponseProcess, clock: ManualClock
) -> None:
    await service.create("r1", sent=["sent"])
    await service.create("r2")
    items = await service.call("FindItems", ids=["out-r2", "out-r1", "out-r2"])
    assert names(items) == ["out-r2", "out-r1", "out-r2"]
    for user, item_id in (("bob", "out-r1"), ("ada", "sent"), ("ada", "\0")):
        with pytest.raises(GatewayError) as raised:
            await service.call("FindItems", user, ids=[item_id])
        assert (raised.value.code, raised.value.param) == ("not_found", "ids[0]")
    await service.call("DeleteResponse", id="r1")
    with pytest.raises(GatewayError) as raised:
        await service.call("FindItems", ids=["out-r2", "out-r1"])
    assert raised.value.param == "ids[1]"
    clock.now_s += LIMITS.ttl_s
    assert await refusal(service, "FindItems", ids=["out-r2"]) == "not_found"
    assert await refusal(service, "FindItems", ids=[]) == "invalid_request"


async def test_items_of_many_responses_are_found(service: ResponseProcess) -> None:
    outputs = [f"m{number}" for number in range(600)]
    wide = pb.NewResponse(id="r1", content=pb.ResponseContent(output=items(*outputs)))
    with pytest.raises(GatewayError):
        await service.call("CreateResponse", response=wide)
    del wide.content.output[100:]
    await service.call("CreateResponse", response=wide)
    assert names(await service.call("FindItems", ids=outputs[:100] * 6)) == outputs[:100] * 6


async def test_many_calls_at_once_are_all_counted(
    service: ResponseProcess, engine: AsyncEngine, clock: ManualClock
) -> None:
    async with response_process(engine, clock) as second_process:
        await service.create("first")
        clock.now_s += DAY_S
        both = (service, second_process)
        await asyncio.gather(
            *(both[number % 2].create(f"r{number}", "first") for number in range(16))
        )
        await asyncio.gather(
            *(both[number % 2].call("DeleteResponse", id=f"r{number}") for number in range(8)),
            *(both[number % 2].create(f"s{number}", f"r{number + 8}") for number in range(8)),
        )
    assert await rows(engine) == 17
    assert await charged(engine) > 0


async def test_a_large_chain_is_measured_before_it_is_read(service: ResponseProcess) -> None:
    large = pb.ResponseItem(id="a", json=b"x" * 10_000)
    await service.call("CreateResponse", response=pb.NewResponse(id="r1", input=[large]))
    new = pb.NewResponse(id="r2", previous_id="r1", input=items("b"), content=content("m2"))
    await service.call("CreateResponse", response=new)
    for method, fields in (
        ("GetResponseChain", {"id": "r2"}),
        ("FindItems", {"ids": ["m2"]}),
    ):
        full_answer = await service.call(method, **fields)
        assert full_answer.items and not full_answer.omitted_bytes
        measured = await service.call(method, **fields, max_bytes=1)
        assert not measured.items
        assert sum(len(item.json) for item in full_answer.items) <= measured.omitted_bytes
        assert await service.call(method, **fields, max_bytes=measured.omitted_bytes) == full_answer
