"""The official client's responses, over the whole gateway and every provider."""

from collections.abc import AsyncIterator
from typing import Any

import openai
import pytest
import pytest_asyncio
from pydantic import BaseModel

from tests.facade.conftest import MODELS
from tests.facade.conversations import PICTURE, WEATHER, png
from tests.gateway_in_process import Gateway, running_gateway
from tests.web_tools import TYPST, Web, with_web

pytestmark = pytest.mark.asyncio(loop_scope="module")

STREAMED = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
TOOLS = [
    {"type": "function", "name": name, "parameters": WEATHER, "strict": False}
    for name in ("get_weather", "get_time")
]
BLIND = {
    "name": "blind",
    "provider": "openai",
    "upstream": "echo",
    "fallbacks": ["sandbox/echo"],
}


class Plan(BaseModel):
    """A plan."""

    city: str
    days: int


@pytest.fixture(scope="module")
def web() -> Web:
    return Web()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(tmp_path_factory, web) -> AsyncIterator[Gateway]:
    with with_web(web):
        folder = tmp_path_factory.mktemp("gateway")
        async with running_gateway(folder, models=[*MODELS, BLIND]) as one:
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


@STREAMED
async def test_a_text(client, model, stream):
    response = await ask(client, stream, model=model, input="Hi", instructions="Be brief.")
    assert response.output_text == (
        'Sandbox echo: you said "Hi". The system prompt is "Be brief.".'
    )
    assert (response.status, response.instructions) == ("completed", "Be brief.")
    assert response.id.startswith("resp_") and len(response.id) == 53
    assert response.usage.output_tokens > 0


@STREAMED
async def test_a_tool_loop_with_the_output_sent_back(client, model, stream):
    asked = "What is the weather, and the time? Ask your tools in parallel."
    items: list[Any] = [{"role": "user", "content": asked}]
    fields = {"model": model, "tools": TOOLS, "reasoning": {"effort": "low"}}
    fields["max_output_tokens"] = 4000
    response = await ask(client, stream, **fields, input=items, tool_choice="required")
    calls = [item for item in response.output if item.type == "function_call"]
    assert [call.name for call in calls] == ["get_weather", "get_time"]
    items += [item.to_dict() for item in response.output]
    items += [
        {"type": "function_call_output", "call_id": call.call_id, "output": f"<{call.name}>"}
        for call in calls
    ]
    response = await ask(client, stream, **fields, input=items)
    assert "<get_weather>" in response.output_text
    assert "<get_time>" in response.output_text


THINKING = {"reasoning": {"effort": "low"}, "max_output_tokens": 4000}
GO_ON = {"role": "user", "content": "Go on"}


@STREAMED
async def test_signed_thoughts_go_back_to_their_provider(client, gateway, stream):
    fields = {"model": "anthropic/echo", **THINKING}
    response = await ask(client, stream, **fields, input="Think")
    thought, _ = response.output
    assert thought.type == "reasoning" and thought.encrypted_content.startswith("gw1.")
    items = [item.to_dict() for item in response.output]
    await ask(client, stream, **fields, input=[*items, GO_ON])
    async with gateway.http.get(f"{gateway.upstream}/sandbox/log") as answer:
        sent = (await answer.json())[-1]["body"]
    first = sent["messages"][0]["content"][0]
    assert first["thinking"] == thought.summary[0].text
    assert not first["signature"].startswith("gw1."), "the provider's own, out of the gateway's"


@STREAMED
async def test_thoughts_are_signed_for_providers_that_sign_none(client, stream):
    fields = {"model": "openai/echo", **THINKING}
    response = await ask(client, stream, **fields, input="Think")
    items = [item.to_dict() for item in response.output]
    raw = client.responses.with_raw_response
    answer = await raw.create(**fields, input=[*items, GO_ON], store=False)
    # This provider refuses thoughts, so that they are left out at the last moment.
    assert answer.headers["x-gateway-dropped"] == "input[].summary"
    items[0]["summary"][0]["text"] = "Forged."
    answer = await raw.create(**fields, input=[*items, GO_ON], store=False)
    assert answer.headers["x-gateway-dropped"] == "input[].summary"


