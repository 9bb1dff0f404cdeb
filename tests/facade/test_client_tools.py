"""Tools that their callers run in a format of one dialect, over every kind of provider."""

import json
from collections.abc import AsyncIterator
from typing import Any

import anthropic
import openai
import pytest
import pytest_asyncio

from tests.gateway_in_process import Gateway, running_gateway

pytestmark = pytest.mark.asyncio(loop_scope="module")

OVER_HTTP = pytest.mark.parametrize("model", ["openai/echo", "anthropic/echo", "gemini/echo"])
STREAMED = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
NAME = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


def function(name: str, **flags: Any) -> dict[str, Any]:
    return {"type": "function", "name": name, "parameters": NAME, "strict": False, **flags}


def namespace(name: str, *tools: Any, description: str = "") -> dict[str, Any]:
    return {"type": "namespace", "name": name, "description": description, "tools": list(tools)}


NOTES = namespace("mcp__notes", function("add"), function("read"), description="Keep notes.")
SEARCH = {"type": "tool_search", "execution": "client", "description": "Finds tools."}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(tmp_path_factory) -> AsyncIterator[Gateway]:
    async with running_gateway(tmp_path_factory.mktemp("gateway")) as one:
        yield one


@pytest_asyncio.fixture(loop_scope="module")
async def client(gateway) -> AsyncIterator[openai.AsyncOpenAI]:
    url = f"{gateway.url}/beta/v1"
    async with openai.AsyncOpenAI(api_key=gateway.key, base_url=url, max_retries=0) as one:
        yield one


@pytest.fixture(params=["sandbox", "openai", "anthropic", "gemini"])
def model(request) -> str:
    return f"{request.param}/echo"


async def ask(client: openai.AsyncOpenAI, stream: bool, **given: Any) -> Any:
    """Return a response; that of a stream as its last event tells it."""
    given = {"store": False, **given}
    if not stream:
        return await client.responses.create(**given)
    async with client.responses.stream(**given) as events:
        async for _ in events:
            pass
        return await events.get_final_response()


async def sent(gateway: Gateway) -> dict[str, Any]:
    """Return the body of the latest request that a provider got."""
    async with gateway.http.get(f"{gateway.upstream}/sandbox/log") as answer:
        return (await answer.json())[-1]["body"]


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def result(call: Any, output: str) -> dict[str, Any]:
    kind = "custom_tool_call_output" if call.type == "custom_tool_call" else "function_call_output"
    return {"type": kind, "call_id": call.call_id, "output": output}


@STREAMED
async def test_a_tool_in_a_namespace_is_called(client, gateway, model, stream):
    items: list[Any] = [user("Please call mcp__notes__read")]
    tools = [function("get_time"), NOTES, function("get_weather")]
    response = await ask(client, stream, model=model, tools=tools, input=items)
    (call,) = (item for item in response.output if item.type == "function_call")
    assert (call.namespace, call.name) == ("mcp__notes", "read")
    assert "name" in json.loads(call.arguments)
    items += [item.to_dict() for item in response.output] + [result(call, "<read>")]
    response = await ask(client, stream, model=model, tools=tools, input=items)
    assert "<read>" in response.output_text
    if not model.startswith("sandbox"):
        body = json.dumps(await sent(gateway))
        assert body.count('"mcp__notes__read"') >= 2, "in the tools, and in the earlier call"
        assert body.count("Keep notes.") == 1 and '"namespace"' not in body


@STREAMED
async def test_names_of_any_kind_come_back(client, model, stream):
    names = [("a", "b__c"), ("a__b", "c"), ("x" * 60, "long"), ("1.st", "größe"), ("get", "time")]
    tools = [function("get__time"), *(namespace(one, function(name)) for one, name in names)]
    for one, name in names:
        choice = {"type": "function", "name": name}
        fields = {"model": model, "tools": tools, "tool_choice": choice}
        response = await ask(client, stream, **fields, input="go")
        (call,) = (item for item in response.output if item.type == "function_call")
        assert (call.namespace, call.name) == (one, name)
    response = await ask(client, stream, model=model, tools=tools, input="Please call get__time")
    (call,) = (item for item in response.output if item.type == "function_call")
    assert (call.namespace, call.name) == (None, "get__time")


