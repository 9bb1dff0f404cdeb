"""The official Python SDK of OpenAI, with base_url and key alone."""

import asyncio
import json
from collections.abc import Iterator

import openai
import pytest
from openai.types.chat import (
    ChatCompletionChunk,
    ChatCompletionMessageParam,
    ChatCompletionToolParam,
)
from pydantic import BaseModel

from tests.e2e.gateway import Gateway

pytestmark = pytest.mark.thorough(one_in=5)

HELLO: list[ChatCompletionMessageParam] = [{"role": "user", "content": "hello there"}]
WEATHER: ChatCompletionToolParam = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Tells the weather of a place",
        "parameters": {
            "type": "object",
            "properties": {"place": {"type": "string"}},
            "required": ["place"],
        },
    },
}
ASK_WEATHER: ChatCompletionMessageParam = {"role": "user", "content": "use get_weather for Bern"}
UNKNOWN_KEY = "gw-" + "A" * 43
# One attempt, so that a model that always fails answers at once.
ONCE = {"fallback": "disabled"}


class Place(BaseModel):
    name: str
    population: int
    rivers: list[str]


@pytest.fixture
def client(front: Gateway) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(
        base_url=f"{front.address}/beta/v1", api_key=front.key, max_retries=0
    ) as opened:
        yield opened


def test_a_completion_is_an_answer_with_its_usage(client: openai.OpenAI, model: str) -> None:
    answer = client.chat.completions.create(model=model, messages=HELLO)
    assert answer.object == "chat.completion"
    (choice,) = answer.choices
    assert choice.finish_reason == "stop"
    assert choice.message.role == "assistant"
    assert 'you said "hello there"' in (choice.message.content or "")
    assert answer.usage is not None
    assert answer.usage.prompt_tokens > 0
    assert answer.usage.completion_tokens > 0
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens
    assert answer._request_id


def test_a_stream_says_what_a_whole_answer_says(client: openai.OpenAI, model: str) -> None:
    whole = client.chat.completions.create(model=model, messages=HELLO)
    with client.chat.completions.create(
        model=model, messages=HELLO, stream=True, stream_options={"include_usage": True}
    ) as stream:
        chunks = list(stream)
    assert len({chunk.id for chunk in chunks}) == 1
    *answering, last = chunks
    choices = [chunk.choices[0] for chunk in answering]
    text = "".join(choice.delta.content or "" for choice in choices)
    assert text == whole.choices[0].message.content
    assert [choice.delta.role for choice in choices if choice.delta.role] == ["assistant"]
    assert [choice.finish_reason for choice in choices if choice.finish_reason] == ["stop"]
    assert last.choices == []
    assert last.usage is not None
    assert whole.usage is not None
    assert last.usage.total_tokens == whole.usage.total_tokens
    assert all(chunk.usage is None for chunk in answering)


def test_the_stream_helper_puts_the_answer_together(client: openai.OpenAI, model: str) -> None:
    with client.chat.completions.stream(model=model, messages=HELLO) as stream:
        kinds = {event.type for event in stream}
        answer = stream.get_final_completion()
    assert {"chunk", "content.delta", "content.done"} <= kinds
    assert 'you said "hello there"' in (answer.choices[0].message.content or "")
    assert answer.choices[0].finish_reason == "stop"


def test_a_tool_loop_ends_with_an_answer_from_the_result(client: openai.OpenAI, model: str) -> None:
    called = client.chat.completions.create(model=model, messages=[ASK_WEATHER], tools=[WEATHER])
    (choice,) = called.choices
    assert choice.finish_reason == "tool_calls"
    assert choice.message.tool_calls is not None
    (call,) = choice.message.tool_calls
    assert call.type == "function"
    assert call.function.name == "get_weather"
    assert set(json.loads(call.function.arguments)) == {"place"}
    answer = client.chat.completions.create(
        model=model,
        messages=[
            ASK_WEATHER,
            {
                "role": "assistant",
                "content": choice.message.content,
                "tool_calls": [
                    {
                        "id": call.id,
                        "type": "function",
                        "function": {
                            "name": call.function.name,
                            "arguments": call.function.arguments,
                        },
                    }
                ],
            },
            {"role": "tool", "tool_call_id": call.id, "content": "14 degrees, rain"},
        ],
        tools=[WEATHER],
    )
    assert answer.choices[0].finish_reason == "stop"
    assert "14 degrees, rain" in (answer.choices[0].message.content or "")


def test_parallel_tool_calls_arrive_streamed(client: openai.OpenAI, model: str) -> None:
    with client.chat.completions.stream(
        model=model,
        messages=[{"role": "user", "content": "call get_weather in parallel"}],
        tools=[WEATHER],
    ) as stream:
        done = [event for event in stream if event.type == "tool_calls.function.arguments.done"]
        answer = stream.get_final_completion()
    assert [event.index for event in done] == [0, 1]
    assert answer.choices[0].finish_reason == "tool_calls"
    calls = answer.choices[0].message.tool_calls
    assert calls is not None
    assert len({call.id for call in calls}) == 2
    assert all(set(json.loads(call.function.arguments)) == {"place"} for call in calls)


