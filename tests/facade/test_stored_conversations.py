"""Stored conversations over HTTP with OpenAI's client: items, isolation, limits."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import openai
import pytest
import pytest_asyncio
from openai.types.conversations import Conversation, ConversationItem
from pydantic import TypeAdapter

from services.common.clock import Clock
from tests.facade.response_clients import ECHO, ResponseGateway, response_gateway, user
from tests.faults import actions
from tests.grid import each_row
from tests.manual_clock import ManualClock

pytestmark = pytest.mark.asyncio(loop_scope="module")

MODEL = "openai/model"
UNKNOWN = "conv_gw" + 44 * "0"
ITEM: TypeAdapter[Any] = TypeAdapter(ConversationItem)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def at(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ResponseGateway]:
    async with response_gateway(tmp_path_factory.mktemp("gateway")) as one:
        yield one


async def send(at: ResponseGateway, method: str, path: str, **options: Any) -> tuple[int, Any]:
    """Return the status and the JSON of a request of Ada's below /v1/conversations."""
    url = f"{at.gateway.url}/v1/conversations{path}"
    options.setdefault("headers", at.gateway.bearer())
    async with at.gateway.http.request(method, url, **options) as answer:
        return answer.status, await answer.json()


async def test_a_conversation_is_made_changed_and_deleted(at: ResponseGateway) -> None:
    calls = at.ada.conversations
    made = await calls.create(metadata={"topic": "tides"}, items=[user("Hi")])
    assert Conversation.model_validate(made.to_dict(), strict=True) == made
    assert (made.object, made.metadata) == ("conversation", {"topic": "tides"})
    assert made.id.startswith("conv_")
    assert await calls.retrieve(made.id) == made
    changed = await calls.update(made.id, metadata={"topic": "moons", "new": ""})
    assert changed.metadata == {"topic": "moons", "new": ""}
    assert (changed.id, changed.created_at) == (made.id, made.created_at)
    assert (await calls.update(made.id, metadata=None)).metadata == {}
    gone = await calls.delete(made.id)
    assert gone.to_dict() == {"id": made.id, "object": "conversation.deleted", "deleted": True}
    for call in (calls.retrieve(made.id), calls.items.list(made.id), calls.delete(made.id)):
        with pytest.raises(openai.NotFoundError, match="Conversation with id"):
            await call


async def test_conversations_are_listed_by_their_changes(tmp_path: Path) -> None:
    clock = ManualClock(1_800_000_000.0)
    async with response_gateway(tmp_path, clock=Clock(now=clock.now)) as at:
        made = []
        for number in range(3):
            clock.now_s += 1
            made.append(await at.ada.conversations.create(metadata={"title": str(number)}))
        await at.bob.conversations.create()
        clock.now_s += 1
        await at.ada.conversations.items.create(made[0].id, items=[user("Hi")])
        ids = [made[0].id, made[2].id, made[1].id]
        status, page = await send(at, "GET", "?limit=2")
        assert (status, [one["id"] for one in page["data"]]) == (200, ids[:2])
        assert page["data"][1] == made[2].to_dict()
        assert (page["first_id"], page["last_id"], page["has_more"]) == (ids[0], ids[1], True)
        _, page = await send(at, "GET", f"?after={ids[1]}")
        assert ([one["id"] for one in page["data"]], page["has_more"]) == (ids[2:], False)
        _, page = await send(at, "GET", f"?after={ids[2]}")
        assert (page["data"], page["first_id"]) == ([], "")
        other = await at.bob.conversations.create()
        for query in ("limit=0", "limit=101", "after=", "after=x", f"after={other.id}"):
            status, answer = await send(at, "GET", f"?{query}")
            assert (status, answer["error"]["param"]) == (400, query.split("=")[0])


@pytest.mark.parametrize("options", [{}, {"json": {}}, {"json": {"items": None}}])
async def test_a_conversation_needs_nothing(at: ResponseGateway, options: Any) -> None:
    status, made = await send(at, "POST", "", **options)
    assert (status, made["metadata"]) == (200, {})
    status, page = await send(at, "GET", f"/{made['id']}/items")
    assert (status, page["data"], page["has_more"]) == (200, [], False)