@STREAMED
async def test_a_custom_tool_in_a_namespace_is_called(client, model, stream):
    edit = {"type": "custom", "name": "edit", "description": "Edits."}
    items: list[Any] = [user('Please call files__edit with "x"')]
    fields = {"model": model, "tools": [namespace("files", edit)]}
    response = await ask(client, stream, **fields, input=items)
    (call,) = (item for item in response.output if item.type == "custom_tool_call")
    assert (call.namespace, call.name, call.input) == ("files", "edit", items[0]["content"])
    items += [item.to_dict() for item in response.output] + [result(call, "<edited>")]
    assert "<edited>" in (await ask(client, stream, **fields, input=items)).output_text


@STREAMED
async def test_a_search_for_tools_is_run_by_the_caller(client, gateway, model, stream):
    items: list[Any] = [user("Please call tool_search")]
    tools = [SEARCH, function("get_time")]
    response = await ask(client, stream, model=model, tools=tools, input=items)
    (call,) = (item for item in response.output if item.type == "tool_search_call")
    assert (call.execution, call.status) == ("client", "completed")
    assert isinstance(call.arguments, dict) and "query" in call.arguments
    items += [item.to_dict() for item in response.output]
    items.append(
        {
            "type": "tool_search_output",
            "call_id": call.call_id,
            "execution": "client",
            "status": "completed",
            "tools": [NOTES, function("get_date")],
        }
    )
    response = await ask(client, stream, model=model, tools=tools, input=items)
    assert "mcp__notes__add, mcp__notes__read, get_date" in response.output_text
    items += [*(item.to_dict() for item in response.output), user("Please call mcp__notes__add")]
    response = await ask(client, stream, model=model, tools=tools, input=items)
    (call,) = (item for item in response.output if item.type == "function_call")
    assert (call.namespace, call.name) == ("mcp__notes", "add")


async def test_tools_in_the_input_are_offered(client, model):
    added = {"type": "additional_tools", "role": "developer", "tools": [NOTES]}
    items: list[Any] = [added, user("Please call mcp__notes__read")]
    response = await ask(client, False, model=model, tools=[function("get_time")], input=items)
    (call,) = (item for item in response.output if item.type == "function_call")
    assert (call.namespace, call.name) == ("mcp__notes", "read")


@OVER_HTTP
async def test_tools_of_a_search_by_the_provider_are_offered(client, model):
    found = {"type": "tool_search_output", "execution": "server", "tools": [NOTES]}
    call = {"type": "tool_search_call", "execution": "server", "arguments": {"paths": ["crm"]}}
    items: list[Any] = [user("Hi"), call, found, user("Please call mcp__notes__read")]
    raw = await client.responses.with_raw_response.create(
        model=model, tools=[function("get_time")], input=items, store=False
    )
    calls = [item for item in raw.parse().output if item.type == "function_call"]
    assert ("mcp__notes", "read") in [(call.namespace, call.name) for call in calls]
    assert set(raw.headers["x-gateway-adapted"].split(", ")) == {"input[1]:text", "input[2]:text"}


@OVER_HTTP
async def test_flags_of_tools_are_named_when_dropped(client, model):
    custom = {"type": "custom", "name": "edit", "defer_loading": True}
    tools = [
        {**custom, "allowed_callers": ["direct"]},
        namespace("n", function("f", output_schema={}), {"type": "image_generation"}),
        {"type": "image_generation"},
    ]
    raw = await client.responses.with_raw_response.create(
        model=model, tools=tools, input="Hi", store=False
    )
    assert set(raw.headers["x-gateway-dropped"].split(", ")) == {
        *("tools[].defer_loading", "tools[].allowed_callers"),
        *("tools[1].tools[0].output_schema", "tools[1].tools[1]", "tools[2]"),
    }


@pytest.mark.parametrize(
    ("tool", "param"),
    [
        (namespace("n", {"type": "function"}), "tools[0].tools[0].name"),
        (namespace("n", {**function("f"), "parameters": []}), "tools[0].tools[0].parameters"),
        ({"type": "namespace", "name": "n", "tools": {}}, "tools[0].tools"),
        ({"type": "namespace", "tools": []}, "tools[0].name"),
    ],
)
async def test_malformed_namespaces_are_refused(client, model, tool, param):
    with pytest.raises(openai.BadRequestError) as refused:
        await client.responses.create(model=model, tools=[tool], input="Hi")
    assert refused.value.param == param


BASH = {"type": "bash_20250124", "name": "bash"}
EDITOR = {"type": "text_editor_20250728", "name": "str_replace_based_edit_tool"}
MEMORY = {"type": "memory_20250818", "name": "memory"}
COMMANDS = ["view", "create", "str_replace", "insert"]


