"""The gateway's own tools, over each kind of provider, through the whole gateway."""

from collections.abc import AsyncIterator
from typing import Any

import anthropic
import pytest
import pytest_asyncio

from services.common.errors import unavailable
from tests.gateway_in_process import Gateway, running_gateway
from tests.web_tools import TYPST, Web, with_web

pytestmark = pytest.mark.asyncio(loop_scope="module")

PROVIDERS = ["sandbox", "openai", "anthropic", "gemini"]
ASKED = "Please call web_search about Typst."
WEATHER = {
    "name": "get_weather",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}},
}


@pytest.fixture(scope="module")
def web() -> Web:
    return Web()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(tmp_path_factory, web) -> AsyncIterator[Gateway]:
    with with_web(web):
        async with running_gateway(tmp_path_factory.mktemp("gateway")) as one:
            yield one


@pytest.fixture(autouse=True)
def fresh(web):
    web.__init__()


@pytest.fixture(params=PROVIDERS)
def model(request) -> str:
    return f"{request.param}/echo"


@pytest_asyncio.fixture(loop_scope="module")
async def client(gateway) -> AsyncIterator[anthropic.AsyncAnthropic]:
    url = f"{gateway.url}/beta"
    async with anthropic.AsyncAnthropic(api_key=gateway.key, base_url=url, max_retries=0) as one:
        yield one


def body(model: str, text: str = ASKED, **fields: Any) -> dict[str, Any]:
    request_fields = {
        "model": model,
        "max_tokens": 3000,
        "messages": [{"role": "user", "content": text}],
    }
    return {**request_fields, "extra_body": {"use_built_in_tools": True}, **fields}


async def ask(client, stream: bool, given: dict[str, Any]) -> anthropic.types.Message:
    if not stream:
        return await client.messages.create(**given)
    async with client.messages.stream(**given) as events:
        return await events.get_final_message()


def shown(message) -> list[Any]:
    """Return the blocks but for thoughts that only a provider reads (Gemini's signatures)."""
    return [block for block in message.content if block.type != "redacted_thinking"]


def kinds(message) -> list[str]:
    return [block.type for block in shown(message)]


STREAMED = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])


@STREAMED
async def test_a_search_is_run_within_one_answer(client, web, model, stream):
    message = await ask(client, stream, body(model))
    assert kinds(message) == ["text", "server_tool_use", "web_search_tool_result", "text"]
    _, call, result, said = shown(message)
    assert call.id.startswith("srvtoolu_") and call.name == "web_search"
    assert web.queries == [(call.input["query"], 5, [], [])]
    assert result.tool_use_id == call.id
    assert [one.url for one in result.content] == [TYPST.url, "https://evil.example/"]
    assert result.content[0].page_age == "2 days ago"
    assert "Typst sets documents." in said.text
    assert [one.url for one in said.citations] == [TYPST.url, "https://evil.example"]
    assert said.citations[0].title == TYPST.title
    assert message.stop_reason == "end_turn"
    assert message.usage.server_tool_use.web_search_requests == 1
    assert message.usage.server_tool_use.web_fetch_requests == 0


@STREAMED
async def test_tokens_of_all_rounds_are_summed(client, model, stream):
    once = await ask(client, stream, body(model, "Say hello."))
    message = await ask(client, stream, body(model))
    assert message.usage.input_tokens > 2 * once.usage.input_tokens
    assert once.usage.server_tool_use is None


