"""Gemini's thought signatures: each goes back on its part, whichever dialect callers speak.

The upstream is the sandbox, which refuses a tool loop without them as Gemini 3 does.
"""

from typing import Any

import pytest
import pytest_asyncio

from tests.gateway_in_process import Gateway, running_gateway

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
CHAT_TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": SCHEMA}}
    for name in ("get_weather", "get_time")
]
TOOLS = [{"name": name, "input_schema": SCHEMA} for name in ("get_weather", "get_time")]
ASKED = {"role": "user", "content": "get_weather and get_time in parallel"}
DUMMY = "skip_thought_signature_validator"
THINKING = {"type": "enabled", "budget_tokens": 1024}

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(tmp_path_factory):
    async with running_gateway(tmp_path_factory.mktemp("gateway")) as one:
        yield one


async def post(gateway: Gateway, path: str, body: dict[str, Any]) -> Any:
    headers = gateway.bearer() if "chat" in path else gateway.api_key()
    url = f"{gateway.url}/beta/v1/{path}"
    async with gateway.http.post(url, json=body, headers=headers) as answer:
        assert answer.status == 200, await answer.text()
        return await answer.json()


async def chat(gateway: Gateway, messages: list[Any], model: str = "gemini/echo") -> Any:
    body = {"model": model, "messages": messages, "tools": CHAT_TOOLS}
    return (await post(gateway, "chat/completions", body))["choices"][0]["message"]


async def ask(gateway: Gateway, messages: list[Any], model: str = "gemini/echo", **more) -> Any:
    body = {"model": model, "max_tokens": 4000, "messages": messages, "tools": TOOLS, **more}
    return (await post(gateway, "messages", body))["content"]


async def body_of(gateway: Gateway, dialect: str) -> Any:
    """Return the body of the latest request to an API."""
    async with gateway.http.get(f"{gateway.upstream}/sandbox/log") as answer:
        entries = await answer.json()
    return [entry for entry in entries if entry["dialect"] == dialect][-1]["body"]


async def sent(gateway: Gateway) -> list[Any]:
    """Return the contents of the latest request to Gemini's API."""
    contents: list[Any] = (await body_of(gateway, "gemini"))["contents"]
    return contents


def signatures(contents: list[Any]) -> list[str]:
    """Return the signature of each function call, "" where it has none."""
    parts = [part for content in contents for part in content["parts"]]
    return [part.get("thoughtSignature", "") for part in parts if "functionCall" in part]


def chat_results(message: Any) -> list[Any]:
    return [
        {"role": "tool", "tool_call_id": call["id"], "content": "sunny"}
        for call in message["tool_calls"]
    ]


def results(content: Any) -> dict[str, Any]:
    calls = [block for block in content if block["type"] == "tool_use"]
    told = [{"type": "tool_result", "tool_use_id": c["id"], "content": "sunny"} for c in calls]
    return {"role": "user", "content": told}


async def test_a_chats_tool_loop_keeps_them(gateway):
    answer = await chat(gateway, [ASKED])
    first, second = answer["tool_calls"]
    signature = first["extra_content"]["google"]["thought_signature"]
    assert "extra_content" not in second
    again = await chat(gateway, [ASKED, answer, *chat_results(answer)])
    assert again["content"].count("sunny") == 2
    assert signatures(await sent(gateway)) == [signature, ""]


async def test_a_message_s_tool_loop_keeps_them_in_redacted_thinking(gateway):
    answer = await ask(gateway, [ASKED])
    kinds = [block["type"] for block in answer]
    assert kinds == ["text", "redacted_thinking", "tool_use", "tool_use"]
    assert answer[1]["data"].startswith("gw1.")
    again = await ask(gateway, [ASKED, {"role": "assistant", "content": answer}, results(answer)])
    assert again[0]["text"].count("sunny") == 2
    first, second = signatures(await sent(gateway))
    assert first not in ("", DUMMY)
    assert second == ""


