"""Responses that go on from stored conversations, with OpenAI's client over HTTP."""

import asyncio
from collections.abc import AsyncIterator
from itertools import product
from pathlib import Path
from typing import Any

import openai
import pytest
import pytest_asyncio
from openai.types.conversations import ConversationItem
from pydantic import TypeAdapter

from tests.facade.response_clients import ECHO, Gate, ResponseGateway, response_gateway, user
from tests.faults import actions
from tests.gateway_in_process import serving
from tests.upstream.app import create_app
from tests.waiting import until

pytestmark = pytest.mark.asyncio(loop_scope="module")

RECITE = "(sandbox: recite)"
MODEL = "openai/model"
ITEM: TypeAdapter[Any] = TypeAdapter(ConversationItem)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def at(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ResponseGateway]:
    async with response_gateway(tmp_path_factory.mktemp("gateway")) as one:
        yield one


@pytest.mark.parametrize("stored", [True, False])
@pytest.mark.parametrize("stream", [True, False])
async def test_a_response_goes_on_from_a_conversation(
    at: ResponseGateway, stream: bool, stored: bool
) -> None:
    conversation = await at.ada.conversations.create(items=[user("I am Ada.")])
    options: Any = {"model": ECHO, "conversation": conversation.id, "store": stored}
    first = await answered(at, stream, input="And I row.", **options)
    assert first.conversation.id == conversation.id
    second = await answered(at, stream, input=RECITE, instructions="Be terse.", **options)
    said = [
        ("system", "Be terse."),
        ("user", "I am Ada."),
        ("user", "And I row."),
        ("assistant", first.output_text),
        ("user", RECITE),
    ]
    recited = [tuple(part[1:].split("]\n", 1)) for part in second.output_text.split("\n\n")]
    assert recited == said
    assert await at.texts(conversation.id) == [*said[1:], ("assistant", second.output_text)]
    items = (await at.ada.conversations.items.list(conversation.id)).data
    assert items[0].id == second.output[0].id
    for item in items:
        ITEM.validate_python(item.to_dict(), strict=True)
    if stored:
        retrieved = await at.ada.responses.retrieve(second.id)
        assert retrieved.conversation.id == conversation.id


async def answered(at: ResponseGateway, stream: bool, **body: Any) -> Any:
    """Return a response that has ended."""
    if not stream:
        return await at.ada.responses.create(**body)
    *_, last = [event async for event in await at.ada.responses.create(**body, stream=True)]
    assert last.type == "response.completed"
    return last.response


async def test_tools_are_called_in_a_conversation(at: ResponseGateway) -> None:
    tool: Any = {"type": "function", "name": "look", "parameters": {}, "strict": False}
    conversation = await at.ada.conversations.create()
    options: Any = {"model": ECHO, "tools": [tool], "conversation": {"id": conversation.id}}
    first = await at.ada.responses.create(input="Please call look.", **options)
    [call] = [item for item in first.output if item.type == "function_call"]
    output: Any = {"type": "function_call_output", "call_id": call.call_id, "output": "a tree"}
    second = await at.ada.responses.create(input=[output], **options)
    assert "a tree" in second.output_text
    kinds = [kind for kind, _ in await at.texts(conversation.id)]
    assert kinds[0] == "user"
    assert kinds[-2:] == ["function_call_output", "assistant"]


async def test_an_input_is_not_needed_after_items(at: ResponseGateway) -> None:
    conversation = await at.ada.conversations.create()
    with pytest.raises(openai.BadRequestError) as raised:
        await at.ada.responses.create(model=ECHO, conversation=conversation.id)
    assert raised.value.param == "input"
    await at.ada.conversations.items.create(conversation.id, items=[user("Hi")])
    made = await at.ada.responses.create(model=ECHO, conversation=conversation.id)
    assert await at.texts(conversation.id) == [("user", "Hi"), ("assistant", made.output_text)]


async def test_a_conversation_goes_on_at_any_provider(tmp_path: Path) -> None:
    async with serving(create_app()) as upstream:
        providers: Any = {
            "native": {"kind": "openai", "base_url": f"{upstream}/v1", "responses": True},
            "chat": {"kind": "openai", "base_url": f"{upstream}/v1", "responses": False},
            "anthropic": {"kind": "anthropic", "base_url": upstream},
            "gemini": {"kind": "gemini", "base_url": f"{upstream}/v1beta"},
        }
        for one in providers.values():
            one["api_key"] = "k"
        async with response_gateway(tmp_path, providers=providers) as at:
            conversation = await at.ada.conversations.create(items=[user("I am Ada.")])
            said = ["I am Ada."]
            for stream, name in product((False, True), providers):
                options: Any = {"model": f"{name}/echo", "conversation": conversation.id}
                made = await answered(at, stream, input=RECITE, **options)
                place = -1
                for text in said:
                    place = made.output_text.index(text, place + 1)
                said += [f"from {name}"]
                await answered(at, stream, input=said[-1], **options)
            assert len(await at.texts(conversation.id)) == 1 + 4 * 2 * len(providers)


async def test_a_background_response_is_appended_at_its_end(at: ResponseGateway) -> None:
    gate = Gate()
    at.upstream.plays("model", gate.action)
    conversation = await at.ada.conversations.create(items=[user("I am Ada.")])
    made = await at.ada.responses.create(
        model=MODEL, input="Hi", conversation=conversation.id, background=True
    )
    assert (made.status, made.conversation.id) == ("queued", conversation.id)
    await until(lambda: at.upstream.asked("model"))
    assert await at.texts(conversation.id) == [("user", "I am Ada.")]
    gate.opened.set()
    ended = await at.ended(made.id)
    assert (await at.texts(conversation.id))[1:] == [("user", "Hi"), ("assistant", actions.TEXT)]
    assert ended.conversation.id == conversation.id


