"""Remembered conversations over HTTP: the facade, inference and memory together."""

import asyncio
import base64
import itertools
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import orjson
import pytest
import pytest_asyncio

from tests.facade.conversations import PICTURE
from tests.gateway_in_process import Gateway, running_gateway
from tests.waiting import until

pytestmark = pytest.mark.asyncio(loop_scope="module")

CHAT, MESSAGES = "/beta/v1/chat/completions", "/beta/v1/messages"
BOTH = pytest.mark.parametrize("path", [CHAT, MESSAGES])
STREAMED = pytest.mark.parametrize("stream", [False, True])
PATIENCE_S = 30
TINY = {"name": "tiny", "provider": "sandbox", "upstream": "echo", "context_window": 3000}
NAMES = itertools.count(1)
LOOK = {"type": "object", "properties": {"city": {"type": "string"}}}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Gateway]:
    folder = tmp_path_factory.mktemp("gateway")
    memory = {"lock_wait_s": PATIENCE_S, "quota": {"enterprise": 1000}}
    async with running_gateway(folder, models=[TINY], memory=memory) as one:
        yield one


@pytest.fixture
def name() -> str:
    """Return the name of a memory that no other test has."""
    return f"memory/{next(NAMES)}"


def said(role: str, content: Any) -> dict[str, Any]:
    return {"role": role, "content": content}


class RememberedConversation:
    """Speaks to one memory over one endpoint."""

    def __init__(self, gateway: Gateway, path: str, name: str, **fields: Any) -> None:
        self.gateway = gateway
        self.path = path
        self.name = name
        self.fields = fields

    def body(self, *messages: dict[str, Any], **fields: Any) -> dict[str, Any]:
        return {
            "model": "sandbox/echo",
            "max_tokens": 1000,
            "messages": list(messages),
            "memory_id": self.name,
            **self.fields,
            **fields,
        }

    def headers(self) -> dict[str, str]:
        return self.gateway.bearer() if self.path == CHAT else self.gateway.api_key()

    async def ask(self, *messages: dict[str, Any], **fields: Any) -> tuple[Any, Any]:
        """Send messages; give the answer's head and the JSON of its body."""
        async with self.gateway.http.post(
            self.gateway.url + self.path,
            json=self.body(*messages, **fields),
            headers=self.headers(),
        ) as answer:
            body = await answer.read()
            is_stream = answer.content_type == "text/event-stream"
            return answer, body.decode() if is_stream else orjson.loads(body)

    async def say(self, *messages: dict[str, Any] | str, **fields: Any) -> str:
        """Send messages, a text being the user's; give the text of the answer."""
        sent = [one if isinstance(one, dict) else said("user", one) for one in messages]
        answer, body = await self.ask(*sent, **fields)
        assert answer.status == 200, body
        if isinstance(body, str):
            return body
        if self.path == CHAT:
            return body["choices"][0]["message"]["content"]
        return "".join(block.get("text", "") for block in body["content"])

    async def see(self, path: str = "") -> Any:
        name = self.name.replace("/", "%2F")
        url = f"{self.gateway.url}/beta/v1/memories/{name}{path}"
        async with self.gateway.http.get(url, headers=self.gateway.bearer()) as answer:
            body = await answer.json()
            return body if answer.status == 200 else answer.status

    async def turns(self) -> list[list[str]]:
        """Return the texts of each turn, the oldest first; of other parts their types."""
        listed = await self.see("/turns?limit=1000")
        return [
            [
                " ".join(part.get("text", part["type"]) for part in message["content"])
                for message in turn["messages"]
            ]
            for turn in reversed(listed["data"])
        ]


def echo(text: str) -> str:
    return f'Sandbox echo: you said "{text}".'


@BOTH
@STREAMED
@pytest.mark.parametrize("model", ["sandbox/echo", "openai/echo", "anthropic/echo"])
async def test_a_turn_is_there_for_the_next(gateway, path, stream, model, name):
    conversation = RememberedConversation(gateway, path, name, stream=stream, model=model)
    for number in range(3):
        await conversation.say(f"Thing {number}")
    assert await conversation.turns() == [[f"Thing {n}", echo(f"Thing {n}")] for n in range(3)]
    recited = await conversation.say("sandbox: recite", stream=False)
    assert recited.index("Thing 0") < recited.index("Thing 1") < recited.index("Thing 2")