@STREAMED
@pytest.mark.parametrize("tool", [BASH, EDITOR, MEMORY], ids=lambda tool: tool["name"])
@pytest.mark.parametrize("model", ["sandbox/echo", "openai/echo", "gemini/echo"])
async def test_tools_of_anthropic_are_called(gateway, model, tool, stream):
    url = f"{gateway.url}/beta"
    async with anthropic.AsyncAnthropic(
        auth_token=gateway.key, base_url=url, max_retries=0
    ) as client:
        turns: list[Any] = [user(f"Please call {tool['name']}")]
        fields = {"model": model, "max_tokens": 500, "tools": [tool]}
        message = await messages(client, stream, **fields, messages=turns)
        call = message.content[-1]
        assert (call.type, call.name, message.stop_reason) == ("tool_use", tool["name"], "tool_use")
        done = {"type": "tool_result", "tool_use_id": call.id, "content": "<done>"}
        said = [block.to_dict() for block in message.content]
        turns += [{"role": "assistant", "content": said}, {"role": "user", "content": [done]}]
        message = await messages(client, stream, **fields, messages=turns)
        assert "<done>" in message.content[-1].text
        counted = await client.messages.count_tokens(model=model, messages=turns, tools=[tool])
        assert counted.input_tokens > 50


async def messages(client: anthropic.AsyncAnthropic, stream: bool, **given: Any) -> Any:
    if not stream:
        return await client.messages.create(**given)
    async with client.messages.stream(**given) as events:
        return await events.get_final_message()


@pytest.mark.parametrize(
    ("tool", "members", "commands"),
    [
        (BASH, {"command", "restart"}, None),
        (EDITOR, {"path", "insert_text", "view_range"}, COMMANDS),
        (
            {"type": "text_editor_20250124", "name": "str_replace_editor"},
            {"path", "new_str"},
            [*COMMANDS, "undo_edit"],
        ),
        (MEMORY, {"old_path", "insert_text"}, [*COMMANDS, "delete", "rename"]),
        ({"type": "bash_20301231", "name": "bash"}, {"command", "restart"}, None),
    ],
)
async def test_tools_of_anthropic_say_what_they_take(gateway, tool, members, commands):
    body = {"model": "openai/echo", "max_tokens": 50, "messages": [user("Hi")], "tools": [tool]}
    url, headers = f"{gateway.url}/beta/v1/messages", gateway.api_key()
    async with gateway.http.post(url, json=body, headers=headers) as answer:
        assert answer.status == 200
    (offered,) = (await sent(gateway))["tools"]
    assert offered["function"]["name"] == tool["name"]
    properties = offered["function"]["parameters"]["properties"]
    assert members <= properties.keys()
    assert properties.get("command", {}).get("enum") == commands


async def test_flags_of_tools_of_anthropic_are_named(gateway):
    tools = [{**EDITOR, "max_characters": 100, "cache_control": {"type": "ephemeral"}}]
    body = {"model": "openai/echo", "max_tokens": 50, "messages": [user("Hi")], "tools": tools}
    url, headers = f"{gateway.url}/beta/v1/messages", gateway.api_key()
    async with gateway.http.post(url, json=body, headers=headers) as answer:
        dropped = answer.headers["x-gateway-dropped"].split(", ")
    assert dropped == ["tools[].cache_control", "tools[].max_characters"]


@STREAMED
@pytest.mark.parametrize("model", ["sandbox/echo", "openai/echo", "gemini/echo"])
async def test_tools_are_added_and_removed_by_messages(gateway, model, stream):
    url = f"{gateway.url}/beta"
    async with anthropic.AsyncAnthropic(
        auth_token=gateway.key, base_url=url, max_retries=0
    ) as client:
        tools = [{"name": name, "input_schema": NAME} for name in ("one", "two")]
        added = {"type": "tool_definition", "definition": {"name": "three", "input_schema": NAME}}
        changes = [
            {"type": "tool_removal", "tool": {"type": "tool_reference", "name": "one"}},
            {"type": "tool_addition", "tool": added},
        ]
        turns: list[Any] = [user("Hi"), {"role": "system", "content": changes}]
        fields = {"model": model, "max_tokens": 500, "tools": tools}
        for name, is_called in (("one", False), ("two", True), ("three", True)):
            asked = [*turns, user(f"Call {name}")]
            message = await messages(client, stream, **fields, messages=asked)
            calls = [block.name for block in message.content if block.type == "tool_use"]
            assert calls == ([name] if is_called else [])
