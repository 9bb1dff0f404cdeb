"""The upstream as Anthropic, called with the official SDK."""

import json

import aiohttp
import anthropic
import pytest
from pydantic import BaseModel

from tests.facade.conversations import PICTURE

WEATHER = {
    "name": "get_weather",
    "input_schema": {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
    },
}
HI = [{"role": "user", "content": "hi"}]
THINKING = {"type": "enabled", "budget_tokens": 1024}


class Trip(BaseModel):
    city: str
    days: int


@pytest.fixture
async def client(upstream):
    async with anthropic.AsyncAnthropic(
        base_url=upstream.url, api_key="k-1", max_retries=0
    ) as made:
        yield made


async def test_a_whole_answer(client):
    answer = await client.messages.create(model="sandbox/echo", max_tokens=99, messages=HI)
    assert [block.text for block in answer.content] == ['Sandbox echo: you said "hi".']
    assert (answer.stop_reason, answer.model, answer.role) == ("end_turn", "echo", "assistant")
    assert answer.usage.input_tokens == 1
    assert answer._request_id.startswith("req_")


async def test_a_streamed_answer_is_the_whole_one(client):
    asked = {
        "model": "echo",
        "max_tokens": 2000,
        "thinking": THINKING,
        "messages": [{"role": "user", "content": "use the tool in parallel"}],
        "tools": [WEATHER],
    }
    whole = await client.messages.create(**asked)
    async with client.messages.stream(**asked) as stream:
        streamed = await stream.get_final_message()
    kept = {"content", "stop_reason", "stop_sequence", "usage", "model", "role"}
    ours, theirs = (one.model_dump(include=kept) for one in (whole, streamed))
    for block in theirs["content"]:
        block.pop("parsed_output", None)
    assert ours == theirs
    assert [block["type"] for block in ours["content"]] == [
        "thinking", "text", "tool_use", "tool_use"
    ]  # fmt: skip
    assert ours["usage"]["output_tokens_details"]["thinking_tokens"] > 0


async def test_events_come_in_order_each_with_its_name(upstream):
    body = {
        "model": "echo",
        "max_tokens": 2000,
        "messages": HI,
        "stream": True,
        "thinking": THINKING,
    }
    headers = {"x-api-key": "k", "anthropic-version": "2023-06-01"}
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{upstream.url}/v1/messages", json=body, headers=headers) as response,
    ):
        text = await response.text()
    names = []
    values = []
    for event in text.removesuffix("\n\n").split("\n\n"):
        name, data = event.split("\n")
        value = json.loads(data.removeprefix("data: "))
        names.append(value["type"])
        values.append(value)
        assert name == f"event: {value['type']}"
    assert names[:4] == ["message_start", "ping", "content_block_start", "content_block_delta"]
    assert values[0]["message"]["usage"]["input_tokens"] == 1
    assert values[0]["message"]["stop_reason"] is None
    assert names[-3:] == ["content_block_stop", "message_delta", "message_stop"]
    assert names.count("content_block_start") == names.count("content_block_stop") == 2


async def test_a_tool_loop_with_thinking_sent_back(client):
    messages = [{"role": "user", "content": "get weather"}]
    fixed = {"model": "echo", "max_tokens": 2000, "tools": [WEATHER], "thinking": THINKING}
    asked = await client.messages.create(messages=messages, **fixed)
    assert asked.stop_reason == "tool_use"
    call = asked.content[-1]
    assert call.input == {"city": "get weather"}
    result = {"type": "tool_result", "tool_use_id": call.id, "content": "sunny"}
    messages += [
        {"role": "assistant", "content": asked.content},
        {"role": "user", "content": [result]},
    ]
    answer = await client.messages.create(messages=messages, **fixed)
    assert answer.content[-1].text == 'Sandbox echo: The tool answered "sunny".'