@BOTH
async def test_however_much_is_sent_the_memory_is_the_same(gateway, path, name):
    whole, tail, newest = (RememberedConversation(gateway, path, f"{name}-{way}") for way in "wtn")
    history: list[dict[str, Any]] = []
    for number in range(8):
        history.append(said("user", f"Thing {number}"))
        answer = await whole.say(*history)
        assert await tail.say(*history[-3:]) == answer
        assert await newest.say(history[-1]) == answer
        history.append(said("assistant", answer))
    assert await whole.turns() == await tail.turns() == await newest.turns()


@BOTH
async def test_a_conversation_continues_over_the_other_endpoint(gateway, path, name):
    await RememberedConversation(gateway, path, name).say("One")
    other = RememberedConversation(gateway, MESSAGES if path == CHAT else CHAT, name)
    assert "One" in await other.say("sandbox: recite")
    assert len(await other.turns()) == 2


@BOTH
async def test_instructions_are_never_remembered(gateway, path, name):
    conversation = RememberedConversation(gateway, path, name)
    if path == CHAT:
        await conversation.say(said("system", "Be a fox."), "One", model="tiny", stop=["fox"])
    else:
        await conversation.say("One", system="Be a fox.", stop_sequences=["fox"])
    assert "fox" not in str(await conversation.turns())
    assert "fox" not in await conversation.say("sandbox: recite")


@BOTH
@STREAMED
async def test_a_failure_writes_nothing(gateway, path, stream, name):
    conversation = RememberedConversation(gateway, path, name, fallback="disabled")
    await conversation.ask(said("user", "One"), model="sandbox/fail-500", stream=stream)
    await conversation.ask(said("user", "One"), model="sandbox/cut", stream=stream)
    assert await conversation.see() == 404
    await conversation.say("Two")
    assert await conversation.turns() == [["Two", echo("Two")]]


@BOTH
async def test_reading_alone_makes_no_memory_and_adds_to_none(gateway, path, name):
    conversation = RememberedConversation(gateway, path, name)
    await conversation.say("One", memory_config={"memory_mode": "read_only"})
    assert await conversation.see() == 404
    await conversation.say("One")
    recited = await conversation.say("sandbox: recite", memory_config={"memory_mode": "read_only"})
    assert echo("One") in recited
    assert len(await conversation.turns()) == 1


async def test_tools_are_called_over_a_memory_in_chat(gateway, name):
    function = {"name": "look", "parameters": LOOK}
    tools = [{"type": "function", "function": function}]
    conversation = RememberedConversation(gateway, CHAT, name, tools=tools)
    _, body = await conversation.ask(said("user", "Ask the tool look"))
    (call,) = body["choices"][0]["message"]["tool_calls"]
    assert (await conversation.see("/turns"))["data"][0]["open"] is True
    result = {"role": "tool", "tool_call_id": call["id"], "content": "sunny"}
    assert "sunny" in await conversation.say(result)
    (turn,) = (await conversation.see("/turns"))["data"]
    assert turn["open"] is False
    assert [one["role"] for one in turn["messages"]] == ["user", "assistant", "user", "assistant"]


@pytest.mark.parametrize("model", ["sandbox/echo", "openai/echo", "anthropic/echo"])
async def test_tools_are_called_over_a_memory_in_messages(gateway, model, name):
    tools = [{"name": "look", "input_schema": LOOK}]
    conversation = RememberedConversation(gateway, MESSAGES, name, tools=tools, model=model)
    for number in range(15):
        await conversation.say(f"Lamp {number}")
    asked = said("user", "Ask the tool look about the lamp")
    thinking = {"type": "enabled", "budget_tokens": 1024}
    _, body = await conversation.ask(asked, thinking=thinking, max_tokens=3000)
    call = next(block for block in body["content"] if block["type"] == "tool_use")
    answered = {"type": "tool_result", "tool_use_id": call["id"], "content": "bright"}
    # The results and what the user says with them, as a whole transcript with its thoughts.
    more = said("user", [answered, {"type": "text", "text": "And now?"}])
    sent = [asked, said("assistant", body["content"]), more]
    answer = await conversation.say(*sent, thinking=thinking, max_tokens=3000)
    assert "bright" in answer
    assert "Lamp 0" in answer  # quoted
    last = (await conversation.turns())[-2:]
    assert [len(messages) for messages in last] == [3, 2]


