"""Compacted conversations, with OpenAI's client, over models of all dialects."""

import asyncio
import base64
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import openai
import orjson
import pytest
import pytest_asyncio
from aiohttp import web
from openai.types.responses.response_compact_params import ResponseCompactParams

from services.accounts.repository import AccountRepository
from services.common.settings import Storage
from services.common.storage.database import open_engine
from tests.gateway_in_process import running_gateway, serving
from tests.upstream.app import create_app
from tests.upstream.checks import check_of
from tests.upstream.log import Entry, RequestLog

pytestmark = pytest.mark.asyncio(loop_scope="module")

SUMMARY = "[Summary of the conversation so far]"
CONVERSATION: list[Any] = [
    {"role": "developer", "content": "Be brief."},
    {"role": "user", "content": "My dog is called Rex."},
    {"role": "assistant", "content": "A fine name."},
    {"type": "function_call", "call_id": "call_1", "name": "weigh", "arguments": '{"dog":"Rex"}'},
    {"type": "function_call_output", "call_id": "call_1", "output": "11.4 kg"},
    {"role": "user", "content": "He likes tea."},
]
NEXT: Any = {"role": "user", "content": "What does he drink?"}
LOW = [{"type": "compaction", "compact_threshold": 40}]
COMPACTED = {
    "id": "resp_theirs",
    "object": "response.compaction",
    "created_at": 1,
    "output": [{"id": "cmp_theirs", "type": "compaction", "encrypted_content": "gAAAAtheirs"}],
    "usage": {
        "input_tokens": 70,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": 7,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 77,
    },
}


@dataclass(frozen=True)
class Clients:
    """Clients of two users, and what providers were sent."""

    ada: openai.AsyncOpenAI
    bob: openai.AsyncOpenAI
    log: RequestLog
    compacted: list[dict[str, Any]]

    @property
    def requests(self) -> list[Entry]:
        """The requests with a body: others ask what the provider has, at any time."""
        return [entry for entry in self.log.entries if entry.body]

    def sent(self) -> str:
        """Return the last request to a provider, as JSON."""
        return orjson.dumps(self.requests[-1].body).decode()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def clients(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Clients]:
    log, bodies = RequestLog(), []
    check = check_of(ResponseCompactParams)

    async def compact(request: web.Request) -> web.Response:
        bodies.append(await request.json())
        check(bodies[-1])
        return web.json_response(COMPACTED)

    own = web.Application()
    own.router.add_post("/v1/responses/compact", compact)
    folder = tmp_path_factory.mktemp("gateway")
    async with serving(create_app(log)) as url, serving(own) as compacting:
        addresses: dict[str, Any] = {
            "compacting": {"kind": "openai", "base_url": f"{compacting}/v1", "responses": True},
            "responses": {"kind": "openai", "base_url": f"{url}/v1", "responses": True},
            "chats": {"kind": "openai", "base_url": f"{url}/v1"},
            "anthropic": {"kind": "anthropic", "base_url": url},
            "gemini": {"kind": "gemini", "base_url": f"{url}/v1beta"},
        }
        providers = {name: {**one, "api_key": "k"} for name, one in addresses.items()}
        async with running_gateway(folder, url, providers=providers) as gateway:
            database = open_engine(Storage(data_dir=folder))
            other = await AccountRepository(database).create_key("bob")
            await database.dispose()
            base = f"{gateway.url}/v1"
            async with (
                openai.AsyncOpenAI(api_key=gateway.key, base_url=base, max_retries=0) as ada,
                openai.AsyncOpenAI(api_key=other, base_url=base, max_retries=0) as bob,
            ):
                yield Clients(ada, bob, log, bodies)


def decoded(sealed: str) -> bytes:
    """Return the bytes of a sealed summary, of which text of a conversation is no part."""
    return base64.urlsafe_b64decode(sealed.rpartition(".")[2] + "==")


def items_of(output: list[Any]) -> list[Any]:
    return [item.model_dump(exclude_none=True, warnings=False) for item in output]


@pytest.mark.parametrize("model", ["responses/echo", "chats/echo", "anthropic/echo", "gemini/echo"])
async def test_any_model_compacts_and_goes_on(clients: Clients, model: str) -> None:
    compacted = await clients.ada.responses.compact(model=model, input=CONVERSATION)
    asked = clients.sent()
    assert all(text in asked for text in ("called Rex", "11.4 kg", "weigh", "likes tea"))
    assert compacted.object == "response.compaction"
    assert compacted.usage.total_tokens > 50
    *messages, item = compacted.output
    texts = [one.content[0].text for one in messages]  # type: ignore[union-attr]  # text
    assert texts == ["My dog is called Rex.", "He likes tea."]
    assert item.type == "compaction"
    assert b"Rex" not in decoded(item.encrypted_content)
    for following in ("responses/echo", "chats/echo", "anthropic/echo", "gemini/echo"):
        await clients.ada.responses.create(
            model=following, input=[*items_of(compacted.output), NEXT], store=False
        )
        sent = clients.sent()
        assert SUMMARY in sent
        assert sent.index("called Rex") < sent.index(SUMMARY) < sent.index("he drink?")
        assert "gwsum1" not in sent