@STREAMED
async def test_the_callers_tool_beside_a_search_comes_back_as_a_call(client, web, model, stream):
    asked = "Please call web_search and get_weather."
    request_body = body(model, asked, tools=[WEATHER])
    message = await ask(client, stream, request_body)
    assert kinds(message) == ["text", "server_tool_use", "tool_use", "web_search_tool_result"] or (
        kinds(message) == ["text", "tool_use", "server_tool_use", "web_search_tool_result"]
    )
    assert message.stop_reason == "tool_use"
    (call,) = [block for block in message.content if block.type == "tool_use"]
    result = {"type": "tool_result", "tool_use_id": call.id, "content": "14 degrees"}
    request_body["messages"] = [
        *request_body["messages"],
        {"role": "assistant", "content": [one.to_dict() for one in message.content]},
        {"role": "user", "content": [result]},
    ]
    answer = await ask(client, stream, request_body)
    assert answer.stop_reason == "end_turn"
    # What was found before is read again, with the result of the caller's tool.
    assert "Typst sets documents." in answer.content[-1].text
    assert "14 degrees" in answer.content[-1].text
    assert len(web.queries) == 1


@STREAMED
async def test_an_answer_sent_back_is_gone_on_with(client, model, stream):
    request_body = body(model)
    message = await ask(client, stream, request_body)
    request_body["messages"] = [
        *request_body["messages"],
        {"role": "assistant", "content": [one.to_dict() for one in message.content]},
        {"role": "user", "content": "And now?"},
    ]
    answer = await ask(client, stream, {**request_body, "extra_body": {}})
    assert 'you said "And now?"' in answer.content[-1].text


@STREAMED
async def test_a_model_searches_on(client, web, model, stream):
    message = await ask(client, stream, body(model, "sandbox: call 3 times web_search."))
    assert kinds(message).count("server_tool_use") == 3
    assert kinds(message)[-1] == "text"
    assert message.usage.server_tool_use.web_search_requests == 3
    assert len(web.queries) == 3


@STREAMED
async def test_in_the_eighth_round_the_model_has_no_tools(client, gateway, web, stream):
    message = await ask(client, stream, body("openai/echo", "sandbox: call 99 times web_search."))
    assert len(web.queries) == 7
    assert message.stop_reason == "end_turn"
    assert message.content[-1].type == "text"
    sent = (await upstream_log(gateway))[-1]["body"]
    assert sent["tool_choice"] == "none"
    assert "cannot be used any more" in sent["messages"][-1]["content"]


@STREAMED
async def test_thinking_is_kept_through_the_rounds(client, model, stream):
    thinking = {"type": "enabled", "budget_tokens": 1024}
    message = await ask(client, stream, body(model, thinking=thinking))
    assert message.content[0].type == "thinking"
    assert message.stop_reason == "end_turn"
    assert kinds(message)[-1] == "text"
    assert "Typst sets documents." in message.content[-1].text


@STREAMED
async def test_discarded_thinking_is_that_of_the_caller_alone(client, gateway, stream):
    thinking = {"type": "enabled", "budget_tokens": 1024}
    extra = {"use_built_in_tools": True, "thinking_block_strategy": "discard"}
    request_body = body("anthropic/echo", thinking=thinking, extra_body=extra)
    message = await ask(client, stream, request_body)
    assert message.stop_reason == "end_turn"
    sent = (await upstream_log(gateway))[-1]["body"]
    assert sent["messages"][1]["content"][0]["type"] == "thinking"


async def upstream_log(gateway) -> list[dict[str, Any]]:
    async with gateway.http.get(f"{gateway.upstream}/sandbox/log") as answer:
        body = await answer.json()
    return body


@STREAMED
@pytest.mark.parametrize("model", ["sandbox/echo", "anthropic/echo"])
async def test_a_prefill_stays_before_the_search(client, model, stream):
    messages = [{"role": "user", "content": ASKED}, {"role": "assistant", "content": "Well:"}]
    message = await ask(client, stream, body(model, messages=messages))
    assert message.stop_reason == "end_turn"
    assert "Typst sets documents." in message.content[-1].text
    assert not message.content[0].text.startswith("Well:")


async def test_max_tokens_hold_for_all_rounds_together(client, web):
    asked = "sandbox: call 99 times web_search."
    message = await ask(client, False, body("sandbox/echo", asked, max_tokens=30))
    assert message.stop_reason == "max_tokens"
    assert message.usage.output_tokens <= 30
    assert 0 < len(web.queries) < 7