def test_an_answer_parses_into_the_callers_type(client: openai.OpenAI, model: str) -> None:
    answer = client.chat.completions.parse(
        model=model,
        messages=[{"role": "user", "content": "describe a place"}],
        response_format=Place,
    )
    assert isinstance(answer.choices[0].message.parsed, Place)


def test_a_streamed_answer_parses_into_the_callers_type(client: openai.OpenAI, model: str) -> None:
    with client.chat.completions.stream(
        model=model,
        messages=[{"role": "user", "content": "describe a place"}],
        response_format=Place,
    ) as stream:
        answer = stream.get_final_completion()
    assert isinstance(answer.choices[0].message.parsed, Place)


def test_an_unknown_key_is_an_authentication_error(front: Gateway) -> None:
    with (
        openai.OpenAI(
            base_url=f"{front.address}/beta/v1", api_key=UNKNOWN_KEY, max_retries=0
        ) as client,
        pytest.raises(openai.AuthenticationError) as raised,
    ):
        client.chat.completions.create(model="sandbox/echo", messages=HELLO)
    assert raised.value.type == "authentication_error"
    assert raised.value.request_id


def test_an_unknown_model_is_not_found(client: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as raised:
        client.chat.completions.create(model="no-such-model", messages=HELLO)
    assert raised.value.code == "model_not_found"


def test_a_wrong_value_is_a_bad_request_that_names_its_field(client: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError) as raised:
        client.chat.completions.create(model="sandbox/echo", messages=HELLO, temperature=3)
    assert raised.value.param == "temperature"
    assert raised.value.type == "invalid_request_error"
    assert "temperature" in raised.value.message


@pytest.mark.parametrize("provider", ["sandbox", "openai", "anthropic", "gemini"])
def test_a_rate_limit_is_a_rate_limit_error(client: openai.OpenAI, provider: str) -> None:
    with pytest.raises(openai.RateLimitError) as raised:
        client.chat.completions.create(
            model=f"{provider}/fail-429", messages=HELLO, extra_body=ONCE
        )
    assert int(raised.value.response.headers["retry-after"]) >= 1


@pytest.mark.parametrize("provider", ["sandbox", "openai", "anthropic", "gemini"])
def test_a_providers_failure_is_an_internal_server_error(
    client: openai.OpenAI, provider: str
) -> None:
    with pytest.raises(openai.InternalServerError) as raised:
        client.chat.completions.create(
            model=f"{provider}/fail-500", messages=HELLO, stream=True, extra_body=ONCE
        )
    assert raised.value.status_code == 502
    assert raised.value.type == "server_error"


@pytest.mark.parametrize("model", ["cut", "fail-late"])
@pytest.mark.parametrize("provider", ["sandbox", "openai", "anthropic", "gemini"])
def test_a_broken_stream_raises_instead_of_ending(
    client: openai.OpenAI, provider: str, model: str
) -> None:
    seen: list[ChatCompletionChunk] = []
    with (
        pytest.raises(openai.APIError),
        client.chat.completions.create(
            model=f"{provider}/{model}", messages=HELLO, stream=True, extra_body=ONCE
        ) as stream,
    ):
        seen.extend(stream)
    assert all(choice.finish_reason is None for chunk in seen for choice in chunk.choices)
    # What a connection carried just before it broke may be lost with it.
    assert seen or model == "cut"


def test_models_are_listed_and_found_one_by_one(client: openai.OpenAI) -> None:
    models = {model.id: model for model in client.models.list()}
    assert "sandbox/echo" in models
    assert models["sandbox/echo"].object == "model"
    assert client.models.retrieve("sandbox/echo").id == "sandbox/echo"
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("no/such")


async def test_the_async_client_runs_many_at_once(front: Gateway, model: str) -> None:
    async with openai.AsyncOpenAI(
        base_url=f"{front.address}/beta/v1", api_key=front.key, max_retries=0
    ) as client:

        async def whole(number: int) -> str:
            answer = await client.chat.completions.create(
                model=model, messages=[{"role": "user", "content": f"number {number}"}]
            )
            return answer.choices[0].message.content or ""

        async def streamed(number: int) -> str:
            stream = await client.chat.completions.create(
                model=model,
                messages=[{"role": "user", "content": f"number {number}"}],
                stream=True,
            )
            return "".join(
                [chunk.choices[0].delta.content or "" async for chunk in stream if chunk.choices]
            )

        answers = await asyncio.gather(
            *(whole(number) for number in range(10)), *(streamed(number) for number in range(10))
        )
    for number, text in enumerate(answers):
        assert f'you said "number {number % 10}"' in text