async def test_a_provider_that_compacts_does_so_itself(clients: Clients) -> None:
    before = len(clients.requests)
    compacted = await clients.ada.responses.compact(
        model="compacting/gpt", input=CONVERSATION, instructions="Keep it.", prompt_cache_key="k"
    )
    assert compacted.model_dump(mode="json", exclude_unset=True) == COMPACTED
    body = clients.compacted[-1]
    assert body.keys() == {"model", "input", "instructions", "prompt_cache_key"}
    assert body["model"] == "gpt"
    assert len(clients.requests) == before
    # What only OpenAI can read is not left out for others.
    with pytest.raises(openai.BadRequestError, match=r"input\[0\]"):
        await clients.ada.responses.create(
            model="chats/echo", input=[*items_of(compacted.output), NEXT]
        )


async def test_a_summary_belongs_to_its_user(clients: Clients) -> None:
    compacted = await clients.ada.responses.compact(model="chats/echo", input=CONVERSATION)
    *_, item = items_of(compacted.output)
    changed = {**item, "encrypted_content": item["encrypted_content"][:-2] + "AA"}
    for client, sent in ((clients.bob, item), (clients.ada, changed)):
        before = len(clients.requests)
        with pytest.raises(openai.BadRequestError, match=r"input\[0\]: must be sent back") as error:
            await client.responses.create(model="chats/echo", input=[sent, NEXT])
        assert error.value.param == "input[0]"
        assert len(clients.requests) == before


@pytest.mark.parametrize("model", ["chats/echo", "anthropic/echo"])
async def test_a_long_conversation_is_compacted_first(clients: Clients, model: str) -> None:
    before = len(clients.requests)
    short = await clients.ada.responses.create(
        model=model,
        input=CONVERSATION,
        context_management=[{"type": "compaction", "compact_threshold": 100_000}],
    )
    assert [item.type for item in short.output] == ["message"]
    assert len(clients.requests) == before + 1
    first = await clients.ada.responses.create(
        model=model, input=[*CONVERSATION, NEXT], context_management=LOW
    )
    assert [item.type for item in first.output] == ["compaction", "message"]
    assert first.usage is not None and first.usage.input_tokens > short.usage.input_tokens * 2
    sent = clients.sent()
    assert SUMMARY in sent and "What does he drink?" in sent and "Be brief." in sent
    # Callers send everything again, or name the response: what was summarised is left out.
    for further in (
        {
            "input": [
                *CONVERSATION,
                NEXT,
                *items_of(first.output),
                {"role": "user", "content": "So?"},
            ]
        },
        {"input": "So?", "previous_response_id": first.id},
    ):
        answer = await clients.ada.responses.create(model=model, **further)
        sent = clients.sent()
        assert SUMMARY in sent and "So?" in sent
        assert '"name":"weigh"' not in sent
        assert [item.type for item in answer.output] == ["message"]


async def test_compactions_are_streamed(clients: Clients) -> None:
    stream = await clients.ada.responses.create(
        model="chats/echo", input=[*CONVERSATION, NEXT], context_management=LOW, stream=True
    )
    events = [event async for event in stream]
    added = [event.item.type for event in events if event.type == "response.output_item.added"]
    assert added == ["compaction", "message"]
    done = events[-1].response
    assert [item.type for item in done.output] == ["compaction", "message"]
    deltas = [event for event in events if event.type == "response.output_text.delta"]
    assert {event.output_index for event in deltas} == {1}
    whole = await clients.ada.responses.retrieve(done.id)
    assert whole.output == done.output


async def test_a_trigger_compacts_and_nothing_more(clients: Clients) -> None:
    trigger: Any = {"type": "compaction_trigger"}
    for stream in (False, True):
        answer: Any = await clients.ada.responses.create(
            model="gemini/echo", input=[*CONVERSATION, trigger], stream=stream
        )
        if stream:
            *_, last = [event async for event in answer]
            answer = last.response
        assert [item.type for item in answer.output] == ["compaction"]
        assert answer.status == "completed"
    with pytest.raises(openai.BadRequestError, match=r"input\[0\]: .* last item"):
        await clients.ada.responses.create(model="gemini/echo", input=[trigger, NEXT])


async def test_what_cannot_be_compacted_is_refused(clients: Clients) -> None:
    rows: list[tuple[dict[str, Any], str]] = [
        ({"stream": True}, "stream"),
        ({"background": True}, "background"),
        ({"conversation": "trip"}, "conversation"),
        ({"input": [CONVERSATION[0]]}, "input"),
        ({"previous_response_id": "resp_unknown"}, "previous_response_id"),
    ]
    for fields, param in rows:
        body = {"input": CONVERSATION, **fields}
        with pytest.raises(openai.BadRequestError) as error:
            await clients.ada.responses.compact(model="chats/echo", extra_body=body)
        assert str(error.value.param).startswith(param), fields
    for value in (0, "many", True):
        managed: Any = [{"type": "compaction", "compact_threshold": value}]
        with pytest.raises(openai.BadRequestError, match="compact_threshold: must be a positive"):
            await clients.ada.responses.create(
                model="chats/echo", input="Hi", context_management=managed
            )


async def test_a_stored_response_is_compacted(clients: Clients) -> None:
    first = await clients.ada.responses.create(model="chats/echo", input="My cat is called Tom.")
    await asyncio.gather(
        *(
            clients.ada.responses.compact(model=model, previous_response_id=first.id)
            for model in ("chats/echo", "anthropic/echo")
        )
    )
    sent = [orjson.dumps(entry.body).decode() for entry in clients.requests]
    assert all("called Tom" in one for one in sent[-2:])
