"""Stored responses over HTTP with OpenAI's client: chains, reading, items, deletion, limits."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import openai
import pytest
import pytest_asyncio

from services import SERVICES
from services.common.clock import Clock
from tests.facade.response_clients import ECHO, Gate, ResponseGateway, response_gateway
from tests.facade.sockets import exchange, port_of
from tests.faults import actions
from tests.grid import each_row
from tests.waiting import until

pytestmark = pytest.mark.asyncio(loop_scope="module")

RECITE = "(sandbox: recite)"
MODEL = "openai/model"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def at(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ResponseGateway]:
    async with response_gateway(tmp_path_factory.mktemp("gateway")) as one:
        yield one


async def test_a_chain_carries_the_conversation_on(at: ResponseGateway) -> None:
    create = at.ada.responses.create
    first = await create(model=ECHO, input="I am Ada.", instructions="Be terse.")
    second = await create(model=ECHO, input="And I row.", previous_response_id=first.id)
    third = await create(
        model=ECHO, input=RECITE, previous_response_id=second.id, instructions="Be kind."
    )
    assert third.previous_response_id == second.id
    said = [
        ("system", "Be kind."),
        ("user", "I am Ada."),
        ("assistant", first.output_text),
        ("user", "And I row."),
        ("assistant", second.output_text),
        ("user", RECITE),
    ]
    assert third.output_text == "\n\n".join(f"[{role}]\n{text}" for role, text in said)


async def test_a_chain_branches(at: ResponseGateway) -> None:
    create = at.ada.responses.create
    first = await create(model=ECHO, input="one")
    await create(model=ECHO, input="two", previous_response_id=first.id)
    other = await create(model=ECHO, input=RECITE, previous_response_id=first.id)
    assert "two" not in other.output_text


async def test_steps_with_an_input_carry_the_conversation_on(at: ResponseGateway) -> None:
    first = await at.ada.responses.create(model=ECHO, input="I am Ada.")
    step = {"step_id": "a", "model": ECHO, "parameters": {"input": RECITE, "instructions": "Hm."}}
    config = {"strategy": {"mode": "sequential"}, "steps": [step]}
    second = await at.ada.responses.create(
        model=ECHO,
        input="unused",
        previous_response_id=first.id,
        extra_body={"fallback": "strict", "fallback_config": config},
    )
    said = ("Hm.", "I am Ada.", first.output_text, RECITE)
    assert [part.partition("\n")[2] for part in second.output_text.split("\n\n")] == list(said)


async def test_calls_of_tools_are_carried_on(at: ResponseGateway) -> None:
    tool: Any = {"type": "function", "name": "look", "parameters": {}, "strict": False}
    first = await at.ada.responses.create(model=ECHO, input="Please call look.", tools=[tool])
    [call] = [item for item in first.output if item.type == "function_call"]
    output: Any = {"type": "function_call_output", "call_id": call.call_id, "output": "a tree"}
    second = await at.ada.responses.create(
        model=ECHO, input=[output], tools=[tool], previous_response_id=first.id
    )
    assert "a tree" in second.output_text


@pytest.mark.parametrize("stream", [False, True])
async def test_a_response_is_retrieved_as_it_was_answered(
    at: ResponseGateway, stream: bool
) -> None:
    if stream:
        events = await at.ada.responses.create(model=ECHO, input="Hi", stream=True)
        answered = [event async for event in events][-1].response
    else:
        answered = await at.ada.responses.create(model=ECHO, input="Hi", metadata={"a": "b"})
    retrieved = await at.ada.responses.retrieve(
        answered.id, include=["message.output_text.logprobs"]
    )
    assert retrieved.to_dict() == answered.to_dict()
    assert retrieved.store


async def test_nothing_is_stored_without_store(tmp_path: Path) -> None:
    others = [name for name in SERVICES if name != "memory"]
    async with response_gateway(tmp_path, services=others) as at:
        answered = await at.ada.responses.create(model=ECHO, input="Hi", store=False)
        assert answered.output_text
        stream = await at.ada.responses.create(model=ECHO, input="Hi", store=False, stream=True)
        assert [event.type async for event in stream][-1] == "response.completed"
        with pytest.raises(openai.APIStatusError) as raised:
            await at.ada.responses.create(model=ECHO, input="Hi")
        assert raised.value.status_code == 501


async def test_responses_of_others_are_unknown(at: ResponseGateway) -> None:
    own = await at.ada.responses.create(model=ECHO, input="secret")
    for response_id in (own.id, "resp_" + 48 * "0", "x" * 300, "a b"):
        expected = f"Response with id '{response_id[:128]}"
        for call in (
            at.bob.responses.retrieve(response_id),
            at.bob.responses.cancel(response_id),
            at.bob.responses.delete(response_id),
            at.bob.responses.input_items.list(response_id),
        ):
            with pytest.raises(openai.NotFoundError) as raised:
                await call
            assert raised.value.body["message"].startswith(expected)
            assert raised.value.body["type"] == "invalid_request_error"
        with pytest.raises(openai.BadRequestError) as refused:
            await at.bob.responses.create(model=ECHO, input="x", previous_response_id=response_id)
        assert refused.value.param == "previous_response_id"
        assert refused.value.code == "previous_response_not_found"
    with pytest.raises(openai.NotFoundError) as missing:
        item: Any = {"type": "item_reference", "id": own.output[0].id}
        await at.bob.responses.create(model=ECHO, input=[item])
    assert missing.value.param == "input[0]"
    assert (await at.ada.responses.retrieve(own.id)).output == own.output


async def test_a_deleted_response_is_gone(at: ResponseGateway) -> None:
    first = await at.ada.responses.create(model=ECHO, input="one")
    second = await at.ada.responses.create(model=ECHO, input="two", previous_response_id=first.id)
    status, deleted = await at.send("DELETE", f"/{first.id}")
    assert (status, deleted) == (200, {"id": first.id, "object": "response", "deleted": True})
    with pytest.raises(openai.NotFoundError):
        await at.ada.responses.retrieve(first.id)
    assert (await at.ada.responses.retrieve(second.id)).id == second.id
    with pytest.raises(openai.BadRequestError) as raised:
        await at.ada.responses.create(model=ECHO, input="x", previous_response_id=second.id)
    assert raised.value.body["message"].startswith("A response before")


async def test_input_items_come_in_pages(at: ResponseGateway) -> None:
    first = await at.ada.responses.create(model=ECHO, input="one")
    texts = [f"text {number}" for number in range(5)]
    sent: Any = [{"role": "user", "content": text} for text in texts]
    second = await at.ada.responses.create(model=ECHO, input=sent, previous_response_id=first.id)
    pages = at.ada.responses.input_items.list(second.id, limit=2, order="asc")
    items = [item async for item in pages]
    shown = [
        item.content if isinstance(item.content, str) else item.content[0].text for item in items
    ]
    assert shown == ["one", first.output_text, *texts]
    newest = await at.ada.responses.input_items.list(second.id, limit=2)
    assert [item.id for item in newest.data] == [item.id for item in items[:-3:-1]]
    status, page = await at.get(f"/{second.id}/input_items?limit=3&after={items[5].id}")
    assert status == 200
    assert page.pop("data") and page == {
        "object": "list",
        "first_id": items[4].id,
        "last_id": items[2].id,
        "has_more": True,
    }


@each_row(
    ("path", "param"),
    [
        ("?stream=maybe", "stream"),
        ("?stream=true&starting_after=-1", "starting_after"),
        ("?starting_after=1", "starting_after"),
        ("/input_items?limit=0", "limit"),
        ("/input_items?limit=101", "limit"),
        ("/input_items?order=up", "order"),
        ("/input_items?after=", "after"),
        ("/input_items?after=nothing", "after"),
    ],
)
async def test_queries_are_checked(at: ResponseGateway, path: str, param: str) -> None:
    made = await at.ada.responses.create(model=ECHO, input="Hi")
    status, body = await at.get(f"/{made.id}{path}")
    assert (status, body["error"]["param"]) == (400, param)


async def test_a_synchronous_response_cannot_be_cancelled(at: ResponseGateway) -> None:
    made = await at.ada.responses.create(model=ECHO, input="Hi")
    with pytest.raises(openai.BadRequestError, match="Cannot cancel a synchronous response"):
        await at.ada.responses.cancel(made.id)


async def test_references_stand_for_stored_items(at: ResponseGateway) -> None:
    first = await at.ada.responses.create(model=ECHO, input="one")
    sent: Any = [
        {"role": "user", "content": "Hi"},
        {"type": "item_reference", "id": first.output[0].id},
        {"role": "user", "content": RECITE},
    ]
    second = await at.ada.responses.create(model=ECHO, input=sent, instructions="Be terse.")
    assert second.output_text == (
        f"[system]\nBe terse.\n\n[user]\nHi\n\n[assistant]\n{first.output_text}\n\n[user]\n{RECITE}"
    )
    items = (await at.ada.responses.input_items.list(second.id, order="asc")).data
    assert items[1].id == first.output[0].id
    assert items[1].type == "message"


async def test_media_that_are_gone_are_named_by_the_chain(at: ResponseGateway) -> None:
    file = await at.ada.files.create(file=("a.txt", b"The tide is high."), purpose="user_data")
    sent: Any = [{"role": "user", "content": [{"type": "input_file", "file_id": file.id}]}]
    first = await at.ada.responses.create(model=ECHO, input=sent)
    await at.ada.files.delete(file.id)
    with pytest.raises(openai.APIStatusError) as raised:
        await at.ada.responses.create(model=ECHO, input="And?", previous_response_id=first.id)
    assert raised.value.param == "previous_response_id"
    with pytest.raises(openai.APIStatusError) as own:
        previous = await at.ada.responses.create(model=ECHO, input="Hi")
        await at.ada.responses.create(model=ECHO, input=sent, previous_response_id=previous.id)
    assert own.value.param == "input[0].content[0]"


async def test_the_end_of_a_stream_is_stored_before_it_is_sent(at: ResponseGateway) -> None:
    stream = await at.ada.responses.create(model=ECHO, input="Hi", stream=True)
    async for event in stream:
        if event.type == "response.completed":
            retrieved = await at.ada.responses.retrieve(event.response.id)
            assert retrieved.to_dict() == event.response.to_dict()
            break
    else:
        raise AssertionError("the stream has no end")


async def test_a_failed_stream_is_stored_as_failed(at: ResponseGateway) -> None:
    at.upstream.plays("model", actions.cuts())
    stream = await at.ada.responses.create(
        model=MODEL, input="Hi", stream=True, extra_body={"fallback": "disabled"}
    )
    *_, last = [event async for event in stream]
    assert last.type == "response.failed"
    retrieved = await at.ada.responses.retrieve(last.response.id)
    assert retrieved.to_dict() == last.response.to_dict()
    assert (retrieved.status, retrieved.error is not None) == ("failed", True)


async def test_a_stream_whose_client_leaves_is_stored_as_cancelled(at: ResponseGateway) -> None:
    at.upstream.plays("model", Gate().action)
    stream = await at.ada.responses.create(model=MODEL, input="Hi", stream=True)
    response_id = ""
    async for event in stream:
        if event.type == "response.created":
            response_id = event.response.id
        if event.type == "response.output_text.delta":
            break
    await stream.close()

    async def retrieve() -> Any:
        try:
            return await at.ada.responses.retrieve(response_id)
        except openai.NotFoundError:
            return None

    found = await until(retrieve)
    assert (found.status, found.error) == ("cancelled", None)


async def test_a_response_that_failed_at_once_is_not_stored(at: ResponseGateway) -> None:
    at.upstream.plays("model", actions.fails(400))
    for stream in (False, True):
        with pytest.raises(openai.BadRequestError):
            await at.ada.responses.create(model=MODEL, input="Hi", stream=stream)


async def test_a_conversation_is_a_memory(at: ResponseGateway) -> None:
    first = await at.ada.responses.create(model=ECHO, input="I am Ada.", conversation="talk")
    assert first.conversation is not None and first.conversation.id == "talk"
    second = await at.ada.responses.create(model=ECHO, input=RECITE, conversation="talk")
    assert "I am Ada." in second.output_text
    retrieved = await at.ada.responses.retrieve(second.id)
    assert retrieved.conversation is not None and retrieved.conversation.id == "talk"


async def test_storage_that_is_used_up_is_an_error(tmp_path: Path) -> None:
    memory = {"storage": {"enterprise": 3_000}}
    async with response_gateway(tmp_path, memory=memory) as at:
        await at.ada.responses.create(model=ECHO, input="Hi")
        with pytest.raises(openai.PermissionDeniedError) as raised:
            await at.ada.responses.create(model=ECHO, input="Hi" * 1_000)
        assert raised.value.code == "memory_storage_exceeded"
        assert raised.value.param == "store"
        at.upstream.plays("model", actions.answers())
        for stream in (False, True):
            with pytest.raises(openai.PermissionDeniedError):
                await at.ada.responses.create(model=MODEL, input="Hi" * 1_500, stream=stream)
        assert at.upstream.asked("model") == []
        at.upstream.plays("model", actions.answers("long " * 1_000))
        stream = await at.ada.responses.create(model=MODEL, input="Hi", stream=True)
        types = [event.type async for event in stream]
        assert types[-1] == "response.failed"
        assert "response.completed" not in types
        kept = await at.ada.responses.create(model=ECHO, input="Hi" * 1_000, store=False)
        assert kept.status == "completed"


async def test_a_response_expires(tmp_path: Path) -> None:
    late = asyncio.Event()
    now = Clock().now
    clock = Clock(now=lambda: now() + (100 if late.is_set() else 0))
    async with response_gateway(tmp_path, clock=clock, memory={"response_ttl_s": 90}) as at:
        made = await at.ada.responses.create(model=ECHO, input="Hi")
        assert (await at.ada.responses.retrieve(made.id)).id == made.id
        late.set()
        with pytest.raises(openai.NotFoundError):
            await at.ada.responses.retrieve(made.id)


async def test_the_head_of_a_stream_has_no_body(at: ResponseGateway) -> None:
    made = await at.ada.responses.create(model=ECHO, input="Hi")
    key = at.gateway.bearer()["Authorization"]
    path = f"/beta/v1/responses/{made.id}?stream=true"
    lines = [f"HEAD {path} HTTP/1.1", "Host: a", f"Authorization: {key}", "Connection: close"]
    data = await exchange(port_of(at.gateway.url), "\r\n".join([*lines, "", ""]).encode())
    assert data.startswith(b"HTTP/1.1 200 OK\r\n") and data.endswith(b"\r\n\r\n")
    assert data.count(b"\r\n\r\n") == 1