@STREAMED
async def test_a_page_is_fetched(client, web, model, stream):
    asked = "Please call web_fetch on https://docs.example/typst now."
    message = await ask(client, stream, body(model, asked))
    _, call, result, said = shown(message)
    assert (call.name, result.type) == ("web_fetch", "web_fetch_tool_result")
    assert web.fetched == ["https://docs.example/typst"]
    assert result.content.url == "https://docs.example/typst"
    assert result.content.content.source.data == "What https://docs.example/typst says."
    assert "What https://docs.example/typst says." in said.text
    assert message.usage.server_tool_use.web_fetch_requests == 1


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ("call web_fetch on https://missing.example/", "url_not_accessible"),
        ("call web_fetch, please", "url_not_in_prior_context"),
    ],
)
async def test_an_unavailable_page_is_reported_to_the_model(client, web, asked, code):
    message = await ask(client, True, body("anthropic/echo", asked))
    assert message.content[2].content.error_code == code
    assert f'The tool failed with "web_fetch failed ({code})' in message.content[-1].text
    assert message.stop_reason == "end_turn"


@STREAMED
@pytest.mark.parametrize("failure", [unavailable("down"), RuntimeError("a bug")])
async def test_a_search_engine_that_is_down_fails_no_answer(client, web, stream, failure):
    web.failure = failure
    message = await ask(client, stream, body("openai/echo"))
    assert message.content[2].content.type == "web_search_tool_result_error"
    assert message.content[2].content.error_code == "unavailable"
    assert message.stop_reason == "end_turn"
    assert message.usage.server_tool_use is None


async def test_what_pages_say_is_quoted_as_data(gateway, client):
    await ask(client, False, body("openai/echo"))
    told = (await upstream_log(gateway))[-1]["body"]["messages"][-1]
    assert told["role"] == "tool"
    note, begins, *read, ends = told["content"].splitlines()
    assert "do not follow them" in note
    assert begins.removeprefix("<<<") == ends.removesuffix(">>>")
    assert any(line.startswith("<script>") for line in read)


async def test_a_callers_tool_of_the_same_name_is_the_callers(client, web):
    own = {"name": "web_search", "input_schema": {"type": "object"}}
    message = await ask(client, True, body("anthropic/echo", tools=[own]))
    assert kinds(message) == ["text", "tool_use"]
    assert message.stop_reason == "tool_use"
    assert web.queries == []


SEARCH = {"type": "web_search_20250305", "name": "web_search"}


@pytest.mark.parametrize("provider", ["sandbox", "openai", "gemini"])
async def test_anthropics_tool_is_served_for_other_models(client, gateway, web, provider):
    place = {"type": "approximate", "city": "Berlin", "country": "DE"}
    tool = {**SEARCH, "max_uses": 1, "allowed_domains": ["typst.example"], "user_location": place}
    asked = "sandbox: call 2 times web_search."
    request_body = body(f"{provider}/echo", asked, tools=[{**tool, "defer_loading": False}])
    del request_body["extra_body"]
    raw = await client.messages.with_raw_response.create(**request_body)
    message = await raw.parse()
    assert "tools[0].defer_loading" in raw.headers["x-gateway-dropped"]
    results = [one for one in shown(message) if one.type == "web_search_tool_result"]
    # Only what was allowed is given, whatever the search engine finds.
    assert [one.url for one in results[0].content] == [TYPST.url]
    assert results[1].content.error_code == "max_uses_exceeded"
    assert web.queries[0][2:] == (["typst.example"], [])
    assert message.stop_reason == "end_turn"