async def test_thinking_before_a_call_has_the_call_s_signature(gateway):
    choice = {"type": "any"}
    answer = await ask(gateway, [ASKED], thinking=THINKING, tool_choice=choice)
    assert [block["type"] for block in answer] == ["thinking", "tool_use", "tool_use"]
    again = {"role": "assistant", "content": answer}
    await ask(gateway, [ASKED, again, results(answer)], thinking=THINKING)
    contents = await sent(gateway)
    thought = contents[1]["parts"][0]
    assert (thought["text"], thought["thought"]) == (answer[0]["thinking"], True)
    assert "thoughtSignature" not in thought
    assert signatures(contents)[0] not in ("", DUMMY)


async def test_a_text_signature_is_returned_with_its_chat_text(gateway):
    hello = {"role": "user", "content": "hello"}
    message = await chat(gateway, [hello])
    signature = message["extra_content"]["google"]["thought_signature"]
    await chat(gateway, [hello, message, hello])
    [part] = (await sent(gateway))[1]["parts"]
    assert (part["text"], part["thoughtSignature"]) == (message["content"], signature)


async def test_callers_of_messages_read_the_text_last(gateway):
    hello = {"role": "user", "content": "hello"}
    answer = await ask(gateway, [hello], thinking=THINKING)
    assert [block["type"] for block in answer] == ["thinking", "text"]
    plain = await ask(gateway, [hello])
    assert [block["type"] for block in plain] == ["text"]


async def test_calls_of_another_model_are_marked_as_such(gateway):
    answer = await chat(gateway, [ASKED], model="openai/echo")
    again = await chat(gateway, [ASKED, answer, *chat_results(answer)])
    assert "sunny" in again["content"]
    assert signatures(await sent(gateway)) == [DUMMY, ""]


@pytest.mark.parametrize("model", ["anthropic/echo", "openai/echo", "sandbox/echo"])
async def test_no_other_provider_gets_them(gateway, model):
    answer = await ask(gateway, [ASKED], thinking=THINKING)
    again = {"role": "assistant", "content": answer}
    more = await ask(gateway, [ASKED, again, results(answer)], model=model)
    assert "sunny" in more[0]["text"]


async def test_the_servers_memory_keeps_those_of_calls(gateway):
    base = {"model": "gemini/echo", "memory_id": "loops"}
    asking = {**base, "messages": [ASKED], "tools": TOOLS, "max_tokens": 4000}
    told = (await post(gateway, "messages", asking))["content"]
    await post(gateway, "messages", {**asking, "messages": [results(told)]})
    first, second = signatures(await sent(gateway))
    assert first not in ("", DUMMY)
    assert second == ""


async def test_one_that_gemini_doubts_is_not_sent_again(gateway):
    answer = await chat(gateway, [ASKED])
    call = answer["tool_calls"][0]
    call["extra_content"]["google"]["thought_signature"] = "AAAA"
    again = await chat(gateway, [ASKED, answer, *chat_results(answer)])
    assert "sunny" in again["content"]
    assert signatures(await sent(gateway)) == [DUMMY, ""]


async def test_one_that_a_caller_made_up_is_not_sent_at_all(gateway):
    answer = await ask(gateway, [ASKED])
    answer[1]["data"] = answer[1]["data"][:-3] + "AAA"
    await ask(gateway, [ASKED, {"role": "assistant", "content": answer}, results(answer)])
    assert signatures(await sent(gateway)) == [DUMMY, ""]


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
async def test_no_other_server_is_sent_the_signature_of_a_chat(gateway, provider):
    answer = await chat(gateway, [ASKED])
    signature = answer["tool_calls"][0]["extra_content"]["google"]["thought_signature"]
    again = await chat(gateway, [ASKED, answer, *chat_results(answer)], f"{provider}/echo")
    assert again["content"].count("sunny") == 2
    body = str(await body_of(gateway, provider))
    assert signature not in body and "extra_content" not in body


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
async def test_no_other_server_is_sent_the_signature_of_messages(gateway, provider):
    answer = await ask(gateway, [ASKED], thinking=THINKING)
    again = [ASKED, {"role": "assistant", "content": answer}, results(answer)]
    await ask(gateway, again, f"{provider}/echo")
    await ask(gateway, again)
    signature = signatures(await sent(gateway))[0]
    assert signature not in ("", DUMMY)
    body = str(await body_of(gateway, provider))
    assert signature not in body and "gw1." not in body