async def test_what_fails_or_is_left_is_not_appended(at: ResponseGateway) -> None:
    conversation = await at.ada.conversations.create()
    options: Any = {
        "model": MODEL,
        "input": "Hi",
        "conversation": conversation.id,
        "extra_body": {"fallback": "disabled"},
    }
    at.upstream.plays("model", actions.fails(400))
    with pytest.raises(openai.BadRequestError):
        await at.ada.responses.create(**options)
    at.upstream.plays("model", actions.cuts())
    *_, last = [event async for event in await at.ada.responses.create(**options, stream=True)]
    assert last.type == "response.failed"
    at.upstream.plays("model", Gate().action)
    stream = await at.ada.responses.create(**options, stream=True)
    left = ""
    async for event in stream:
        if event.type == "response.created":
            left = event.response.id
        if event.type == "response.output_text.delta":
            break
    await stream.close()

    async def is_stored() -> bool:
        try:
            return bool((await at.ada.responses.retrieve(left)).status == "cancelled")
        except openai.NotFoundError:
            return False

    await until(is_stored)
    assert await at.texts(conversation.id) == []


async def test_responses_at_the_same_time_lose_nothing(at: ResponseGateway) -> None:
    conversation = await at.ada.conversations.create()
    made = await asyncio.gather(
        *(
            at.ada.responses.create(
                model=ECHO,
                input=f"number {number}",
                conversation=conversation.id,
                store=bool(number % 2),
            )
            for number in range(12)
        )
    )
    said = await at.texts(conversation.id)
    pairs = list(zip(said[::2], said[1::2], strict=True))
    assert sorted(pairs) == sorted(
        (("user", f"number {number}"), ("assistant", one.output_text))
        for number, one in enumerate(made)
    )


async def test_a_conversation_that_goes_meanwhile_gets_nothing(at: ResponseGateway) -> None:
    gate = Gate()
    at.upstream.plays("model", gate.action)
    for stored in (True, False):
        conversation = await at.ada.conversations.create()
        stream = await at.ada.responses.create(
            model=MODEL, input="Hi", conversation=conversation.id, stream=True, store=stored
        )
        await anext(aiter(stream))
        await at.ada.conversations.delete(conversation.id)
        gate.opened.set()
        *_, last = [event async for event in stream]
        assert last.type == "response.completed"
        with pytest.raises(openai.NotFoundError):
            await at.ada.conversations.retrieve(conversation.id)


async def test_a_response_of_a_conversation_can_be_continued(at: ResponseGateway) -> None:
    conversation = await at.ada.conversations.create(items=[user("I am Ada.")])
    first = await at.ada.responses.create(
        model=ECHO, input="And I row.", conversation=conversation.id
    )
    await at.ada.conversations.items.create(conversation.id, items=[user("Later.")])
    second = await at.ada.responses.create(model=ECHO, input=RECITE, previous_response_id=first.id)
    assert "I am Ada." in second.output_text
    assert "And I row." in second.output_text
    assert "Later." not in second.output_text
    listed = await at.ada.responses.input_items.list(first.id, order="asc")
    assert [item.content[0].text for item in listed.data] == ["I am Ada.", "And I row."]
    await at.ada.conversations.delete(conversation.id)
    with pytest.raises(openai.BadRequestError) as raised:
        await at.ada.responses.create(model=ECHO, input="x", previous_response_id=second.id)
    assert raised.value.code == "previous_response_not_found"
    assert raised.value.body["message"].startswith("Conversation of the previous response")


async def test_media_that_are_gone_are_named_by_the_field(at: ResponseGateway) -> None:
    file = await at.ada.files.create(file=("a.txt", b"The tide is high."), purpose="user_data")
    sent: Any = {"role": "user", "content": [{"type": "input_file", "file_id": file.id}]}
    conversation = await at.ada.conversations.create(items=[sent])
    await at.ada.responses.create(model=ECHO, input="Hi", conversation=conversation.id)
    await at.ada.files.delete(file.id)
    with pytest.raises(openai.APIStatusError) as raised:
        await at.ada.responses.create(model=ECHO, input="And?", conversation=conversation.id)
    assert raised.value.param == "conversation"


async def test_an_answer_without_room_is_an_error(tmp_path: Path) -> None:
    memory: Any = {"max_conversation_items": 5}
    async with response_gateway(tmp_path, memory=memory) as at:
        at.upstream.plays("model", actions.answers())
        conversation = await at.ada.conversations.create(items=[user(f"{n}") for n in range(4)])
        options: Any = {"model": MODEL, "input": "5", "conversation": conversation.id}
        for stored in (True, False):
            with pytest.raises(openai.APIStatusError) as raised:
                await at.ada.responses.create(**options, store=stored)
            assert (raised.value.status_code, raised.value.param) == (413, "conversation")
            stream = await at.ada.responses.create(**options, store=stored, stream=True)
            assert [event.type async for event in stream][-1] == "response.failed"
        made = await at.ada.responses.create(**options, background=True)
        ended = await at.ended(made.id)
        assert ended.status == "failed"
        assert "the limits of its conversation" in ended.error.message
        assert len(at.upstream.asked("model")) == 5
        assert len(await at.texts(conversation.id)) == 4