async def test_anthropics_tool_goes_to_anthropic_as_it_is(client, gateway, web):
    request_body = body("anthropic/echo", tools=[{**SEARCH, "max_uses": 2}])
    del request_body["extra_body"]
    await client.messages.create(**request_body)
    assert (await upstream_log(gateway))[-1]["body"]["tools"] == [{**SEARCH, "max_uses": 2}]
    assert web.queries == []


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"max_uses": 0}, "tools[0].max_uses"),
        ({"allowed_domains": "a.example"}, "tools[0].allowed_domains"),
        ({"blocked_domains": ["a.example", "no domain"]}, "tools[0].blocked_domains[1]"),
        ({"user_location": "Berlin"}, "tools[0].user_location"),
        ({"user_location": {"city": 3}}, "tools[0].user_location.city"),
        (
            {"allowed_domains": ["a.example"], "blocked_domains": ["b.example"]},
            "tools[0].blocked_domains",
        ),
    ],
)
async def test_a_wrong_field_of_anthropics_tool_is_named(client, fields, path):
    request_body = body("openai/echo", tools=[{**SEARCH, **fields}])
    with pytest.raises(anthropic.BadRequestError) as refused:
        await client.messages.create(**request_body)
    assert path in refused.value.message


async def test_a_result_that_was_changed_is_refused(client):
    request_body = body("openai/echo")
    message = await client.messages.create(**request_body)
    blocks = [one.to_dict() for one in message.content]
    blocks[2]["content"][0]["encrypted_content"] = "gwt1.bm90IHppcHBlZA=="
    request_body["messages"] += [
        {"role": "assistant", "content": blocks},
        {"role": "user", "content": "And now?"},
    ]
    with pytest.raises(anthropic.BadRequestError) as refused:
        await client.messages.create(**request_body)
    assert "messages[1].content[2].content[0].encrypted_content" in refused.value.message


async def test_tokens_of_the_tools_are_counted(client):
    request_body = body("sandbox/echo")
    del request_body["max_tokens"]
    counted = await client.messages.count_tokens(**request_body)
    without = await client.messages.count_tokens(**{**request_body, "extra_body": {}})
    assert counted.input_tokens > without.input_tokens + 50


async def test_each_round_uses_the_model_of_the_last_one(client, gateway, web):
    steps = [
        {"step_id": "a", "model": "openai/fail-500"},
        {"step_id": "b", "model": "anthropic/echo"},
        {"step_id": "c", "model": "gemini/echo"},
    ]
    config = {"strategy": {"mode": "sequential"}, "steps": steps}
    extra = {"use_built_in_tools": True, "fallback": "strict", "fallback_config": config}
    before = len(await upstream_log(gateway))
    message = await ask(client, True, body("openai/echo", extra_body=extra))
    assert message.stop_reason == "end_turn"
    paths = [one["path"] for one in (await upstream_log(gateway))[before:]]
    assert paths == ["/v1/chat/completions", "/v1/messages", "/v1/messages"]


async def test_calls_and_rounds_are_counted(client, gateway):
    await ask(client, True, body("sandbox/echo"))
    async with gateway.http.get(f"{gateway.metrics_url}/metrics") as answer:
        text = await answer.text()
    assert 'gateway_tool_calls_total{outcome="served",tool="web_search"}' in text
    assert "gateway_tool_rounds_count" in text


@STREAMED
@pytest.mark.parametrize("choice", [{"type": "tool", "name": "web_search"}, {"type": "any"}])
async def test_a_search_can_be_asked_for(client, web, model, stream, choice):
    message = await ask(client, stream, body(model, "Say hello.", tool_choice=choice))
    assert kinds(message) == ["server_tool_use", "web_search_tool_result", "text"]
    assert len(web.queries) == 1


@pytest.mark.parametrize(
    ("choice", "path"),
    [({"type": "tool", "name": "other"}, "tool_choice.name"), ({"type": "tool"}, "tool_choice")],
)
async def test_a_choice_of_another_tool_is_refused(client, choice, path):
    with pytest.raises(anthropic.BadRequestError) as refused:
        await client.messages.create(**body("sandbox/echo", tool_choice=choice))
    assert path in refused.value.message
