"""The refusals, error messages and streams of the upstream's personalities."""

from typing import Any

import orjson
import pytest
from aiohttp import ClientSession
from aiohttp.test_utils import TestClient, TestServer

from tests.upstream.app import create_app
from tests.upstream.personalities import OF_ANTHROPIC, OF_OPENAI
from tests.upstream.personalities.base import Personality

HEADERS = {"authorization": "Bearer k", "anthropic-version": "2023-06-01"}
USER = {"role": "user", "content": "Call f."}
TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
CALL = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
CALLED = {"role": "assistant", "content": None, "tool_calls": [CALL]}
RESULT = {"role": "tool", "tool_call_id": "call_1", "content": "42"}
NINE = [
    {**CALLED, "tool_calls": [{**CALL, "id": "abcdefgh1"}]},
    {**RESULT, "tool_call_id": "abcdefgh1"},
]
LOOP: dict[str, Any] = {"messages": [USER, CALLED, RESULT], "tools": TOOLS}
MARKED = {"messages": [{"role": "user", "content": [{"type": "text", "text": "a", "x": 1}]}]}
_SKIP = {"google": {"thought_signature": "skip_thought_signature_validator"}}
SKIPPED = {
    **LOOP,
    "messages": [USER, {**CALLED, "tool_calls": [{**CALL, "extra_content": _SKIP}]}, RESULT],
}
BUDGET = {"type": "enabled", "budget_tokens": 1024}


def named(name: str) -> dict[str, Any]:
    return {"tools": [{"type": "function", "function": {"name": name}}]}


async def ask(url: str, name: str, fields: dict[str, Any]) -> tuple[int, str]:
    path = "messages" if name in OF_ANTHROPIC else "chat/completions"
    body = {"model": "echo", "messages": [USER], **fields}
    async with ClientSession() as http:
        async with http.post(f"{url}/{name}/v1/{path}", json=body, headers=HEADERS) as answer:
            return answer.status, await answer.text()


@pytest.mark.parametrize(
    ("name", "fields", "status", "words"),
    [
        ("deepseek", LOOP, 400, "must be passed back to the API"),
        ("gemini-openai", LOOP, 400, "function call `default_api:f` , position 2."),
        ("mistral", LOOP, 400, "but must be a-z, A-Z, 0-9, with a length of 9."),
        ("mistral", {"user": "u"}, 422, '"loc":["body","user"]'),
        ("mistral", MARKED, 422, '"loc":["body","messages",0,"user","content",0,"text","x"]'),
        ("mistral", {"tools": [{**TOOLS[0], "x": 1}]}, 422, '"loc":["body","tools",0,"x"]'),
        ("vllm", {**MARKED, "tools": [{**TOOLS[0], "x": 1}]}, 200, "Sandbox echo"),
        ("gemini-openai", SKIPPED, 200, "The tool answered"),
        ("mistral", {"messages": [USER, *NINE, USER]}, 400, "Unexpected role 'user' after role"),
        ("mistral", {"messages": [USER, {**USER, "role": "assistant"}]}, 400, "Expected last role"),
        ("mistral", named("a" * 65), 400, f"Function name was {'a' * 65} but must be a-z, A-Z"),
        ("gemini-openai", named("1"), 400, "function_declarations[0].name: Invalid function"),
        ("azure", named("a" * 65), 400, '"param":"tools[0].function.name"'),
        ("ollama", {"model": "text", "reasoning_effort": "low"}, 400, "does not support thinking"),
        ("ollama", {"reasoning_effort": "minimal"}, 400, "invalid reasoning value: 'minimal'"),
        ("openai-o", {"max_tokens": 9}, 400, "Use 'max_completion_tokens' instead."),
        ("openai-o", {"temperature": 0}, 400, "Only the default (1) value is supported."),
        ("openai-o", {"presence_penalty": 1}, 400, "'presence_penalty' is not supported"),
        ("openai-o", {"reasoning_effort": "max"}, 400, "Supported values are:"),
        ("vllm", {"model": "unknown"}, 404, '"code":404'),
        ("openrouter", {"model": "unknown"}, 404, '"code":404'),
        ("claude-5", {"max_tokens": 9, "thinking": BUDGET}, 400, 'Use \\"thinking.type.adaptive'),
        ("claude-5", {"max_tokens": 9, "top_k": 9}, 400, "`top_k` is deprecated for this model."),
        (
            "claude-5",
            {"max_tokens": 9, "messages": [USER, {**USER, "role": "assistant"}]},
            400,
            "This model does not support assistant message prefill.",
        ),
    ],
)
async def test_a_provider_answers_in_its_own_words(upstream, name, fields, status, words):
    answered_status, text = await ask(upstream.url, name, fields)
    assert (answered_status, words in text) == (status, True), text


