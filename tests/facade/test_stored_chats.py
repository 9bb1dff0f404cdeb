"""Stored chat completions, with OpenAI's client."""

from collections.abc import AsyncIterator
from typing import Any

import openai
import pytest
import pytest_asyncio

from tests.facade.response_clients import ResponseGateway, response_gateway

pytestmark = pytest.mark.asyncio(loop_scope="module")

MODEL = "sandbox/echo"
TOOL: Any = {
    "type": "function",
    "function": {
        "name": "weigh",
        "parameters": {"type": "object", "properties": {"dog": {"type": "string"}}},
    },
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ResponseGateway]:
    folder = tmp_path_factory.mktemp("gateway")
    async with response_gateway(folder, memory={"max_response_bytes": 20_000}) as gateway:
        yield gateway


def said(text: str) -> Any:
    return [{"role": "user", "content": text}]


async def test_a_chat_is_stored_listed_changed_and_deleted(served: ResponseGateway) -> None:
    chats = served.ada.chat.completions
    parts = [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}, *said("there")]
    messages: Any = [{"role": "system", "content": "Be brief."}, *parts]
    made = await chats.create(model=MODEL, messages=messages, store=True, metadata={"a": "1"})
    stored = await chats.retrieve(made.id)
    assert stored.model_dump(exclude={"metadata"}) == made.model_dump(exclude={"metadata"})
    assert stored.metadata == {"a": "1"}
    listed = [one async for one in chats.messages.list(made.id, limit=2)]
    assert [one.content for one in listed] == ["Be brief.", None, "there"]
    assert listed[1].content_parts is not None and listed[1].content_parts[0].type == "text"
    newest = await chats.messages.list(made.id, order="desc", limit=1)
    assert newest.data[0].id == listed[-1].id and newest.has_more
    changed = await chats.update(made.id, metadata={"b": "2"})
    assert changed.metadata == {"b": "2"} == (await chats.retrieve(made.id)).metadata
    assert (await chats.delete(made.id)).deleted
    for call in (chats.retrieve, chats.delete, chats.messages.list):
        with pytest.raises(openai.NotFoundError, match=made.id):
            await call(made.id)


async def test_a_stream_is_stored_as_its_client_reads_it(served: ResponseGateway) -> None:
    chats = served.ada.chat.completions
    for messages, options in (
        (said("Hello, streams"), {"stream_options": {"include_usage": True}}),
        (said("weigh"), {"tools": [TOOL]}),
    ):
        async with chats.stream(model=MODEL, messages=messages, store=True, **options) as stream:
            final = await stream.get_final_completion()
        stored = await chats.retrieve(final.id)
        message, expected = stored.choices[0].message, final.choices[0].message
        assert message.content == expected.content
        calls, expected_calls = message.tool_calls or [], expected.tool_calls or []
        assert len(calls) == len(expected_calls) == len(options.get("tools", ()))
        for call, expected_call in zip(calls, expected_calls, strict=True):
            assert call.type == "function" and call.id == expected_call.id
            assert call.function.arguments == expected_call.function.arguments
        assert stored.choices[0].finish_reason == final.choices[0].finish_reason
        assert stored.usage is not None and stored.usage.total_tokens > 0


async def test_lists_are_pages_of_what_matches(served: ResponseGateway) -> None:
    chats = served.ada.chat.completions
    ids = []
    for number in range(5):
        notes = {"place": "here" if number % 2 else 'he"re', "of": "pages"}
        made = await chats.create(
            model=MODEL, messages=said(str(number)), store=True, metadata=notes
        )
        ids.append(made.id)
    of: Any = {"metadata": {"of": "pages"}}
    assert [one.id async for one in chats.list(limit=2, **of)] == ids
    assert [one.id async for one in chats.list(limit=2, order="desc", **of)] == ids[::-1]
    quoted: Any = {"of": "pages", "place": 'he"re'}
    assert [one.id async for one in chats.list(metadata=quoted)] == ids[::2]
    assert [one.id async for one in chats.list(model="echo", **of)] == ids
    assert [one.id async for one in chats.list(model="other", **of)] == []
    assert [one.id async for one in chats.list(metadata={"place": "HERE"})] == []
    for query, param in (
        ({"limit": 0}, "limit"),
        ({"order": "up"}, "order"),
        ({"after": "chatcmpl-unknown"}, "after"),
    ):
        with pytest.raises(openai.BadRequestError) as error:
            await chats.list(**query)
        assert error.value.param == param


async def test_a_chat_belongs_to_its_user(served: ResponseGateway) -> None:
    made = await served.ada.chat.completions.create(model=MODEL, messages=said("Mine"), store=True)
    others = served.bob.chat.completions
    assert [one async for one in others.list()] == []
    for call in (others.retrieve, others.delete, others.messages.list):
        with pytest.raises(openai.NotFoundError):
            await call(made.id)
    with pytest.raises(openai.NotFoundError):
        await others.update(made.id, metadata={})
    with pytest.raises(openai.BadRequestError):
        await others.list(after=made.id)


async def test_nothing_is_stored_unless_it_is_asked(served: ResponseGateway) -> None:
    chats = served.bob.chat.completions
    for options in ({}, {"store": False}, {"store": None}):
        made = await chats.create(model=MODEL, messages=said("Hi"), **options)
        with pytest.raises(openai.NotFoundError):
            await chats.retrieve(made.id)
    with pytest.raises(openai.RateLimitError):
        await chats.create(model="sandbox/fail-429", messages=said("Hi"), store=True)
    for notes in ({"a": 1}, {"a": "x" * 513}, {str(n): "" for n in range(17)}):
        with pytest.raises(openai.BadRequestError, match="metadata"):
            await chats.create(model=MODEL, messages=said("Hi"), store=True, metadata=notes)
    with pytest.raises(openai.APIStatusError, match="store: false") as error:
        await chats.create(model=MODEL, messages=said("long " * 5_000), store=True)
    assert error.value.status_code == 413
    assert [one async for one in chats.list()] == []