async def test_hidden_thinking_is_known_again(client):
    messages = [{"role": "user", "content": "sandbox: redact"}]
    fixed = {"model": "echo", "max_tokens": 2000, "thinking": THINKING}
    async with client.messages.stream(messages=messages, **fixed) as stream:
        asked = await stream.get_final_message()
    assert asked.content[0].type == "redacted_thinking"
    messages += [{"role": "assistant", "content": asked.content}, *HI]
    await client.messages.create(messages=messages, **fixed)


async def test_thinking_that_is_not_the_sandboxs_own_is_refused(client):
    foreign = {"type": "thinking", "thinking": "hm", "signature": "b3RoZXI="}
    reply = {"role": "assistant", "content": [foreign, {"type": "text", "text": "yes"}]}
    with pytest.raises(anthropic.BadRequestError, match="Invalid `signature`"):
        await client.messages.create(model="echo", max_tokens=9, messages=[*HI, reply, *HI])


async def test_parse_gives_an_object(client):
    answer = await client.messages.parse(
        model="echo", max_tokens=99, messages=HI, output_format=Trip
    )
    assert answer.parsed_output == Trip(city="hi", days=0)


async def test_stop_prefill_and_limit_show_in_the_answer(client):
    stopped = await client.messages.create(
        model="echo", max_tokens=99, messages=HI, stop_sequences=["zz", "said"]
    )
    assert (stopped.stop_reason, stopped.stop_sequence) == ("stop_sequence", "said")
    prefill = {"role": "assistant", "content": "Sandbox echo: you said"}
    continued = await client.messages.create(model="echo", max_tokens=99, messages=[*HI, prefill])
    assert continued.content[0].text == ' "hi".'
    short = await client.messages.create(model="echo", max_tokens=2, messages=HI)
    assert (short.stop_reason, short.usage.output_tokens) == ("max_tokens", 2)


async def test_the_cache_is_counted(client):
    block = {"type": "text", "text": "x" * 400, "cache_control": {"type": "ephemeral"}}
    answer = await client.messages.create(
        model="echo", max_tokens=9, messages=[{"role": "user", "content": [block]}]
    )
    assert answer.usage.cache_creation_input_tokens == 50
    assert answer.usage.input_tokens == 50
    read = await client.messages.create(
        model="echo", max_tokens=9, messages=[{"role": "user", "content": "sandbox: cached"}]
    )
    assert (read.usage.cache_read_input_tokens, read.usage.input_tokens) == (2, 2)


async def test_a_refusal(client):
    answer = await client.messages.create(
        model="echo", max_tokens=99, messages=[{"role": "user", "content": "sandbox: refuse"}]
    )
    assert answer.stop_reason == "refusal"
    assert answer.stop_details.type == "refusal"


async def test_a_count_is_what_the_usage_will_say(client):
    asked = {"model": "echo", "messages": HI, "system": "be brief", "tools": [WEATHER]}
    counted = await client.messages.count_tokens(**asked)
    answer = await client.messages.create(max_tokens=9, **asked)
    assert counted.input_tokens == answer.usage.input_tokens > 5


@pytest.mark.parametrize(
    ("model", "error", "kind"),
    [
        ("fail-429", anthropic.RateLimitError, "rate_limit_error"),
        ("fail-500", anthropic.InternalServerError, "api_error"),
        ("fail-529", anthropic.OverloadedError, "overloaded_error"),
        ("fail-401", anthropic.AuthenticationError, "authentication_error"),
        ("fail-403", anthropic.PermissionDeniedError, "permission_error"),
        ("claude-9", anthropic.NotFoundError, "not_found_error"),
    ],
)
async def test_failures_by_class(client, model, error, kind):
    with pytest.raises(error) as raised:
        await client.messages.create(model=model, max_tokens=9, messages=HI)
    assert raised.value.body["error"]["type"] == kind
    assert raised.value.body["request_id"] == raised.value.request_id