@pytest.mark.parametrize("name", ["azure", "deepseek", "ollama", "openrouter", "vllm"])
async def test_what_others_refuse_is_ignored(upstream, name):
    unknown = {} if name == "azure" else {"nobody_knows": 1}
    message = {"role": "assistant", "content": "So", **unknown}
    status, text = await ask(upstream.url, name, {"messages": [USER, message, USER], **unknown})
    assert status == 200, text


@pytest.mark.parametrize("name", ["ollama", "openrouter", "vllm"])
async def test_servers_without_a_rule_take_any_name_of_a_tool(upstream, name):
    status, text = await ask(upstream.url, name, named("a.b" * 30))
    assert status == 200, text


async def test_gemini_takes_dots_in_names_of_tools(upstream):
    status, text = await ask(upstream.url, "gemini-openai", named("a.b:c"))
    assert status == 200, text


@pytest.mark.parametrize("name", [*OF_OPENAI, *OF_ANTHROPIC])
@pytest.mark.parametrize("fields", [{"messages": 1}, {"messages": [1, {"role": []}]}, {"model": 1}])
async def test_what_is_no_request_is_refused_by_every_provider(upstream, name, fields):
    status, text = await ask(upstream.url, name, {"max_tokens": 9, **fields})
    assert status in (400, 422), text


@pytest.mark.parametrize(
    ("name", "opening"),
    [
        ("openrouter", b": OPENROUTER PROCESSING\n\n"),
        ("azure", b'data: {"id":"","object":"","created":0,"model":"","choices":[],"prompt_f'),
    ],
)
async def test_a_stream_begins_as_the_provider_s_do(upstream, name, opening):
    _, text = await ask(upstream.url, name, {"stream": True})
    assert text.encode().startswith(opening)


async def test_ollama_sends_a_call_in_one_piece(upstream):
    _, text = await ask(upstream.url, "ollama", {"stream": True, "tools": TOOLS})
    chunks = [orjson.loads(line[6:]) for line in text.splitlines() if line.startswith("data: {")]
    deltas = [choice["delta"] for chunk in chunks for choice in chunk["choices"]]
    (calls,) = [delta["tool_calls"] for delta in deltas if "tool_calls" in delta]
    assert orjson.loads(calls[0]["function"]["arguments"]) == {}
    assert chunks[-1]["choices"][0]["finish_reason"] == "tool_calls"


async def test_a_personality_is_added_as_data():
    quiet = Personality("quiet", "takes no stop strings", model_aliases={"quiet-1": "echo"})
    async with TestClient(TestServer(create_app(personalities=[quiet]))) as client:
        answer = await client.post(
            "/quiet/v1/chat/completions",
            json={"model": "quiet-1", "messages": [{"role": "user", "content": "hi"}]},
            headers={"Authorization": "Bearer k"},
        )
        assert (await answer.json())["choices"][0]["message"]["content"].endswith('"hi".')
        missing = await client.post("/deepseek/v1/chat/completions", json={})
        assert missing.status == 404
