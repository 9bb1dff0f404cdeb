"""Providers that speak a dialect in their own way, through the whole gateway.

A loop of calls with thinking is the conversation that providers differ in most.
"""

from collections.abc import AsyncIterator
from typing import Any

import orjson
import pytest
import pytest_asyncio
from aiohttp import ClientResponse

from tests.gateway_in_process import Gateway, running_gateway, serving
from tests.grid import each_row
from tests.upstream.app import create_app
from tests.upstream.gemini_rules import OF_CHATS
from tests.upstream.personalities import OF_ANTHROPIC, OF_OPENAI

pytestmark = pytest.mark.asyncio(loop_scope="module")

# A name of the provider's own that its models go by, where it matters.
MODELS = {
    **{name: f"{name}/echo" for name in OF_OPENAI},
    "claude-5": "claude-5/claude-sonnet-5",
}
# Others keep their thoughts to themselves.
SHOW_THOUGHTS = {"deepseek", "openrouter", "mistral", "ollama", "vllm", "claude-5"}
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
CHAT_TOOLS = [{"type": "function", "function": {"name": "get_weather", "parameters": SCHEMA}}]
MESSAGES_TOOLS = [{"name": "get_weather", "input_schema": SCHEMA}]
ASKED = "Call get_weather."
STREAMED = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(tmp_path_factory) -> AsyncIterator[Gateway]:
    """Return a gateway with a provider for each personality."""
    async with serving(create_app()) as sandbox:
        providers = {
            name: {"kind": "openai", "base_url": f"{sandbox}/{name}/v1", "api_key": "k"}
            for name in OF_OPENAI
        }
        for name in OF_ANTHROPIC:
            url = f"{sandbox}/{name}"
            providers[name] = {"kind": "anthropic", "base_url": url, "api_key": "k"}
        folder = tmp_path_factory.mktemp("gateway")
        async with running_gateway(folder, sandbox, providers=providers) as one:
            yield one