async def test_a_wrong_field_is_named(client):
    with pytest.raises(anthropic.BadRequestError, match=r"messages\.0\.content\.0\.text: "):
        await client.messages.create(
            model="echo",
            max_tokens=9,
            messages=[{"role": "user", "content": [{"type": "text", "text": ""}]}],
        )


async def test_an_image_is_of_the_type_that_it_says(client):
    source = {"type": "base64", "media_type": "image/jpeg", "data": PICTURE}
    body = {"model": "echo", "max_tokens": 9}
    messages = [{"role": "user", "content": [{"type": "image", "source": source}]}]
    with pytest.raises(anthropic.BadRequestError) as raised:
        await client.messages.create(**body, messages=messages)
    assert "appears to be a image/png image" in raised.value.message
    source["media_type"] = "image/png"
    await client.messages.create(**body, messages=messages)


async def test_a_failure_in_a_stream_comes_after_text(client):
    seen = ""
    with pytest.raises(anthropic.APIStatusError, match="overloaded_error"):
        async with client.messages.stream(model="fail-late", max_tokens=99, messages=HI) as stream:
            async for text in stream.text_stream:
                seen += text
    assert seen.startswith("Sandbox")


async def test_models_are_listed(client):
    models = [model async for model in client.models.list()]
    assert [model.id for model in models][:3] == ["echo", "text", "vision"]
    assert (await client.models.retrieve("slow")).display_name == "Sandbox slow"


@pytest.mark.parametrize(
    ("headers", "status", "kind"),
    [
        ({"anthropic-version": "2023-06-01"}, 401, "authentication_error"),
        ({"x-api-key": "k"}, 400, "invalid_request_error"),
    ],
)
async def test_a_key_and_a_version_are_needed(upstream, headers, status, kind):
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{upstream.url}/v1/messages", json={}, headers=headers) as response,
    ):
        assert response.status == status
        body = await response.json()
    assert body["error"]["type"] == kind
    assert body["request_id"] == response.headers["request-id"]


# What Claude Code 2.1 sends to an address of its user's choice.
CODING = [
    "claude-code-20250219",
    "interleaved-thinking-2025-05-14",
    "redact-thinking-2026-02-12",
    "thinking-token-count-2026-05-13",
    "context-management-2025-06-27",
    "prompt-caching-scope-2026-01-05",
    "mid-conversation-system-2026-04-07",
    "effort-2025-11-24",
]
EDITS = {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}


async def test_betas_of_real_clients_are_taken_with_their_fields(client):
    answer = await client.beta.messages.create(
        model="echo",
        max_tokens=64_000,
        messages=HI,
        betas=CODING,
        context_management=EDITS,
        timeout=60,
    )
    assert answer.content[0].text == 'Sandbox echo: you said "hi".'
    asked = {"model": "echo", "messages": HI, "betas": CODING, "context_management": EDITS}
    assert (await client.beta.messages.count_tokens(**asked)).input_tokens == 1


async def test_fields_of_a_beta_are_refused_without_it(client):
    with pytest.raises(anthropic.BadRequestError, match="context_management: Extra inputs"):
        await client.messages.create(
            model="echo",
            max_tokens=9,
            messages=HI,
            extra_body={"context_management": EDITS},
        )


async def test_an_unknown_beta_is_refused(client):
    with pytest.raises(anthropic.BadRequestError) as raised:
        await client.beta.messages.create(
            model="echo", max_tokens=9, messages=HI, betas=[*CODING, "mine-2026-01-01", "yours"]
        )
    assert (
        "Unexpected value(s) `mine-2026-01-01`, `yours` for the `anthropic-beta` header"
        in (raised.value.body["error"]["message"])
    )


async def test_a_body_of_a_beta_is_checked_too(client):
    with pytest.raises(anthropic.BadRequestError, match=r"messages\.0\.content\.0\.text: "):
        await client.beta.messages.create(
            model="echo",
            max_tokens=9,
            messages=[{"role": "user", "content": [{"type": "text", "text": 5}]}],
            betas=CODING,
        )
