"""The gateway's own tools where something goes wrong, and beside memory."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import orjson
import pytest
import pytest_asyncio

from tests.gateway_in_process import Gateway, running_gateway
from tests.waiting import until
from tests.web_tools import Web, with_web

pytestmark = pytest.mark.asyncio(loop_scope="module")

MESSAGES = "/beta/v1/messages"
ASKED = "Please call web_search about Typst."
SEARCH = {"type": "web_search_20250305", "name": "web_search"}
STREAMED = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
BACKUP = {
    "name": "breaks-off",
    "provider": "openai",
    "upstream": "cut",
    "fallbacks": ["anthropic/echo"],
}


@pytest.fixture(scope="module")
def web() -> Web:
    return Web()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(tmp_path_factory, web) -> AsyncIterator[Gateway]:
    with with_web(web):
        async with running_gateway(tmp_path_factory.mktemp("gateway"), models=[BACKUP]) as one:
            yield one


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def without_engine(tmp_path_factory) -> AsyncIterator[Gateway]:
    with with_web(None):
        async with running_gateway(tmp_path_factory.mktemp("gateway")) as one:
            yield one


@pytest.fixture(autouse=True)
def fresh(web):
    web.__init__()


def body(model: str, text: str = ASKED, **fields: Any) -> dict[str, Any]:
    messages = [{"role": "user", "content": text}]
    return {
        **{"model": model, "max_tokens": 3000, "messages": messages},
        **{"use_built_in_tools": True, **fields},
    }


def post(gateway: Gateway, given: dict[str, Any], path: str = MESSAGES):
    return gateway.http.post(gateway.url + path, json=given, headers=gateway.api_key())


async def ask(gateway: Gateway, given: dict[str, Any], path: str = MESSAGES) -> tuple[int, Any]:
    async with post(gateway, given, path) as answer:
        if not given.get("stream"):
            return answer.status, await answer.json()
        lines = (await answer.text()).splitlines()
        told = [orjson.loads(one.removeprefix("data: ")) for one in lines if one[:5] == "data:"]
        return answer.status, told


@STREAMED
async def test_a_caller_who_leaves_ends_the_search(gateway, web, stream):
    web.hangs = True

    async def leave() -> None:
        async with post(gateway, body("openai/echo", stream=stream)) as answer:
            await answer.read()

    asking = asyncio.create_task(leave())
    await web.searching.wait()
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    await until(lambda: web.cancelled == 1)


@STREAMED
async def test_the_bound_on_the_chain_holds_for_searches_too(gateway, web, stream):
    web.hangs = True
    config = {
        "strategy": {"mode": "sequential"},
        "global_timeout_ms": 300,
        "steps": [{"step_id": "a", "model": "sandbox/echo"}],
    }
    chain = {"fallback": "strict", "fallback_config": config}
    status, answer_body = await ask(gateway, body("sandbox/echo", stream=stream, **chain))
    error = answer_body[-1]["error"] if stream else answer_body["error"]
    assert status == (200 if stream else 504)
    assert error["type"] == "timeout_error"
    assert web.cancelled == 1


async def test_a_slow_search_is_reported_to_the_model(tmp_path):
    web = Web()
    web.hangs = True
    with with_web(web, timeout_s=0.01):
        async with running_gateway(tmp_path) as gateway:
            _, answer_body = await ask(gateway, body("openai/echo"))
    assert answer_body["content"][2]["content"]["error_code"] == "unavailable"
    assert answer_body["stop_reason"] == "end_turn"
    assert web.cancelled == 1


async def test_without_a_search_engine_pages_are_fetched_alone(without_engine):
    status, answer_body = await ask(without_engine, body("openai/echo", "Call web_search, please."))
    assert status == 200
    assert [one["type"] for one in answer_body["content"]] == ["text"]
    asked = "Call web_fetch on https://docs.example/a"
    _, answer_body = await ask(without_engine, body("openai/echo", asked))
    assert answer_body["content"][2]["type"] == "web_fetch_tool_result"


# Gemini has a search of its own.
@STREAMED
@pytest.mark.parametrize("provider", ["sandbox", "openai"])
async def test_without_a_search_engine_the_setting_is_named(without_engine, provider, stream):
    request_body = body(f"{provider}/echo", tools=[SEARCH], use_built_in_tools=False, stream=stream)
    async with post(without_engine, request_body) as answer:
        answer_body = await answer.json()
    assert answer.status == 400
    assert answer_body["error"]["message"].startswith("tools[0]: ")
    assert "[tools.web_search]" in answer_body["error"]["message"]


async def test_coding_agents_search_unless_they_say_no(gateway, without_engine, web):
    async def kinds(at: Gateway, path: str, **said: bool) -> list[str]:
        request_body = body("sandbox/echo")
        del request_body["use_built_in_tools"]
        _, answer_body = await ask(at, {**request_body, **said}, path)
        return [one["type"] for one in answer_body["content"]]

    searched = ["text", "server_tool_use", "web_search_tool_result", "text"]
    coding = "/coding/v1/messages"
    assert await kinds(gateway, coding) == searched
    assert await kinds(gateway, coding, use_built_in_tools=False) == ["text"]
    assert await kinds(gateway, MESSAGES) == ["text"]
    # Who configured no search engine wants no other tool in every request of every agent.
    assert await kinds(without_engine, coding) == ["text"]


async def test_a_round_that_breaks_off_is_done_by_the_next_model(gateway, web):
    status, answer_body = await ask(gateway, body("breaks-off"))
    assert status == 200
    kinds = [one["type"] for one in answer_body["content"]]
    assert kinds == ["text", "server_tool_use", "web_search_tool_result", "text"]
    assert len(web.queries) == 1


async def test_a_stream_that_cannot_be_gone_on_with_ends_in_an_error(gateway, web):
    _, answer_body = await ask(gateway, body("breaks-off", stream=True))
    assert answer_body[-1]["type"] == "error"
    assert "message_stop" not in [one["type"] for one in answer_body]
    assert web.queries == []


async def test_a_stream_numbers_its_blocks_and_starts_once(gateway):
    _, answer_body = await ask(gateway, body("anthropic/echo", stream=True))
    names = [one["type"] for one in answer_body if one["type"] != "ping"]
    assert names.count("message_start") == names.count("message_delta") == 1
    starts = [one["index"] for one in answer_body if one["type"] == "content_block_start"]
    assert starts == list(range(len(starts)))
    open_block = None
    for one in answer_body:
        match one["type"]:
            case "content_block_start":
                assert open_block is None
                open_block = one["index"]
            case "content_block_delta":
                assert one["index"] == open_block
            case "content_block_stop":
                assert one["index"] == open_block
                open_block = None
    (call,) = [
        one["content_block"]
        for one in answer_body
        if one["type"] == "content_block_start" and one["content_block"]["type"][:6] == "server"
    ]
    assert call["input"] == {}
    parts = [one["delta"].get("partial_json", "") for one in answer_body if "delta" in one]
    assert "query" in orjson.loads("".join(parts))


@STREAMED
async def test_memory_keeps_what_was_said_and_not_what_was_found(gateway, web, stream):
    name = f"searched-{stream}"
    request_body = body("sandbox/echo", memory_id=name, stream=stream)
    status, answer_body = await ask(gateway, request_body)
    assert status == 200
    kinds = [one["content_block"]["type"] for one in answer_body if "content_block" in one]
    assert "web_search_tool_result" in (
        kinds if stream else [one["type"] for one in answer_body["content"]]
    )
    url = f"{gateway.url}/beta/v1/memories/{name}/turns"
    async with gateway.http.get(url, headers=gateway.bearer()) as answer:
        (turn,) = (await answer.json())["data"]
    answered = turn["messages"][-1]["content"]
    assert {part["type"] for part in answered} == {"text"}
    assert "Typst sets documents." in answered[-1]["text"]


async def test_memory_continues_from_a_search_beside_a_call(gateway, web):
    tool = {"name": "get_weather", "input_schema": {"type": "object"}}
    asked = "Please call web_search and get_weather."
    request_body = body("anthropic/echo", asked, memory_id="both", tools=[tool])
    _, answer_body = await ask(gateway, request_body)
    assert answer_body["stop_reason"] == "tool_use"
    (call,) = [one for one in answer_body["content"] if one["type"] == "tool_use"]
    result = {"type": "tool_result", "tool_use_id": call["id"], "content": "14 degrees"}
    request_body["messages"] += [
        {"role": "assistant", "content": answer_body["content"]},
        {"role": "user", "content": [result]},
    ]
    _, answer_body = await ask(gateway, request_body)
    assert "Typst sets documents." in answer_body["content"][-1]["text"]
    assert "14 degrees" in answer_body["content"][-1]["text"]


async def test_a_request_without_tools_goes_as_it_came(gateway):
    """One round, no definitions, and the answer of the provider's own."""
    request_body = body("anthropic/echo", "Hello.", use_built_in_tools=False)
    async with aiohttp.ClientSession() as http:
        async with http.post(
            gateway.url + MESSAGES, json=request_body, headers=gateway.api_key()
        ) as answer:
            answer_body = await answer.json()
    assert answer_body["usage"]["service_tier"] == "standard"
    async with gateway.http.get(f"{gateway.upstream}/sandbox/log") as answer:
        assert "tools" not in (await answer.json())[-1]["body"]