async def test_items_are_read_as_the_client_has_them(at: ResponseGateway) -> None:
    conversation = await at.ada.conversations.create()
    image = {"type": "input_image", "image_url": "data:image/png;base64,AAAA"}
    sent: Any = [
        user("Hi"),
        {"role": "assistant", "content": "Ho"},
        {"role": "user", "content": [{"type": "input_text", "text": "See"}, image]},
        {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "a tree"},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}]},
    ]
    created = await at.ada.conversations.items.create(conversation.id, items=sent)
    listed = await at.ada.conversations.items.list(conversation.id, order="asc")
    assert listed.data == created.data
    assert (created.first_id, created.last_id) == (created.data[0].id, created.data[-1].id)
    assert len({item.id for item in listed.data}) == len(sent)
    for item in listed.data:
        ITEM.validate_python(item.to_dict(), strict=True)
        retrieved = await at.ada.conversations.items.retrieve(
            item.id, conversation_id=conversation.id, include=["message.output_text.logprobs"]
        )
        assert retrieved == item
    assert [item.type for item in listed.data] == [
        *("message", "message", "message"),
        *("function_call", "function_call_output", "reasoning"),
    ]
    deleted = await at.ada.conversations.items.delete(
        listed.data[1].id, conversation_id=conversation.id
    )
    assert deleted == conversation
    left = await at.ada.conversations.items.list(conversation.id, order="asc")
    assert left.data == [listed.data[0], *listed.data[2:]]
    with pytest.raises(openai.NotFoundError, match="not found in the conversation"):
        await at.ada.conversations.items.retrieve(
            listed.data[1].id, conversation_id=conversation.id
        )


async def test_items_come_in_pages(at: ResponseGateway) -> None:
    conversation = await at.ada.conversations.create(items=[user(f"{n}") for n in range(20)])
    await at.ada.conversations.items.create(
        conversation.id, items=[user(f"{n}") for n in range(20, 25)]
    )
    newest = await at.ada.conversations.items.list(conversation.id)
    assert (len(newest.data), newest.has_more) == (20, True)
    walked = [
        item.content[0].text
        async for item in at.ada.conversations.items.list(conversation.id, limit=3)
    ]
    assert walked == [f"{n}" for n in reversed(range(25))]


async def test_an_id_that_is_there_already_becomes_another(at: ResponseGateway) -> None:
    same: Any = {**user("Hi"), "id": "msg_1"}
    conversation = await at.ada.conversations.create(items=[same])
    created = await at.ada.conversations.items.create(conversation.id, items=[same])
    assert created.data[0].id != "msg_1"
    retrieved = await at.ada.conversations.items.retrieve(
        created.data[0].id, conversation_id=conversation.id
    )
    assert retrieved == created.data[0]
    first = await at.ada.conversations.items.retrieve("msg_1", conversation_id=conversation.id)
    assert first.id == "msg_1"


async def test_references_stand_for_stored_output(at: ResponseGateway) -> None:
    answered = await at.ada.responses.create(model=ECHO, input="one")
    reference: Any = {"type": "item_reference", "id": answered.output[0].id}
    conversation = await at.ada.conversations.create(items=[reference])
    assert await at.texts(conversation.id) == [("assistant", answered.output_text)]
    reference["id"] = "msg_none"
    with pytest.raises(openai.NotFoundError) as raised:
        await at.ada.conversations.items.create(conversation.id, items=[user("a"), reference])
    assert raised.value.param == "items[1]"


@each_row(
    ("path", "body", "param"),
    [
        ("", {"metadata": {"k": 1}}, "metadata.k"),
        ("", {"metadata": {str(n): "" for n in range(17)}}, "metadata"),
        ("", {"metadata": {65 * "k": ""}}, "metadata"),
        ("", {"metadata": {"k": 513 * "v"}}, "metadata.k"),
        ("", {"items": 21 * [{"role": "user", "content": "x"}]}, "items"),
        ("", {"items": [{"role": "cook", "content": "x"}]}, "items[0].role"),
        ("", {"items": [{"role": "user", "content": "x", "id": 129 * "x"}]}, "items[0].id"),
        ("", {"items": "x"}, "items"),
        ("/{}", {}, "metadata"),
        ("/{}/items", {}, "items"),
        ("/{}/items", {"items": [{"type": "function_call"}]}, "items[0].call_id"),
        ("/{}/items?limit=0", None, "limit"),
        ("/{}/items?limit=101", None, "limit"),
        ("/{}/items?order=up", None, "order"),
        ("/{}/items?after=nothing", None, "after"),
    ],
)
async def test_what_breaks_a_rule_is_refused(
    at: ResponseGateway, path: str, body: Any, param: str
) -> None:
    conversation = await at.ada.conversations.create(items=[user("Hi")])
    where = path.format(conversation.id)
    method = "GET" if body is None else "POST"
    status, refused = await send(at, method, where, json=body)
    assert status == 400
    assert refused["error"]["param"].startswith(param)
    assert await at.texts(conversation.id) == [("user", "Hi")]