GRAMMAR = {"type": "grammar", "syntax": "lark", "definition": 'start: "patch"'}


@STREAMED
async def test_custom_tools_are_functions_to_other_providers(client, gateway, model, stream):
    tool = {"type": "custom", "name": "apply_patch", "description": "Edits.", "format": GRAMMAR}
    choice = {"type": "custom", "name": "apply_patch"}
    asked = 'Add "a\\b"\n☕'
    items: list[Any] = [{"role": "user", "content": asked}]
    fields = {"model": model, "tools": [tool], "store": False}
    response = await ask(client, stream, **fields, input=items, tool_choice=choice)
    (call,) = (item for item in response.output if item.type == "custom_tool_call")
    assert (call.name, call.input) == ("apply_patch", asked)
    output = {"type": "custom_tool_call_output", "call_id": call.call_id, "output": "<done>"}
    items += [item.to_dict() for item in response.output] + [output]
    raw = await client.responses.with_raw_response.create(**fields, input=items)
    assert "<done>" in raw.parse().output_text
    assert raw.headers["x-gateway-dropped"] == "tools[0].format"
    if not model.startswith("sandbox"):
        async with gateway.http.get(f"{gateway.upstream}/sandbox/log") as answer:
            sent = str((await answer.json())[-1]["body"])
        assert "start:" in sent and "custom" not in sent


@pytest.mark.parametrize("model", ["sandbox/echo", "openai/echo", "gemini/echo"])
async def test_answers_are_parsed(client, model):
    response = await client.responses.parse(model=model, input="Plan", text_format=Plan)
    assert response.output_parsed == Plan(city="Plan", days=0)


@pytest.mark.parametrize("model", ["sandbox/vision", "see-openai", "see-anthropic"])
async def test_images_by_value_and_by_id(client, model):
    kept = await client.files.create(file=("cat.png", png(7, 5)), purpose="vision")
    for image in ({"image_url": f"data:image/png;base64,{PICTURE}"}, {"file_id": kept.id}):
        parts = [{"type": "input_text", "text": "See"}, {"type": "input_image", **image}]
        response = await ask(client, False, model=model, input=[{"role": "user", "content": parts}])
        assert "PNG of 7x5 pixels" in response.output_text


async def test_files_by_value_and_by_id(client):
    kept = await client.files.create(file=("a.txt", b"the text"), purpose="user_data")
    for file in (
        {"file_id": kept.id},
        {"file_data": "data:text/plain;base64,dGhlIHRleHQ=", "filename": "a.txt"},
    ):
        content = [{"type": "input_file", **file}]
        response = await ask(
            client, False, model="openai/echo", input=[{"role": "user", "content": content}]
        )
        assert "the text" in response.output_text


@STREAMED
async def test_a_cut_answer_is_incomplete(client, model, stream):
    fields = {"model": model, "input": "one two three", "max_output_tokens": 3, "store": False}
    if stream:
        events = [event async for event in await client.responses.create(**fields, stream=True)]
        assert events[-1].type == "response.incomplete"
        response = events[-1].response
    else:
        response = await client.responses.create(**fields)
    assert response.incomplete_details.reason == "max_output_tokens"
    assert response.output[-1].status == "incomplete"


@STREAMED
async def test_a_search_in_a_namespace_is_the_callers(client, web, model, stream):
    web.__init__()
    own = {"type": "function", "name": "web_search", "parameters": WEATHER, "strict": False}
    tools = [{"type": "web_search"}, {"type": "namespace", "name": "mcp__x", "tools": [own]}]
    choice = {"type": "function", "name": "web_search"}
    response = await ask(client, stream, model=model, input="Go", tools=tools, tool_choice=choice)
    (call,) = (item for item in response.output if item.type == "function_call")
    assert (call.namespace, call.name, web.queries) == ("mcp__x", "web_search", [])


