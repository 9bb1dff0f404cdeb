"""Compacted conversations, with Anthropic's client, over models of other dialects."""

from collections.abc import AsyncIterator
from typing import Any

import anthropic
import orjson
import pytest
import pytest_asyncio

from tests.gateway_in_process import Gateway, running_gateway, serving
from tests.upstream.app import create_app
from tests.upstream.log import Entry, RequestLog

pytestmark = pytest.mark.asyncio(loop_scope="module")

SUMMARY = "[Summary of the conversation so far]"
CONVERSATION: list[Any] = [
    {"role": "user", "content": "My dog is called Rex."},
    {
        "role": "assistant",
        "content": [{"type": "tool_use", "id": "toolu_1", "name": "weigh", "input": {}}],
    },
    {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "11.4 kg"}],
    },
    {"role": "assistant", "content": "Rex is light."},
]
NEXT: Any = {"role": "user", "content": "What is his name?"}
TOOLS: Any = [{"name": "weigh", "input_schema": {"type": "object"}}]
MODELS = ["openai/echo", "gemini/echo"]


def edit(value: int = 30, **more: Any) -> Any:
    trigger = {"type": "input_tokens", "value": value}
    return {"edits": [{"type": "compact_20260112", "trigger": trigger, **more}]}


class Served:
    """A gateway, Anthropic's client, and what the provider was sent."""

    def __init__(self, gateway: Gateway, client: anthropic.AsyncAnthropic, log: RequestLog):
        self.gateway = gateway
        self.log = log
        self._client = client

    async def ask(self, model: str, messages: list[Any], **more: Any) -> Any:
        body = {"model": model, "max_tokens": 100, "messages": messages, **more}
        return await self._client.beta.messages.create(**body)

    def streamed(self, model: str, messages: list[Any], **more: Any) -> Any:
        body = {"model": model, "max_tokens": 100, "messages": messages, **more}
        return self._client.beta.messages.stream(**body)

    @property
    def requests(self) -> list[Entry]:
        """The requests with a body: others ask what the provider has, at any time."""
        return [entry for entry in self.log.entries if entry.body]

    def sent(self) -> str:
        return orjson.dumps(self.requests[-1].body).decode()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Served]:
    log = RequestLog()
    folder = tmp_path_factory.mktemp("gateway")
    async with (
        serving(create_app(log)) as url,
        running_gateway(folder, url) as gateway,
        anthropic.AsyncAnthropic(
            api_key=gateway.key, base_url=gateway.url, max_retries=0
        ) as client,
    ):
        yield Served(gateway, client, log)


@pytest.mark.parametrize("model", MODELS)
async def test_a_long_conversation_is_compacted_first(served: Served, model: str) -> None:
    long = [*CONVERSATION, NEXT]
    short = await served.ask(model, long, tools=TOOLS, context_management=edit(100_000))
    assert [block.type for block in short.content] == ["text"]
    made = await served.ask(
        model, long, tools=TOOLS, system="Be brief.", context_management=edit(instructions="Why?")
    )
    assert [block.type for block in made.content[:2]] == ["compaction", "text"]
    assert "Rex" in made.content[0].content
    assert [one.type for one in made.usage.iterations] == ["compaction", "message"]
    assert made.usage.iterations[1].input_tokens == made.usage.input_tokens
    summarising, answering = (orjson.dumps(one.body).decode() for one in [*served.requests][-2:])
    assert "Why?" in summarising and "11.4 kg" in summarising
    assert SUMMARY in answering and "Be brief." in answering and "toolu_1" not in answering
    blocks = [block.model_dump(exclude_none=True) for block in made.content[:2]]
    again = [*long, {"role": "assistant", "content": blocks}, {"role": "user", "content": "So?"}]
    for following in (*MODELS, "anthropic/echo"):
        await served.ask(following, again, tools=TOOLS)
        sent = served.sent()
        assert SUMMARY in sent and "So?" in sent
        assert "toolu_1" not in sent and "gwall1" not in sent


async def test_a_pause_and_a_request_for_a_summary_end_there(served: Served) -> None:
    for options in (
        {"context_management": edit(pause_after_compaction=True)},
        {"compaction": {"type": "summarize", "instructions": "In verse."}},
    ):
        made = await served.ask("openai/echo", [*CONVERSATION, NEXT], tools=TOOLS, **options)
        assert [block.type for block in made.content] == ["compaction"]
        assert made.stop_reason == "compaction"
        # What the summary took is an iteration of its own.
        (iteration,) = made.usage.iterations
        assert (iteration.type, made.usage.input_tokens) == ("compaction", 0)
        assert iteration.input_tokens > 20 and iteration.output_tokens > 0


async def test_compactions_are_streamed(served: Served) -> None:
    async with served.streamed(
        "openai/echo", [*CONVERSATION, NEXT], tools=TOOLS, context_management=edit()
    ) as stream:
        kinds = [
            (event.index, event.delta.type)
            async for event in stream
            if event.type == "content_block_delta"
        ]
        final = await stream.get_final_message()
    assert kinds[0] == (0, "compaction_delta")
    assert (1, "text_delta") in kinds and all(index for index, _ in kinds[1:])
    assert [block.type for block in final.content[:2]] == ["compaction", "text"]
    assert "Rex" in final.content[0].content and final.content[0].encrypted_content
    summary, answer = final.usage.iterations
    assert (summary.type, answer.type) == ("compaction", "message")
    assert summary.input_tokens > 20
    tokens = (final.usage.input_tokens, final.usage.output_tokens)
    assert (answer.input_tokens, answer.output_tokens) == tokens


async def test_anthropic_compacts_by_itself(served: Served) -> None:
    before = len(served.requests)
    await served.ask(
        "anthropic/echo",
        [*CONVERSATION, NEXT],
        tools=TOOLS,
        context_management=edit(50_000),
        betas=["compact-2026-01-12"],
    )
    assert len(served.requests) == before + 1
    body = served.requests[-1].body
    assert body["context_management"] == edit(50_000)


async def test_other_edits_are_named_and_bad_triggers_refused(served: Served) -> None:
    clearing = {"edits": [*edit()["edits"], {"type": "clear_tool_uses_20250919"}]}
    body = {"model": "openai/echo", "max_tokens": 9, "messages": [*CONVERSATION, NEXT]}
    url, headers = f"{served.gateway.url}/v1/messages", served.gateway.api_key()
    body["tools"] = TOOLS
    sent = {**body, "context_management": clearing}
    async with served.gateway.http.post(url, json=sent, headers=headers) as answer:
        assert answer.status == 200
        assert "context_management" in answer.headers["x-gateway-dropped"]
    sent = {**body, "context_management": edit(0)}
    async with served.gateway.http.post(url, json=sent, headers=headers) as answer:
        error = (await answer.json())["error"]
        assert (answer.status, error["param"]) == (
            400,
            "context_management.edits[0].trigger.value",
        )
