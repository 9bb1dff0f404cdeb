"""The official Python SDK of Anthropic, with base_url and key alone."""

import asyncio
from collections.abc import Iterator

import anthropic
import pytest
from anthropic.types import MessageParam, ToolParam
from pydantic import BaseModel

from tests.e2e.gateway import Gateway

pytestmark = pytest.mark.thorough(one_in=5)

HELLO: list[MessageParam] = [{"role": "user", "content": "hello there"}]
WEATHER: ToolParam = {
    "name": "get_weather",
    "description": "Tells the weather of a place",
    "input_schema": {
        "type": "object",
        "properties": {"place": {"type": "string"}},
        "required": ["place"],
    },
}
ASK_WEATHER: MessageParam = {"role": "user", "content": "use get_weather for Bern"}
UNKNOWN_KEY = "gw-" + "A" * 43
# One attempt, so that a model that always fails answers at once.
ONCE = {"fallback": "disabled"}


class Place(BaseModel):
    name: str
    population: int
    rivers: list[str]


@pytest.fixture(params=["beta", "coding"])
def endpoint(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def client(front: Gateway) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(
        base_url=f"{front.address}/beta", api_key=front.key, max_retries=0
    ) as opened:
        yield opened


def text_of(message: anthropic.types.Message) -> str:
    return "".join(block.text for block in message.content if block.type == "text")


def test_a_message_is_an_answer_with_its_usage(front: Gateway, endpoint: str, model: str) -> None:
    with anthropic.Anthropic(
        base_url=f"{front.address}/{endpoint}", api_key=front.key, max_retries=0
    ) as client:
        answer = client.messages.create(model=model, messages=HELLO, max_tokens=100)
    assert answer.type == "message"
    assert answer.role == "assistant"
    assert answer.stop_reason == "end_turn"
    assert answer.stop_sequence is None
    assert 'you said "hello there"' in text_of(answer)
    assert answer.usage.input_tokens > 0
    assert answer.usage.output_tokens > 0
    assert answer._request_id


def test_stream_events_come_in_order(client: anthropic.Anthropic, model: str) -> None:
    with client.messages.create(model=model, messages=HELLO, max_tokens=100, stream=True) as stream:
        events = list(stream)
    kinds = [event.type for event in events]
    deltas = kinds.count("content_block_delta")
    assert deltas > 1
    assert kinds == [
        "message_start",
        "content_block_start",
        *["content_block_delta"] * deltas,
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]


def test_the_stream_helper_puts_the_answer_together(
    client: anthropic.Anthropic, model: str
) -> None:
    whole = client.messages.create(model=model, messages=HELLO, max_tokens=100)
    with client.messages.stream(model=model, messages=HELLO, max_tokens=100) as stream:
        text = "".join(stream.text_stream)
        answer = stream.get_final_message()
    assert text == text_of(whole) == text_of(answer)
    assert answer.stop_reason == "end_turn"
    assert answer.usage.output_tokens == whole.usage.output_tokens


def test_a_tool_loop_ends_with_an_answer_from_the_result(
    client: anthropic.Anthropic, model: str
) -> None:
    called = client.messages.create(
        model=model, messages=[ASK_WEATHER], tools=[WEATHER], max_tokens=200
    )
    assert called.stop_reason == "tool_use"
    (call,) = [block for block in called.content if block.type == "tool_use"]
    assert call.name == "get_weather"
    assert set(call.input) == {"place"}
    answer = client.messages.create(
        model=model,
        max_tokens=200,
        tools=[WEATHER],
        messages=[
            ASK_WEATHER,
            {"role": "assistant", "content": called.content},
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": call.id, "content": "14 degrees, rain"}
                ],
            },
        ],
    )
    assert answer.stop_reason == "end_turn"
    assert "14 degrees, rain" in text_of(answer)


def test_parallel_tool_calls_arrive_streamed(client: anthropic.Anthropic, model: str) -> None:
    with client.messages.stream(
        model=model,
        messages=[{"role": "user", "content": "call get_weather in parallel"}],
        tools=[WEATHER],
        max_tokens=400,
    ) as stream:
        answer = stream.get_final_message()
    assert answer.stop_reason == "tool_use"
    calls = [block for block in answer.content if block.type == "tool_use"]
    assert len({call.id for call in calls}) == 2
    assert all(set(call.input) == {"place"} for call in calls)


@pytest.mark.parametrize("streamed", [False, True])
def test_an_answer_parses_into_the_callers_type(
    client: anthropic.Anthropic, model: str, streamed: bool
) -> None:
    asked: list[MessageParam] = [{"role": "user", "content": "describe a place"}]
    if streamed:
        with client.messages.stream(
            model=model, messages=asked, max_tokens=400, output_format=Place
        ) as stream:
            answer = stream.get_final_message()
    else:
        answer = client.messages.parse(
            model=model, messages=asked, max_tokens=400, output_format=Place
        )
    assert isinstance(answer.parsed_output, Place)


def test_thinking_comes_signed_and_goes_back(client: anthropic.Anthropic) -> None:
    with client.messages.stream(
        model="anthropic/echo",
        messages=HELLO,
        max_tokens=2000,
        thinking={"type": "enabled", "budget_tokens": 1024},
    ) as stream:
        answer = stream.get_final_message()
    assert [block.type for block in answer.content] == ["thinking", "text"]
    assert answer.content[0].type == "thinking"
    assert answer.content[0].signature
    again = client.messages.create(
        model="anthropic/echo",
        messages=[
            *HELLO,
            {"role": "assistant", "content": answer.content},
            {"role": "user", "content": "and now?"},
        ],
        max_tokens=2000,
        thinking={"type": "enabled", "budget_tokens": 1024},
    )
    assert 'you said "and now?"' in text_of(again)