@STREAMED
async def test_a_search_is_an_item_and_its_pages_are_cited(client, web, model, stream):
    web.__init__()
    response = await ask(
        client,
        stream,
        model=model,
        input="Please call web_search about Typst.",
        tools=[{"type": "web_search", "search_context_size": "high"}],
        include=["web_search_call.action.sources"],
    )
    (search,) = (item for item in response.output if item.type == "web_search_call")
    assert search.status == "completed"
    assert TYPST.url in [source.url for source in search.action.sources]
    assert web.queries[0][1] == 10
    text = response.output[-1].content[0]
    cited = [one for one in text.annotations if one.type == "url_citation"]
    assert [one.url for one in cited] == [TYPST.url, "https://evil.example"]
    for one in cited:
        assert text.text[one.start_index : one.end_index].rstrip("/") == one.url


async def test_a_conversation_is_remembered(client):
    fields = {"model": "openai/echo", "conversation": "talk", "store": False}
    await client.responses.create(**fields, input="My name is Ada")
    response = await client.responses.create(**fields, input="sandbox: history")
    assert response.conversation.id == "talk"
    raw = await client.get("/memories/talk/turns", cast_to=object)
    assert "My name is Ada" in str(raw)


async def test_fields_of_other_dialects_are_named(client):
    raw = await client.responses.with_raw_response.create(
        model="openai/echo",
        input="x",
        store=False,
        metadata={"a": "b"},
        text={"verbosity": "low"},
        reasoning={"summary": "auto"},
        prompt_cache_key="k",
        truncation="auto",
    )
    assert raw.headers["x-gateway-dropped"].split(", ") == [
        *("prompt_cache_key", "truncation", "text.verbosity")
    ]
    assert raw.parse().metadata == {"a": "b"}


SCREENSHOT = {
    "type": "computer_call_output",
    "call_id": "c",
    "output": {"type": "computer_screenshot", "image_url": "data:image/png;base64,AA=="},
}


@pytest.mark.parametrize(
    ("given", "param"),
    [
        ({"tools": [{"type": "file_search", "vector_store_ids": ["v"]}]}, "tools[0]"),
        ({"input": [SCREENSHOT]}, "input[0]"),
        ({"prompt": {"id": "p"}}, "prompt"),
        ({"text": {"format": {"type": "grammar"}}}, "text"),
        ({"previous_response_id": "resp_1"}, "previous_response_id"),
        ({"background": True}, "background"),
        ({"input": [{"id": "msg_1", "type": "item_reference"}]}, "input[0]"),
        ({"temperature": 7}, "temperature"),
        ({"model": "nobody"}, "model"),
    ],
)
async def test_what_cannot_be_carried_is_refused_by_its_path(client, given, param):
    body = {"model": "openai/echo", "input": "x", "store": False, **given}
    with pytest.raises(openai.APIStatusError) as refused:
        await client.responses.create(**body)
    assert refused.value.param == param


@STREAMED
async def test_a_field_of_a_providers_other_endpoint_is_not_named(client, stream):
    """The provider of chats refuses `messages[0].tool_call_id`, which no response has."""
    output = {"type": "function_call_output", "call_id": "call_1", "output": "sunny"}
    with pytest.raises(openai.BadRequestError, match="must answer a preceding message") as refused:
        await client.responses.create(
            model="openai/echo", input=[output], store=False, stream=stream
        )
    assert refused.value.param is None


async def test_a_stream_that_breaks_off_tells_why(client):
    events = await client.responses.create(
        model="openai/fail-late", input="Hi", store=False, stream=True
    )
    *_, error, last = [event async for event in events]
    assert (error.type, last.type) == ("error", "response.failed")
    assert last.response.error.code == "server_error"


async def test_a_large_body_is_parsed_in_another_process(client):
    items = [{"role": "user", "content": f"number {n}"} for n in range(12_000)]
    response = await ask(client, False, model="openai/echo", input=items, metadata={"k": "v"})
    assert response.usage.input_tokens > 12_000
    assert response.metadata == {"k": "v"}