async def chat(gateway: Gateway, body: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the message of an answer, whole or put together, and the last of all else in it."""
    if body.get("stream"):
        body = {**body, "stream_options": {"include_usage": True}}
    url = f"{gateway.url}/beta/v1/chat/completions"
    async with gateway.http.post(url, json=body, headers=gateway.bearer()) as answer:
        assert answer.status == 200, await answer.text()
        if body.get("stream"):
            return put_together(await events(answer))
        whole = await answer.json()
    (choice,) = whole["choices"]
    return choice["message"], {**whole, **choice}


async def events(answer: ClientResponse) -> list[dict[str, Any]]:
    lines = (await answer.text()).splitlines()
    return [orjson.loads(line[len("data: ") :]) for line in lines if line.startswith("data: {")]


def put_together(chunks: list[dict[str, Any]]) -> tuple[dict[str, Any], dict[str, Any]]:
    message: dict[str, Any] = {"role": "assistant", "content": ""}
    beside: dict[str, Any] = {}
    for chunk in chunks:
        beside |= {name: value for name, value in chunk.items() if value}
        for choice in chunk["choices"]:
            beside |= {name: value for name, value in choice.items() if value}
            for name, value in choice["delta"].items():
                if name == "tool_calls":
                    for piece in value:
                        calls = message.setdefault("tool_calls", [])
                        if piece["index"] == len(calls):
                            calls.append(piece)
                        else:
                            called = calls[piece["index"]]["function"]
                            called["arguments"] += piece["function"]["arguments"]
                elif isinstance(value, str) and name != "role":
                    message[name] = message.get(name, "") + value
                elif isinstance(value, list):
                    message[name] = message.get(name, []) + value
    for call in message.get("tool_calls", ()):
        del call["index"]
    return message, beside


async def messages(gateway: Gateway, body: dict[str, Any]) -> dict[str, Any]:
    """Return an answer, whole or put together."""
    url = f"{gateway.url}/beta/v1/messages"
    async with gateway.http.post(url, json=body, headers=gateway.api_key()) as answer:
        assert answer.status == 200, await answer.text()
        if not body.get("stream"):
            whole: dict[str, Any] = await answer.json()
            return whole
        told = await events(answer)
    content: list[dict[str, Any]] = []
    stop = ""
    for event in told:
        match event:
            case {"type": "content_block_start", "content_block": block}:
                content.append({**block, "partial": ""})
            case {"type": "content_block_delta", "delta": delta}:
                for name in ("text", "thinking", "signature"):
                    if name in delta:
                        content[-1][name] += delta[name]
                content[-1]["partial"] += delta.get("partial_json", "")
            case {"type": "message_delta", "delta": {"stop_reason": stop}}:
                pass
    for block in content:
        partial = block.pop("partial")
        if block["type"] == "tool_use":
            block["input"] = orjson.loads(partial)
    return {"content": content, "stop_reason": stop}


@STREAMED
@each_row("name", MODELS)
async def test_a_chat_calls_a_tool_and_continues(gateway: Gateway, name: str, stream: bool):
    messages: list[dict[str, Any]] = [{"role": "user", "content": ASKED}]
    body = {"model": MODELS[name], "messages": messages, "tools": CHAT_TOOLS, "stream": stream}
    body |= {"reasoning_effort": "high", "temperature": 0.5, "max_tokens": 2000}
    message, beside = await chat(gateway, body)
    assert beside["finish_reason"] == "tool_calls"
    assert bool(message.get("reasoning_content")) == (name in SHOW_THOUGHTS)
    (call,) = message["tool_calls"]
    assert "city" in orjson.loads(call["function"]["arguments"])
    messages += [message, {"role": "tool", "tool_call_id": call["id"], "content": "sunny"}]
    message, beside = await chat(gateway, body)
    assert beside["finish_reason"] == "stop"
    assert 'The tool answered "sunny".' in text_of(message)
    messages += [message, {"role": "user", "content": "Thanks"}]
    message, _ = await chat(gateway, body)
    assert "Thanks" in text_of(message)


def text_of(message: dict[str, Any]) -> str:
    content = message["content"]
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content)


@STREAMED
@each_row("name", MODELS)
async def test_messages_call_a_tool_and_go_on(gateway: Gateway, name: str, stream: bool):
    sent_messages: list[dict[str, Any]] = [{"role": "user", "content": ASKED}]
    body = {
        "model": MODELS[name],
        "messages": sent_messages,
        "tools": MESSAGES_TOOLS,
        "stream": stream,
    }
    body |= {"thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 2000}
    answer = await messages(gateway, body)
    assert answer["stop_reason"] == "tool_use"
    kinds = [block["type"] for block in answer["content"]]
    assert ("thinking" in kinds) == (name in SHOW_THOUGHTS)
    call = answer["content"][-1]
    assert "city" in call["input"]
    result = {"type": "tool_result", "tool_use_id": call["id"], "content": "sunny"}
    sent_messages.append({"role": "assistant", "content": answer["content"]})
    # Agents put reminders of their own beside results.
    sent_messages.append(
        {"role": "user", "content": [result, {"type": "text", "text": "Be brief."}]}
    )
    answer = await messages(gateway, body)
    assert answer["stop_reason"] == "end_turn"
    assert "sunny" in answer["content"][-1]["text"] or "Be brief." in answer["content"][-1]["text"]
    sent_messages.append({"role": "assistant", "content": answer["content"]})
    sent_messages.append({"role": "user", "content": "Thanks"})
    answer = await messages(gateway, body)
    assert "Thanks" in answer["content"][-1]["text"]


@STREAMED
@pytest.mark.parametrize("name", ["deepseek", "gemini-openai"])
async def test_calls_whose_thoughts_the_client_lost_are_taken(
    gateway: Gateway, name: str, stream: bool
):
    call = {"id": "c1", "type": "function", "function": {"name": "get_weather", "arguments": "{}"}}
    messages = [
        {"role": "user", "content": ASKED},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "sunny"},
    ]
    body = {"model": MODELS[name], "messages": messages, "tools": CHAT_TOOLS, "stream": stream}
    message, _ = await chat(gateway, body)
    assert "sunny" in message["content"]


@STREAMED
async def test_messages_carry_the_signatures_of_a_chat(gateway: Gateway, stream: bool):
    sent_messages: list[dict[str, Any]] = [{"role": "user", "content": f"{ASKED} In parallel."}]
    body = {"model": "gemini-openai/echo", "messages": sent_messages, "tools": MESSAGES_TOOLS}
    body |= {"max_tokens": 2000, "stream": stream}
    content = (await messages(gateway, body))["content"]
    assert [block["type"] for block in content][-3:] == ["redacted_thinking", *["tool_use"] * 2]
    assert content[-3]["data"].startswith("gw1.")
    calls = [block for block in content if block["type"] == "tool_use"]
    results = [{"type": "tool_result", "tool_use_id": c["id"], "content": "sunny"} for c in calls]
    sent_messages += [
        {"role": "assistant", "content": content},
        {"role": "user", "content": results},
    ]
    answer = await messages(gateway, body)
    assert answer["content"][-1]["text"].count("sunny") == 2
    async with gateway.http.get(f"{gateway.upstream}/sandbox/log") as log:
        asked = (await log.json())[-1]["body"]["messages"]
    (called,) = (message["tool_calls"] for message in asked if "tool_calls" in message)
    assert [one.get("extra_content") for one in called] == [
        {"google": {"thought_signature": OF_CHATS}},
        None,
    ]


@STREAMED
@each_row(
    ("name", "expected"),
    [
        ("azure", {"prompt_filter_results", "content_filter_results"}),
        ("deepseek", {"usage.prompt_cache_hit_tokens", "usage.prompt_cache_miss_tokens"}),
        ("gemini-openai", {"message.tool_calls"}),
        ("mistral", set()),
        ("ollama", {"message.reasoning"}),
        ("openai-o", set()),
        (
            "openrouter",
            {
                *("provider", "native_finish_reason", "usage.cost"),
                *("message.reasoning", "message.reasoning_details"),
            },
        ),
        ("vllm", {"message.reasoning"}),
    ],
)
async def test_what_a_provider_adds_reaches_callers_of_its_dialect(
    gateway: Gateway, name: str, expected: set[str], stream: bool
):
    body = {"model": MODELS[name], "messages": [{"role": "user", "content": ASKED}]}
    message, beside = await chat(
        gateway, {**body, "tools": CHAT_TOOLS, "reasoning_effort": "high", "stream": stream}
    )
    found = set(beside) | {f"usage.{key}" for key in beside["usage"]}
    found |= {f"message.{key}" for key, value in message.items() if value}
    assert expected <= found
    (call,) = message["tool_calls"]
    assert ("extra_content" in call) == (name == "gemini-openai")


async def test_a_model_of_ollama_that_cannot_think_answers_without(gateway: Gateway):
    sent_messages = [{"role": "user", "content": "Hello"}]
    body = {"model": "ollama/text", "messages": sent_messages, "reasoning_effort": "high"}
    message, _ = await chat(gateway, body)
    assert "Hello" in message["content"]
    asked = {"model": "ollama/text", "messages": sent_messages, "max_tokens": 2000}
    asked["thinking"] = {"type": "enabled", "budget_tokens": 1024}
    answer = await messages(gateway, asked)
    assert [block["type"] for block in answer["content"]] == ["text"]


async def test_claude_continues_a_prefilled_answer(gateway: Gateway):
    sent_messages = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "So"}]
    body = {
        "model": MODELS["claude-5"],
        "messages": sent_messages,
        "max_tokens": 2000,
        "top_p": 0.9,
    }
    answer = await messages(gateway, body)
    assert answer["stop_reason"] == "end_turn"


async def test_mistral_answers_one_who_has_a_name(gateway: Gateway):
    messages = [{"role": "user", "content": "Hello", "name": "ada"}]
    body = {"model": "mistral/echo", "messages": messages, "user": "u"}
    url = f"{gateway.url}/beta/v1/chat/completions"
    async with gateway.http.post(url, json=body, headers=gateway.bearer()) as answer:
        assert answer.status == 200, await answer.text()
        assert answer.headers["x-gateway-dropped"] == "messages[].name, user"


async def test_mistral_answers_calls_with_fields_of_other_providers(gateway: Gateway):
    function = {"name": "f", "arguments": "{}", "strict_mode": True}
    call = {"id": "call_1", "type": "function", "function": function}
    call |= {"extra_content": {"google": {"thought_signature": "c2ln"}}, "provider": {"a": 1}}
    messages = [
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": "It is done"},
    ]
    url = f"{gateway.url}/beta/v1/chat/completions"
    for _ in range(2):
        body = {"model": "mistral/echo", "messages": messages}
        async with gateway.http.post(url, json=body, headers=gateway.bearer()) as answer:
            assert answer.status == 200, await answer.text()
            dropped = answer.headers["x-gateway-dropped"].split(", ")
        assert sorted(dropped) == [
            f"messages[].content[].{name}" for name in ("extra_content", "provider", "strict_mode")
        ]


async def test_mistral_accepts_explicit_defaults(gateway: Gateway):
    messages = [{"role": "user", "content": "Hello"}]
    asked = {"logprobs": False, "logit_bias": {}, "modalities": ["text"], "tool_choice": "auto"}
    message, _ = await chat(gateway, {"model": "mistral/echo", "messages": messages, **asked})
    assert "Hello" in text_of(message)
    url = f"{gateway.url}/beta/v1/chat/completions"
    asked = {"model": "mistral/echo", "messages": messages, "logprobs": True}
    async with gateway.http.post(url, json=asked, headers=gateway.bearer()) as answer:
        assert answer.status == 400
        assert "logprobs" in (await answer.json())["error"]["message"]


async def test_one_refused_effort_leaves_the_others_available(gateway: Gateway):
    messages = [{"role": "user", "content": "Hello"}]
    body = {"model": "openai-o/echo", "messages": messages}
    url = f"{gateway.url}/beta/v1/chat/completions"
    for effort, dropped in (("xhigh", "reasoning_effort"), ("low", None)):
        asked = {**body, "reasoning_effort": effort}
        async with gateway.http.post(url, json=asked, headers=gateway.bearer()) as answer:
            assert answer.status == 200, await answer.text()
            assert answer.headers.get("x-gateway-dropped") == dropped