def test_a_stop_sequence_is_named(client: anthropic.Anthropic, model: str) -> None:
    answer = client.messages.create(
        model=model, messages=HELLO, max_tokens=100, stop_sequences=["there"]
    )
    assert answer.stop_reason == "stop_sequence"
    assert answer.stop_sequence == "there"
    assert text_of(answer).endswith("hello ")


def test_tokens_are_counted(client: anthropic.Anthropic, model: str) -> None:
    few = client.messages.count_tokens(model=model, messages=HELLO)
    many = client.messages.count_tokens(
        model=model, messages=[{"role": "user", "content": "hello there " * 100}]
    )
    assert 0 < few.input_tokens < many.input_tokens


def test_an_unknown_key_is_an_authentication_error(front: Gateway) -> None:
    with (
        anthropic.Anthropic(
            base_url=f"{front.address}/beta", api_key=UNKNOWN_KEY, max_retries=0
        ) as client,
        pytest.raises(anthropic.AuthenticationError) as raised,
    ):
        client.messages.create(model="sandbox/echo", messages=HELLO, max_tokens=10)
    assert raised.value.type == "authentication_error"
    assert raised.value.request_id


def test_an_unknown_model_is_not_found(client: anthropic.Anthropic) -> None:
    with pytest.raises(anthropic.NotFoundError) as raised:
        client.messages.create(model="no-such-model", messages=HELLO, max_tokens=10)
    assert raised.value.type == "not_found_error"


def test_a_wrong_value_is_a_bad_request_that_names_its_field(client: anthropic.Anthropic) -> None:
    with pytest.raises(anthropic.BadRequestError) as raised:
        client.messages.create(
            model="sandbox/echo", messages=HELLO, max_tokens=10, extra_body={"temperature": 2}
        )
    assert raised.value.type == "invalid_request_error"
    assert "temperature" in raised.value.message


@pytest.mark.parametrize("provider", ["sandbox", "openai", "anthropic", "gemini"])
def test_a_rate_limit_is_a_rate_limit_error(client: anthropic.Anthropic, provider: str) -> None:
    with pytest.raises(anthropic.RateLimitError) as raised:
        client.messages.create(
            model=f"{provider}/fail-429", messages=HELLO, max_tokens=10, extra_body=ONCE
        )
    assert raised.value.type == "rate_limit_error"
    assert int(raised.value.response.headers["retry-after"]) >= 1


@pytest.mark.parametrize("provider", ["sandbox", "openai", "anthropic", "gemini"])
def test_a_providers_failure_is_an_internal_server_error(
    client: anthropic.Anthropic, provider: str
) -> None:
    with pytest.raises(anthropic.InternalServerError) as raised:
        client.messages.create(
            model=f"{provider}/fail-500",
            messages=HELLO,
            max_tokens=10,
            stream=True,
            extra_body=ONCE,
        )
    assert raised.value.status_code == 502
    assert raised.value.type == "api_error"


@pytest.mark.parametrize("model", ["cut", "fail-late"])
@pytest.mark.parametrize("provider", ["sandbox", "openai", "anthropic", "gemini"])
def test_a_broken_stream_raises_instead_of_ending(
    client: anthropic.Anthropic, provider: str, model: str
) -> None:
    kinds: list[str] = []
    with (
        pytest.raises(anthropic.APIError),
        client.messages.create(
            model=f"{provider}/{model}",
            messages=HELLO,
            max_tokens=100,
            stream=True,
            extra_body=ONCE,
        ) as stream,
    ):
        kinds.extend(event.type for event in stream)
    assert "message_stop" not in kinds
    # What a connection carried just before it broke may be lost with it.
    assert "content_block_delta" in kinds or model == "cut"


def test_models_are_listed_and_found_one_by_one(client: anthropic.Anthropic) -> None:
    models = {model.id: model for model in client.models.list()}
    assert models["sandbox/echo"].type == "model"
    retrieved = client.models.retrieve("sandbox/echo")
    assert retrieved.id == "sandbox/echo"
    assert retrieved.display_name
    with pytest.raises(anthropic.NotFoundError):
        client.models.retrieve("no/such")


async def test_the_async_client_runs_many_at_once(front: Gateway, model: str) -> None:
    async with anthropic.AsyncAnthropic(
        base_url=f"{front.address}/beta", api_key=front.key, max_retries=0
    ) as client:

        async def whole(number: int) -> str:
            return text_of(
                await client.messages.create(
                    model=model,
                    messages=[{"role": "user", "content": f"number {number}"}],
                    max_tokens=100,
                )
            )

        async def streamed(number: int) -> str:
            async with client.messages.stream(
                model=model,
                messages=[{"role": "user", "content": f"number {number}"}],
                max_tokens=100,
            ) as stream:
                return text_of(await stream.get_final_message())

        answers = await asyncio.gather(
            *(whole(number) for number in range(10)), *(streamed(number) for number in range(10))
        )
    for number, text in enumerate(answers):
        assert f'you said "number {number % 10}"' in text
