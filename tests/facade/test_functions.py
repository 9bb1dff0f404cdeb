"""Chats with functions, as clients from before tools send them, over every kind of provider."""

import json
from typing import Any

import pytest

from tests.gateway_in_process import Gateway

pytestmark = pytest.mark.asyncio(loop_scope="module")

MODELS = ["openai/echo", "anthropic/echo", "gemini/echo", "sandbox/echo"]
FUNCTIONS = [
    {"name": name, "parameters": {"type": "object", "properties": {"a": {"type": "string"}}}}
    for name in ("first", "second")
]
ASKED = {"role": "user", "content": "Call first and second"}


async def post(gateway: Gateway, **body: Any) -> str:
    async with gateway.http.post(
        f"{gateway.url}/beta/v1/chat/completions", json=body, headers=gateway.bearer()
    ) as answer:
        assert answer.status == 200, await answer.text()
        return await answer.text()


async def first_choice(gateway: Gateway, **body: Any) -> Any:
    return json.loads(await post(gateway, **body))["choices"][0]


@pytest.mark.parametrize("model", MODELS)
async def test_a_function_is_called_and_its_result_read(gateway: Gateway, model: str) -> None:
    asked = {"model": model, "functions": FUNCTIONS}
    called = await first_choice(gateway, **asked, messages=[ASKED])
    assert called["finish_reason"] == "function_call"
    assert called["message"]["function_call"]["name"] == "first"
    result = {"role": "function", "name": "first", "content": "42"}
    read = await first_choice(gateway, **asked, messages=[ASKED, called["message"], result])
    assert read["finish_reason"] == "stop"
    assert "42" in read["message"]["content"]


@pytest.mark.parametrize("model", MODELS)
async def test_a_stream_calls_the_chosen_function(gateway: Gateway, model: str) -> None:
    streamed = await post(
        gateway,
        model=model,
        messages=[ASKED],
        functions=FUNCTIONS,
        function_call={"name": "second"},
        stream=True,
    )
    *events, done, remainder = streamed.split("\n\n")
    assert (done, remainder) == ("data: [DONE]", "")
    choices = [json.loads(event.removeprefix("data: "))["choices"][0] for event in events]
    parts = [one["delta"]["function_call"] for one in choices if "function_call" in one["delta"]]
    assert parts[0]["name"] == "second"
    assert isinstance(json.loads("".join(part["arguments"] for part in parts)), dict)
    assert choices[-1]["finish_reason"] == "function_call"


async def test_an_old_history_is_read_without_functions(gateway: Gateway) -> None:
    call = {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": ""}}
    result = {"role": "function", "name": "f", "content": "42"}
    read = await first_choice(gateway, model="openai/echo", messages=[ASKED, call, result])
    assert "42" in read["message"]["content"]