@BOTH
async def test_a_prefill_is_one_message_with_what_continues_it(gateway, path, name):
    conversation = RememberedConversation(gateway, path, name)
    await conversation.say("One", said("assistant", "Sandbox echo: you"))
    assert await conversation.turns() == [["One", echo("One")]]


@BOTH
async def test_of_several_answers_the_first_is_remembered(gateway, path, name):
    conversation = RememberedConversation(gateway, CHAT, name)
    await conversation.say("One", n=2)
    assert await conversation.turns() == [["One", echo("One")]]


def picture(path: str) -> list[dict[str, Any]]:
    if path == CHAT:
        url = f"data:image/png;base64,{PICTURE}"
        return [{"type": "image_url", "image_url": {"url": url}}]
    source = {"type": "base64", "media_type": "image/png", "data": PICTURE}
    return [{"type": "image", "source": source}]


@BOTH
async def test_a_picture_is_seen_as_long_as_it_is_sent(gateway, path, name):
    conversation = RememberedConversation(gateway, path, name)
    seen = said("user", picture(path))
    answer = await conversation.say(seen)
    assert "PNG of 7x5" in answer
    again = await conversation.say(seen, said("assistant", answer), "Look again")
    assert "PNG of 7x5" in again
    assert len(await conversation.turns()) == 2
    assert "[image, image/png: no longer kept]" in await conversation.say("sandbox: recite")


@BOTH
async def test_a_file_is_seen_as_long_as_it_is_there(gateway, path, name):
    form = aiohttp.FormData({"purpose": "assistants"})
    form.add_field("file", base64.b64decode(PICTURE), filename="a.png")
    files = f"{gateway.url}/beta/v1/files"
    async with gateway.http.post(files, data=form, headers=gateway.bearer()) as answer:
        file_id = (await answer.json())["id"]
    part = (
        {"type": "image_url", "image_url": {"url": file_id}}
        if path == CHAT
        else {"type": "image", "source": {"type": "file", "file_id": file_id}}
    )
    conversation = RememberedConversation(gateway, path, name)
    assert "PNG of 7x5" in await conversation.say(said("user", [part]))
    assert "PNG of 7x5" in await conversation.say("Look again")
    assert "PNG of 7x5" not in await conversation.say("And you?", model="sandbox/text")
    async with gateway.http.delete(f"{files}/{file_id}", headers=gateway.bearer()) as answer:
        assert answer.status == 200
    assert "no longer kept" in await conversation.say("sandbox: recite")


@BOTH
@STREAMED
async def test_turns_beyond_the_context_are_dropped_and_reported(gateway, path, stream, name):
    conversation = RememberedConversation(gateway, path, name)
    for number in range(7):
        await conversation.say(f"Thing {number} " + "word " * 100)
    answer, _ = await conversation.ask(said("user", "Hi"), model="tiny", stream=stream)
    assert answer.status == 200
    left_out = int(answer.headers["x-memory-truncated"])
    assert 0 < left_out < 7
    recited = await conversation.say("sandbox: recite", model="tiny")
    assert f"Thing {left_out + 1} " in recited
    assert f"Thing {left_out - 1} " not in recited
    answer, _ = await conversation.ask(said("user", "Hi"), stream=stream)
    assert "x-memory-truncated" not in answer.headers


async def test_tokens_are_counted_as_they_would_be_sent(gateway, name):
    conversation = RememberedConversation(gateway, MESSAGES, name)
    counting = RememberedConversation(gateway, f"{MESSAGES}/count_tokens", name)

    async def count() -> int:
        body = counting.body(said("user", "Hi"))
        del body["max_tokens"]
        async with gateway.http.post(
            gateway.url + counting.path, json=body, headers=gateway.api_key()
        ) as answer:
            return (await answer.json())["input_tokens"]

    before = await count()
    assert await conversation.see() == 404
    await conversation.say("word " * 100)
    assert await count() > before + 100
    assert len(await conversation.turns()) == 1


async def opened(conversation: RememberedConversation, model: str) -> asyncio.StreamWriter:
    """Ask for a stream; give the connection once some of the answer has come."""
    port = int(conversation.gateway.url.rpartition(":")[2])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    body = orjson.dumps(conversation.body(said("user", "Hello there"), model=model, stream=True))
    headers = {**conversation.headers(), "content-type": "application/json", "host": "gateway"}
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    writer.write(
        f"POST {conversation.path} HTTP/1.1\r\n{head}content-length: {len(body)}\r\n\r\n".encode()
    )
    writer.write(body)
    async with asyncio.timeout(PATIENCE_S):
        await reader.readuntil(b"Sandbox")
    return writer


