"""Requests that a provider of their own dialect takes, and what another one makes of them."""

import json
from collections.abc import AsyncIterator
from typing import Any

import anthropic
import openai
import pytest

from tests.facade.test_foreign_history import Recorder, ask
from tests.gateway_in_process import Gateway, running_gateway, serving

Json = dict[str, Any]

TOOL = {"name": "get_weather", "input_schema": {"type": "object", "properties": {}}}
REFERENCE = {"type": "tool_reference", "tool_name": "get_weather"}


@pytest.fixture
async def recorder() -> Recorder:
    return Recorder()


@pytest.fixture
async def gateway(tmp_path: Any, recorder: Recorder) -> AsyncIterator[Gateway]:
    async with running_gateway(tmp_path, recorder.app()) as running:
        yield running


def user(text: str) -> Json:
    return {"role": "user", "content": text}


def said(text: str) -> Json:
    return {"type": "text", "text": text}


async def sent_by(gateway: Gateway, recorder: Recorder, path: str, body: Json) -> Json:
    """Return what the provider is sent; the request must succeed."""
    status, _, answer = await ask(gateway, path, body)
    assert status == 200, answer
    return sent(recorder)


def sent(recorder: Recorder) -> Json:
    """Return the latest body that a provider got."""
    body: Json = json.loads(recorder.bodies[-1])
    return body


def messages(model: str, *turns: Json, **fields: Any) -> Json:
    return {"model": model, "max_tokens": 50, "messages": [*turns], **fields}


@pytest.mark.parametrize("kind", ["tool_addition", "tool_removal"])
@pytest.mark.parametrize("before", [[], [user("Hi")]], ids=["first", "later"])
async def test_changes_of_tools_stay_in_place(gateway, recorder, kind, before):
    change = {"role": "system", "content": [{"type": kind, "tool": REFERENCE}, said("Note.")]}
    turns = [*before, change, user("Go on")]
    body = messages("anthropic/x", *turns, tools=[TOOL])
    assert (await sent_by(gateway, recorder, "messages", body))["messages"] == turns


@pytest.mark.parametrize("content", [{}, {"content": []}], ids=["absent", "empty"])
async def test_a_system_message_of_settings_alone_stays(gateway, recorder, content):
    settings = {"role": "system", "output_config": {"effort": "low"}}
    body = messages("anthropic/x", user("Hi"), {**settings, **content})
    body = await sent_by(gateway, recorder, "messages", body)
    assert body["messages"] == [user("Hi"), settings]


async def test_other_messages_need_content(gateway):
    status, _, answer = await ask(gateway, "messages", messages("anthropic/x", {"role": "user"}))
    assert (status, answer["error"]["param"]) == (400, "messages[0].content")


async def test_a_request_that_only_fills_the_cache(gateway, recorder):
    async with anthropic.AsyncAnthropic(
        auth_token=gateway.key, base_url=f"{gateway.url}/beta", max_retries=0
    ) as client:
        fields: Any = {"max_tokens": 0, "messages": [user("Hi")]}
        await client.messages.create(model="anthropic/x", **fields)
        assert sent(recorder)["max_tokens"] == 0
        for model in ("openai/x", "gemini/x", "sandbox/echo"):
            with pytest.raises(anthropic.BadRequestError, match="max_tokens: must be at least 1"):
                await client.messages.create(model=model, **fields)


@pytest.mark.parametrize("extra", [{}, {"top_k": 5, "metadata": {"x": 1}}], ids=["", "canonical"])
async def test_white_space_is_no_text_to_anthropic(gateway, recorder, extra):
    call = {"type": "tool_use", "id": "t", "name": "f", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "t", "content": [said(" "), said("r")]}
    mark = {"cache_control": {"type": "ephemeral"}}
    turns = [
        {"role": "user", "content": [said("  \n"), said("Hi"), {**said("\t"), **mark}]},
        {"role": "assistant", "content": [said("\n\n"), call]},
        {"role": "user", "content": [result]},
        {"role": "assistant", "content": " \n"},
        user("Go on"),
    ]
    body = messages("anthropic/x", *turns, system=[said(" "), said("Be brief.")], **extra)
    got = await sent_by(gateway, recorder, "messages", body)
    assert got["system"] in ("Be brief.", [said("Be brief.")])
    assert got["messages"] == [
        {"role": "user", "content": [{**said("Hi"), **mark}]},
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [{**result, "content": "r"}]},
        user("Go on"),
    ]


CALL = {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {}}]}
RESULT = {"type": "tool_result", "tool_use_id": "t"}