async def test_conversations_of_others_are_unknown(at: ResponseGateway) -> None:
    own = await at.ada.conversations.create(items=[user("secret")])
    item = (await at.ada.conversations.items.list(own.id)).data[0]
    calls, metadata = at.bob.conversations, {"a": "b"}
    for name in (own.id, UNKNOWN, "conv_1", "x" * 300, "a b"):
        said = f"Conversation with id '{name[:128]}"
        for call in (
            calls.retrieve(name),
            calls.update(name, metadata=metadata),
            calls.delete(name),
            calls.items.list(name),
            calls.items.create(name, items=[user("x")]),
            calls.items.retrieve(item.id, conversation_id=name),
            calls.items.delete(item.id, conversation_id=name),
        ):
            with pytest.raises(openai.NotFoundError) as raised:
                await call
            assert raised.value.body["message"].startswith(said)
    for stored in (True, False):
        with pytest.raises(openai.NotFoundError) as refused:
            await at.bob.responses.create(model=ECHO, input="x", conversation=own.id, store=stored)
        assert refused.value.param == "conversation"
        assert refused.value.body["message"] == f"Conversation with id '{own.id}' not found."
    assert await at.texts(own.id) == [("user", "secret")]


async def test_a_conversation_is_bounded(tmp_path: Path) -> None:
    memory: Any = {"max_conversation_items": 5}
    async with response_gateway(tmp_path, memory=memory) as at:
        at.upstream.plays("model", actions.answers())
        conversation = await at.ada.conversations.create(items=[user("1"), user("2"), user("3")])
        await at.ada.responses.create(model=MODEL, input="4", conversation=conversation.id)
        for call in (
            at.ada.conversations.items.create(conversation.id, items=[user("6")]),
            at.ada.conversations.create(items=6 * [user("x")]),
            at.ada.responses.create(model=MODEL, input="6", conversation=conversation.id),
        ):
            with pytest.raises(openai.APIStatusError) as raised:
                await call
            assert (raised.value.status_code, raised.value.code) == (413, "too_large")
            assert raised.value.param == "conversation"
        assert len(at.upstream.asked("model")) == 1
        assert len(await at.texts(conversation.id)) == 5


async def test_storage_that_is_used_up_is_an_error(tmp_path: Path) -> None:
    async with response_gateway(tmp_path, memory={"storage": {"enterprise": 3_000}}) as at:
        conversation = await at.ada.conversations.create(items=[user("Hi")])
        said: list[str | None] = []
        for call in (
            at.ada.conversations.items.create(conversation.id, items=[user("Hi" * 1_500)]),
            at.ada.conversations.create(items=[user("Hi" * 1_500)]),
            at.ada.responses.create(
                model=ECHO, input="Hi" * 1_500, conversation=conversation.id, store=False
            ),
        ):
            with pytest.raises(openai.PermissionDeniedError) as raised:
                await call
            assert raised.value.code == "memory_storage_exceeded"
            said.append(raised.value.param)
        assert said == ["items", "items", "conversation"]
        assert await at.texts(conversation.id) == [("user", "Hi")]


async def test_a_conversation_expires(tmp_path: Path) -> None:
    late = asyncio.Event()
    now = Clock().now
    clock = Clock(now=lambda: now() + (100 if late.is_set() else 0))
    async with response_gateway(tmp_path, clock=clock, memory={"response_ttl_s": 90}) as at:
        made = await at.ada.conversations.create()
        assert await at.ada.conversations.retrieve(made.id) == made
        late.set()
        with pytest.raises(openai.NotFoundError):
            await at.ada.conversations.retrieve(made.id)
