"""The upstream as OpenAI, called with the official SDK."""

import json

import aiohttp
import openai
import pytest
from pydantic import BaseModel

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
            "additionalProperties": False,
        },
    },
}
HI = [{"role": "user", "content": "hi"}]


class Trip(BaseModel):
    city: str
    days: int
    stops: list[str]


@pytest.fixture
async def client(upstream):
    async with openai.AsyncOpenAI(
        base_url=f"{upstream.url}/v1", api_key="sk-1", max_retries=0
    ) as made:
        yield made


async def test_a_whole_answer(client):
    answer = await client.chat.completions.create(model="sandbox/echo", messages=HI)
    assert answer.choices[0].message.content == 'Sandbox echo: you said "hi".'
    assert answer.choices[0].finish_reason == "stop"
    assert answer.model == "echo"
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens
    assert answer._request_id.startswith("req_")


async def test_a_streamed_answer_is_the_whole_one(client):
    stream = await client.chat.completions.create(
        model="echo", messages=HI, stream=True, stream_options={"include_usage": True}
    )
    chunks = [chunk async for chunk in stream]
    texts = [chunk.choices[0].delta.content for chunk in chunks[:-1]]
    assert "".join(filter(None, texts)) == 'Sandbox echo: you said "hi".'
    assert len(list(filter(None, texts))) > 3
    assert [c.choices[0].delta.role for c in chunks[:-1]] == ["assistant"] + [None] * (
        len(chunks) - 2
    )
    assert [c.choices[0].finish_reason for c in chunks[:-1]][-2:] == [None, "stop"]
    assert len({(chunk.id, chunk.created) for chunk in chunks}) == 1
    assert chunks[-1].choices == []
    assert chunks[-1].usage.prompt_tokens == 1
    assert all(chunk.usage is None for chunk in chunks[:-1])
    assert all("usage" in chunk.model_fields_set for chunk in chunks)


async def test_a_tool_loop(client):
    messages = [{"role": "user", "content": "get weather, parallel"}]
    asked = await client.chat.completions.create(model="echo", messages=messages, tools=[WEATHER])
    calls = asked.choices[0].message.tool_calls
    assert asked.choices[0].finish_reason == "tool_calls"
    assert json.loads(calls[0].function.arguments) == {"city": "get weather, parallel"}
    assert len({call.id for call in calls}) == 2
    messages.append(asked.choices[0].message.model_dump(exclude_none=True, exclude={"annotations"}))
    messages += [
        {"role": "tool", "tool_call_id": call.id, "content": f"sunny {place}"}
        for place, call in enumerate(calls)
    ]
    answer = await client.chat.completions.create(model="echo", messages=messages, tools=[WEATHER])
    assert answer.choices[0].message.content == (
        'Sandbox echo: The tool answered "sunny 0". The tool answered "sunny 1".'
    )


async def test_streamed_tool_calls_accumulate(client):
    async with client.chat.completions.stream(
        model="echo", messages=[{"role": "user", "content": "parallel"}], tools=[WEATHER]
    ) as stream:
        final = await stream.get_final_completion()
    calls = final.choices[0].message.tool_calls
    assert [call.function.name for call in calls] == ["get_weather"] * 2
    assert [json.loads(call.function.arguments) for call in calls] == [{"city": "parallel"}] * 2
    assert len({call.id for call in calls}) == 2


async def test_a_custom_tool_is_given_text(client):
    answer = await client.chat.completions.create(
        model="echo",
        messages=[{"role": "user", "content": "run 1+1"}],
        tools=[{"type": "custom", "custom": {"name": "run"}}],
    )
    call = answer.choices[0].message.tool_calls[0]
    assert (call.type, call.custom.name, call.custom.input) == ("custom", "run", "run 1+1")


async def test_only_allowed_tools_are_called(client):
    other = {"type": "function", "function": {"name": "other"}}
    named = {"type": "function", "function": {"name": "get_weather"}}
    answer = await client.chat.completions.create(
        model="echo",
        messages=HI,
        tools=[other, WEATHER],
        tool_choice={
            "type": "allowed_tools",
            "allowed_tools": {"mode": "required", "tools": [named]},
        },
    )
    assert [call.function.name for call in answer.choices[0].message.tool_calls] == ["get_weather"]


async def test_parse_gives_an_object(client):
    answer = await client.chat.completions.parse(model="echo", messages=HI, response_format=Trip)
    assert answer.choices[0].message.parsed == Trip(city="hi", days=0, stops=[])


async def test_reasoning_is_shown_and_counted(client):
    answer = await client.chat.completions.create(model="echo", messages=HI, reasoning_effort="low")
    assert answer.choices[0].message.reasoning_content.startswith("The sandbox thinks")
    details = answer.usage.completion_tokens_details
    assert 0 < details.reasoning_tokens < answer.usage.completion_tokens