@pytest.mark.parametrize(
    ("turns", "fields", "left"),
    [
        ([{"role": "user", "content": [said(" "), said("Hi")]}], {}, [user("Hi")]),
        ([{"role": "user", "content": [said("\u00a0\n"), said("Hi")]}], {}, [user("Hi")]),
        (
            [user("Hi"), {"role": "assistant", "content": "\n"}, user("Go on")],
            {},
            [user("Hi"), user("Go on")],
        ),
        (
            [
                user("Hi"),
                CALL,
                {"role": "user", "content": [{**RESULT, "content": [said("\t"), said("r")]}]},
            ],
            {},
            [user("Hi"), CALL, {"role": "user", "content": [{**RESULT, "content": "r"}]}],
        ),
        ([user("Hi")], {"system": " \n"}, [user("Hi")]),
    ],
    ids=["block", "no-break", "message", "result", "system"],
)
async def test_white_space_alone_is_left_out(gateway, recorder, turns, fields, left):
    got = await sent_by(gateway, recorder, "messages", messages("anthropic/x", *turns, **fields))
    assert (got["messages"], "system" in got) == (left, False)


@pytest.mark.parametrize("path", ["messages", "chat/completions"])
async def test_a_model_does_not_continue_its_own_words(gateway, recorder, path):
    turns = [user("Hi"), {"role": "assistant", "content": "Hello"}, user(" \n")]
    status, _, answer = await ask(gateway, path, messages("anthropic/x", *turns))
    assert (status, answer["error"]["param"]) == (400, "messages[2]")
    assert not recorder.bodies


@pytest.mark.parametrize("model", ["openai/x", "anthropic/x", "gemini/x"])
async def test_a_chat_is_not_stored_at_a_provider(gateway, recorder, model):
    body = {"model": model, "messages": [user("Hi")], "store": True}
    status, headers, answer = await ask(gateway, "chat/completions", body)
    assert status == 200, answer
    assert "x-gateway-dropped" not in headers, "the gateway stores it"
    assert sent(recorder).get("store") in (None, False)


@pytest.mark.parametrize("model", ["openai/x", "anthropic/x", "gemini/x"])
async def test_an_output_of_no_call_is_a_text(gateway, recorder, model):
    items = [user("Hi"), {"type": "function_call_output", "output": "It rains."}]
    body = {"model": model, "input": items, "store": False}
    status, headers, answer = await ask(gateway, "responses", body)
    assert status == 200, answer
    assert "It rains." in str(recorder.bodies[-1])
    assert headers["x-gateway-adapted"] == "input[1]:text"


async def test_a_format_without_a_schema_is_any_object(gateway, recorder):
    form = {"type": "json_schema", "json_schema": {"name": "x"}}
    body = {"model": "openai/x", "messages": [user("Hi")], "response_format": form}
    got = await sent_by(gateway, recorder, "chat/completions", body)
    assert got["response_format"] == form
    got = await sent_by(gateway, recorder, "chat/completions", {**body, "model": "gemini/x"})
    assert got["generationConfig"]["responseMimeType"] == "application/json"
    text = {"format": {"type": "json_schema", "name": "x"}}
    body = {"model": "openai/x", "input": "Hi", "store": False, "text": text}
    got = await sent_by(gateway, recorder, "responses", body)
    assert got["response_format"] == {"type": "json_object"}


BLOCK = {"model": "omni-moderation-latest", "policy": {"output": {"mode": "block"}}}
SCORE = {"model": "omni-moderation-latest", "policy": {"output": {"mode": "score"}}}


@pytest.mark.parametrize("model", ["anthropic/x", "gemini/x"])
@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("chat/completions", {"moderation": BLOCK}),
        ("responses", {"moderation": BLOCK}),
        ("messages", {"thread": {"type": "continue", "previous_message_id": "msg_1"}}),
    ],
)
async def test_what_only_its_provider_can_do_is_refused(gateway, recorder, model, path, fields):
    if (path, model) == ("messages", "anthropic/x"):
        model = "openai/x"
    conversation = {"input": "Hi"} if path == "responses" else {"messages": [user("Hi")]}
    limit = {} if path == "responses" else {"max_tokens": 50}
    status, _, answer = await ask(
        gateway, path, {"model": model, **conversation, **limit, **fields}
    )
    (name,) = fields
    assert (status, answer["error"]["param"]) == (400, name)
    assert not recorder.bodies


@pytest.mark.parametrize(
    ("path", "name", "value"),
    [
        ("chat/completions", "moderation", SCORE),
        ("messages", "thread", {"type": "create"}),
    ],
)
async def test_what_can_be_left_out_is_named(gateway, path, name, value):
    body = {**messages("gemini/x", user("Hi")), name: value}
    status, headers, answer = await ask(gateway, path, body)
    assert status == 200, answer
    assert headers["x-gateway-dropped"] == name