@BOTH
async def test_an_answer_whose_reader_left_is_remembered_whole(gateway, path, name):
    conversation = RememberedConversation(gateway, path, name)
    writer = await opened(conversation, "sandbox/slow")
    writer.transport.abort()
    async with asyncio.timeout(PATIENCE_S):
        while await conversation.see() == 404:
            pass
    assert await conversation.turns() == [["Hello there", 'Sandbox slow: you said "Hello there".']]


@BOTH
async def test_only_one_writes_and_others_are_asked_to_wait(tmp_path, path, name):
    # One of its own: in others nobody is to be refused because a machine is busy.
    memory = {"lock_wait_s": 0.2, "leave_drain_s": 0}
    async with running_gateway(tmp_path, memory=memory) as gateway:
        conversation = RememberedConversation(gateway, path, name)
        await conversation.say("One")

        async def is_free() -> bool:
            return (await conversation.see())["state"] != "writing"

        await until(is_free)
        writer = await opened(conversation, "sandbox/stall-half")
        answer, body = await conversation.ask(said("user", "Two"))
        assert (answer.status, body["error"]["code"]) == (429, "memory_busy")
        assert int(answer.headers["Retry-After"]) >= 1
        assert (await conversation.see())["state"] == "writing"
        # Whoever reads does not wait for who writes.
        await conversation.say("Two", memory_config={"memory_mode": "read_only"})
        writer.close()


@BOTH
async def test_a_memory_that_is_one_too_many_is_refused(tmp_path, path):
    async with running_gateway(tmp_path, memory={"quota": {"enterprise": 1}}) as gateway:
        await RememberedConversation(gateway, path, "a").say("One")
        answer, body = await RememberedConversation(gateway, path, "b").ask(said("user", "One"))
        assert (answer.status, body["error"]["code"]) == (403, "memory_quota_exceeded")
        url = f"{gateway.url}/beta/v1/memories/a"
        async with gateway.http.delete(url, headers=gateway.bearer()) as deleted:
            assert deleted.status == 200
        await RememberedConversation(gateway, path, "b").say("One")


@BOTH
async def test_a_profile_takes_part_without_a_memory(gateway, path):
    conversation = RememberedConversation(gateway, path, "")
    url = f"{gateway.url}/beta/v1/memory/profile"

    async def profile(method: str) -> Any:
        async with gateway.http.request(method, url, headers=gateway.bearer()) as answer:
            return await answer.json()

    fields = {"memory_id": None, "memory_config": {"personal_memory": True}}
    before = await conversation.see("?limit=1")
    await conversation.say("My name is Ada.", **fields)
    async with asyncio.timeout(PATIENCE_S):
        while not (known := await profile("GET"))["facts"]:
            pass
    assert [fact["value"] for fact in known["facts"]] == ["Ada"]
    history = ["Hi", said("assistant", "Hello"), "sandbox: recite"]
    recited = await conversation.say(*history, **fields)
    assert recited.startswith("[system]\n")
    assert "Ada" in recited
    assert recited.endswith("[user]\nHi\n\n[assistant]\nHello\n\n[user]\nsandbox: recite")
    await profile("DELETE")
    assert (await profile("GET"))["facts"] == []
    assert await conversation.see("?limit=1") == before


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"model": "sandbox/fail-500", "fallback": "disabled"}, 502),
        ({"model": "sandbox/fail-context"}, 400),
        ({"content": [{"type": "file", "file": {"file_id": "file-" + "0" * 26}}]}, 404),
    ],
    ids=["failed", "refused", "unknown file"],
)
@STREAMED
async def test_a_failed_request_frees_its_slot_before_the_answer(tmp_path, fields, status, stream):
    async with running_gateway(tmp_path, memory={"quota": {"enterprise": 1}}) as gateway:
        for number in range(20):
            conversation = RememberedConversation(gateway, CHAT, f"memory/{number}", stream=stream)
            content = fields.get("content", "Hello")
            options = {name: value for name, value in fields.items() if name != "content"}
            answer, body = await conversation.ask(said("user", content), **options)
            assert answer.status == status, (number, body)