async def test_a_refusal(client):
    answer = await client.chat.completions.create(
        model="echo", messages=[{"role": "user", "content": "sandbox: refuse"}]
    )
    message = answer.choices[0].message
    assert message.refusal == "Sandbox echo: I refuse, as I was asked to."
    assert message.content is None


async def test_several_choices_and_log_probabilities(client):
    answer = await client.chat.completions.create(
        model="echo", messages=HI, n=2, logprobs=True, top_logprobs=1
    )
    for choice in answer.choices:
        tokens = choice.logprobs.content
        assert "".join(token.token for token in tokens) == choice.message.content
        assert tokens[0].top_logprobs[0].token == tokens[0].token


async def test_stop_limit_and_cache_show_in_the_answer(client):
    stopped = await client.chat.completions.create(model="echo", messages=HI, stop="you")
    assert stopped.choices[0].finish_reason == "stop"
    assert stopped.choices[0].message.content == "Sandbox echo: "
    short = await client.chat.completions.create(model="echo", messages=HI, max_completion_tokens=2)
    assert short.choices[0].finish_reason == "length"
    assert short.usage.completion_tokens == 2
    cached = await client.chat.completions.create(
        model="echo", messages=[{"role": "user", "content": "sandbox: cached" + "x" * 385}]
    )
    assert cached.usage.prompt_tokens_details.cached_tokens == 50
    assert cached.usage.prompt_tokens == 100


@pytest.mark.parametrize(
    ("model", "error", "code"),
    [
        ("fail-429", openai.RateLimitError, "rate_limit_exceeded"),
        ("fail-500", openai.InternalServerError, None),
        ("fail-401", openai.AuthenticationError, "invalid_api_key"),
        ("fail-403", openai.PermissionDeniedError, "model_not_allowed"),
        ("fail-context", openai.BadRequestError, "context_length_exceeded"),
        ("gpt-4o", openai.NotFoundError, "model_not_found"),
    ],
)
async def test_failures_by_class(client, model, error, code):
    with pytest.raises(error) as raised:
        await client.chat.completions.create(model=model, messages=HI, stream=True)
    assert raised.value.code == code
    assert raised.value.request_id.startswith("req_")


async def test_a_rate_limit_has_a_retry_after(client):
    with pytest.raises(openai.RateLimitError) as raised:
        await client.chat.completions.create(model="fail-429", messages=HI)
    assert raised.value.response.headers["retry-after"] == "1"


async def test_a_wrong_field_is_named(client):
    with pytest.raises(openai.BadRequestError) as raised:
        await client.chat.completions.create(
            model="echo", messages=[{"role": "user", "content": [{"type": "text"}]}]
        )
    assert raised.value.param == "messages[0].content[0].text"
    assert "messages[0].content[0].text" in raised.value.message


async def test_an_image_for_a_model_without_eyes_is_refused(client):
    image = {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}
    with pytest.raises(openai.BadRequestError, match="does not read images"):
        await client.chat.completions.create(
            model="text", messages=[{"role": "user", "content": [image]}]
        )


async def test_a_failure_in_a_stream_comes_after_text(client):
    stream = await client.chat.completions.create(model="fail-late", messages=HI, stream=True)
    seen = []
    with pytest.raises(openai.APIError, match="Overloaded"):
        async for chunk in stream:
            seen.append(chunk.choices[0].delta.content)
    assert "Sandbox" in seen


async def test_models_are_listed(client):
    names = [model.id async for model in client.models.list()]
    assert names == ["echo", "text", "vision", "slow", "fail-429", "fail-500", "stall", "cut"]
    assert (await client.models.retrieve("echo")).owned_by == "sandbox"


async def test_every_chunk_is_a_data_line_and_the_last_says_done(upstream):
    body = {"model": "echo", "messages": HI, "stream": True}
    async with (
        aiohttp.ClientSession() as session,
        session.post(
            f"{upstream.url}/chat/completions", json=body, headers={"Authorization": "Bearer k"}
        ) as response,
    ):
        assert response.headers["content-type"].startswith("text/event-stream")
        lines = (await response.text()).split("\n\n")
    assert lines[-2:] == ["data: [DONE]", ""]
    for line in lines[:-2]:
        assert json.loads(line.removeprefix("data: "))["object"] == "chat.completion.chunk"


async def test_without_a_key_nothing_is_answered(upstream):
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{upstream.url}/v1/chat/completions", json={}) as response,
    ):
        assert response.status == 401
        assert (await response.json())["error"]["code"] == "invalid_api_key"