async def test_a_list_of_files_is_filtered_by_ids(gateway):
    async with anthropic.AsyncAnthropic(
        auth_token=gateway.key, base_url=f"{gateway.url}/beta", max_retries=0
    ) as client:
        kept = [await client.beta.files.upload(file=(f"{n}.txt", b"a")) for n in range(3)]
        ids = [kept[0].id, kept[2].id, "file_011CNha8iCJcU1wXNR6q4V8w", "?"]
        page = await client.beta.files.list(ids=ids)
        assert [one.id for one in page.data] == [kept[2].id, kept[0].id]
        assert not page.has_next_page()
        # No file belongs to a session.
        assert (await client.beta.files.list(scope_id="session_1")).data == []
        with pytest.raises(anthropic.BadRequestError, match="limit: must not be given"):
            await client.beta.files.list(ids=ids, limit=2)
        with pytest.raises(anthropic.BadRequestError, match="at most 100"):
            await client.beta.files.list(ids=[f"file_{n}" for n in range(101)])


async def test_a_chat_of_the_sdk_without_a_schema(gateway, recorder):
    url = f"{gateway.url}/beta/v1"
    async with openai.AsyncOpenAI(api_key=gateway.key, base_url=url, max_retries=0) as client:
        form: Any = {"type": "json_schema", "json_schema": {"name": "x", "strict": True}}
        fields: Any = {"messages": [user("Hi")], "response_format": form, "store": True}
        await client.chat.completions.create(model="openai/x", **fields)
    assert sent(recorder)["response_format"] == form


COMPUTER = {"type": "computer_20250124", "name": "computer"}
SCREEN = {"display_width_px": 800, "display_height_px": 600}


@pytest.mark.parametrize(
    ("path", "model", "tool", "api"),
    [
        ("messages", "openai/x", {**COMPUTER, **SCREEN}, "Anthropic's messages"),
        ("messages", "gemini/x", {**COMPUTER, **SCREEN}, "Anthropic's messages"),
        ("responses", "openai/x", {"type": "computer"}, "OpenAI's responses"),
        ("responses", "anthropic/x", {"type": "computer"}, "OpenAI's responses"),
        ("responses", "gemini/x", {"type": "computer"}, "OpenAI's responses"),
    ],
)
async def test_a_refused_tool_is_named_with_what_to_use(gateway, recorder, path, model, tool, api):
    conversation = {"input": "Hi"} if path == "responses" else messages(model, user("Hi"))
    body = {"model": model, **conversation, "tools": [tool]}
    status, _, answer = await ask(gateway, path, body)
    words = answer["error"]["message"]
    assert (status, answer["error"]["param"]) == (400, "tools[0]")
    assert f"tools of the type {tool['type']};" in words
    assert f"a model of a provider of {api}, or a function" in words
    assert not recorder.bodies


WINDOW = {"completion_window": "8h"}
RELATED = {"continuation_id": "batch_7"}


OPTIONS = pytest.mark.parametrize(
    ("options", "dropped"),
    [
        ({"completion_window": "soonest"}, ""),
        (WINDOW, "background_options"),
        ({"completion_window": "soonest", **RELATED}, "background_options"),
        ({}, ""),
    ],
)
RESPONSE = {
    **{"id": "resp_1", "object": "response", "status": "completed", "model": "m"},
    "output": [
        {
            **{"id": "msg_1", "type": "message", "role": "assistant", "status": "completed"},
            "content": [{"type": "output_text", "text": "ok", "annotations": []}],
        }
    ],
}


async def check_options(gateway, recorder, model, options, dropped):
    body = {"model": model, "input": "Hi", "store": False, "background_options": options}
    status, headers, answer = await ask(gateway, "responses", body)
    assert status == 200, answer
    assert headers.get("x-gateway-dropped", "").partition(".")[0] == dropped
    assert "background_options" not in sent(recorder)


@pytest.mark.parametrize("model", ["openai/x", "anthropic/x", "gemini/x"])
@OPTIONS
async def test_options_of_the_background_are_the_gateways(
    gateway, recorder, model, options, dropped
):
    await check_options(gateway, recorder, model, options, dropped)


@OPTIONS
async def test_options_of_the_background_are_not_openais(tmp_path, recorder, options, dropped):
    app = recorder.app()
    app.router.add_post("/v1/responses", recorder._answering(RESPONSE))
    async with serving(app) as url:
        openai_itself = {"kind": "openai", "base_url": f"{url}/v1", "responses": True}
        providers = {"openai": {**openai_itself, "api_key": "k"}}
        async with running_gateway(tmp_path, url, providers=providers) as gateway:
            await check_options(gateway, recorder, "openai/x", options, dropped)
            assert "input" in sent(recorder)
