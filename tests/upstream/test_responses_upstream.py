"""The upstream's `/responses`, called with the official SDK."""

import json

import aiohttp
import openai
import pytest
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import BaseModel, TypeAdapter

from services.sandbox.model.signatures import encrypt

WEATHER = {
    "type": "function",
    "name": "get_weather",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
        "additionalProperties": False,
    },
    "strict": True,
}
ENCRYPTED = "reasoning.encrypted_content"
EVENT: TypeAdapter[ResponseStreamEvent] = TypeAdapter(ResponseStreamEvent)


class Trip(BaseModel):
    city: str
    days: int
    stops: list[str]


@pytest.fixture
async def client(upstream):
    async with openai.AsyncOpenAI(
        base_url=f"{upstream.url}/v1", api_key="sk-1", max_retries=0
    ) as made:
        yield made


async def sent_events(upstream, path="/v1/responses", **body):
    """Return the events of a stream as they came, each checked against the SDK's strict types."""
    async with (
        aiohttp.ClientSession() as session,
        session.post(
            upstream.url + path,
            json={"model": "echo", "stream": True, **body},
            headers={"Authorization": "Bearer k"},
        ) as response,
    ):
        assert response.headers["content-type"].startswith("text/event-stream")
        *sent, last = (await response.text()).split("\n\n")
    assert last == ""
    events = []
    for text in sent:
        name, data = text.split("\n")
        event = json.loads(data.removeprefix("data: "))
        assert name == f"event: {event['type']}"
        EVENT.validate_python(event)
        events.append(event)
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    return events


async def test_a_whole_answer(client):
    answer = await client.responses.create(model="sandbox/echo", input="hi", store=False)
    assert answer.output_text == 'Sandbox echo: you said "hi".'
    assert (answer.status, answer.model, answer.store) == ("completed", "echo", False)
    assert answer.usage.total_tokens == answer.usage.input_tokens + answer.usage.output_tokens
    assert answer._request_id.startswith("req_")
    Response.model_validate(answer.model_dump(), strict=True)


async def test_events_come_in_the_documented_order(upstream):
    events = await sent_events(upstream, input="hi", stream_options={"include_obfuscation": False})
    kinds = [event["type"].removeprefix("response.") for event in events]
    assert list(dict.fromkeys(kinds)) == [
        *("created", "in_progress", "output_item.added", "content_part.added"),
        *("output_text.delta", "output_text.done", "content_part.done", "output_item.done"),
        "completed",
    ]
    text = "".join(event["delta"] for event in events if "delta" in event)
    assert text == 'Sandbox echo: you said "hi".'
    assert "obfuscation" not in events[4]
    final = events[-1]["response"]
    assert final["output"] == [events[-2]["item"]]
    assert events[0]["response"]["usage"] is None and final["usage"]["output_tokens"] == 5


async def test_a_stream_adds_up_to_the_whole_answer(client):
    body = {
        "model": "echo",
        "input": "get weather, parallel",
        "tools": [WEATHER],
        "reasoning": {"effort": "low", "summary": "auto"},
        "include": [ENCRYPTED],
    }
    whole = await client.responses.create(**body)
    async with client.responses.stream(**body) as stream:
        streamed = await stream.get_final_response()
    ids = {"id", "parsed", "parsed_arguments"}

    def items_of(response):
        return [item.model_dump(exclude=ids) for item in response.output]

    assert [item["type"] for item in items_of(whole)] == [
        *("reasoning", "message", "function_call", "function_call")
    ]
    assert json.dumps(items_of(streamed)).replace(', "parsed": null', "") == json.dumps(
        items_of(whole)
    )
    assert streamed.usage == whole.usage


async def test_a_tool_loop_with_its_reasoning(client):
    items = [{"role": "user", "content": "get weather"}]
    options = {"tools": [WEATHER], "reasoning": {"effort": "low"}, "include": [ENCRYPTED]}
    first_answer = await client.responses.create(model="echo", input=items, **options)
    items += [item.model_dump(exclude_none=True) for item in first_answer.output]
    assert first_answer.output[0].summary == []
    (call,) = [item for item in first_answer.output if item.type == "function_call"]
    items.append({"type": "function_call_output", "call_id": call.call_id, "output": "sunny"})
    answer = await client.responses.create(model="echo", input=items, **options)
    assert answer.output_text == 'Sandbox echo: The tool answered "sunny".'


async def test_a_custom_tool_is_given_text(client, upstream):
    tools = [{"type": "custom", "name": "run"}]
    answer = await client.responses.create(model="echo", input="run 1+1", tools=tools)
    call = answer.output[-1]
    assert (call.type, call.name, call.input) == ("custom_tool_call", "run", "run 1+1")
    events = await sent_events(upstream, input="run 1+1", tools=tools)
    pieces = [e["delta"] for e in events if e["type"] == "response.custom_tool_call_input.delta"]
    assert "".join(pieces) == "run 1+1"


async def test_the_web_is_searched_and_cited(client, upstream):
    tools = [{"type": "web_search"}]
    answer = await client.responses.create(
        model="echo",
        input="web search: cats",
        tools=tools,
        include=["web_search_call.action.sources"],
    )
    search, message = answer.output
    assert search.action.sources[0].url == message.content[0].annotations[0].url
    assert (search.type, search.status, search.action.query) == (
        *("web_search_call", "completed"),
        "web search: cats",
    )
    assert message.content[0].annotations[0].type == "url_citation"
    kinds = [
        event["type"] for event in await sent_events(upstream, input="web search", tools=tools)
    ]
    states = [kind for kind in kinds if "web_search_call" in kind]
    assert [state.rpartition(".")[2] for state in states] == [
        *("in_progress", "searching", "completed")
    ]
    assert "response.output_text.annotation.added" in kinds


async def test_a_forced_tool_and_allowed_tools(client):
    other = {"type": "function", "name": "other"}
    named = {"type": "function", "name": "get_weather"}
    for choice in (named, {"type": "allowed_tools", "mode": "required", "tools": [named]}):
        answer = await client.responses.create(
            model="echo", input="hi", tools=[other, WEATHER], tool_choice=choice
        )
        assert [item.name for item in answer.output] == ["get_weather"]


async def test_parse_gives_an_object(client):
    answer = await client.responses.parse(model="echo", input="hi", text_format=Trip)
    assert answer.output_parsed == Trip(city="hi", days=0, stops=[])


async def test_a_refusal(client, upstream):
    answer = await client.responses.create(model="echo", input="sandbox: refuse")
    assert answer.output[0].content[0].refusal == "Sandbox echo: I refuse, as I was asked to."
    events = await sent_events(upstream, input="sandbox: refuse")
    refusal = "".join(e["delta"] for e in events if e["type"] == "response.refusal.delta")
    assert refusal == answer.output[0].content[0].refusal


async def test_log_probabilities(client):
    answer = await client.responses.create(
        model="echo", input="hi", top_logprobs=1, include=["message.output_text.logprobs"]
    )
    tokens = answer.output[0].content[0].logprobs
    assert "".join(token.token for token in tokens) == answer.output_text


async def test_a_cut_answer_is_incomplete(client, upstream):
    limit = {"input": "x" * 300, "max_output_tokens": 16}
    answer = await client.responses.create(model="echo", **limit)
    assert (answer.status, answer.incomplete_details.reason) == (
        *("incomplete", "max_output_tokens"),
    )
    assert answer.output[-1].status == "incomplete"
    assert (await sent_events(upstream, **limit))[-1]["type"] == "response.incomplete"


async def test_cached_tokens_are_reported(client):
    answer = await client.responses.create(model="echo", input="sandbox: cached" + "x" * 385)
    assert answer.usage.input_tokens_details.cached_tokens == 50


async def test_a_failure_in_a_stream_is_its_last_event(upstream):
    events = await sent_events(upstream, input="hi", model="fail-late")
    assert events[-1]["type"] == "response.failed"
    assert events[-1]["response"]["status"] == "failed"
    assert events[-1]["response"]["error"]["code"] == "server_error"


@pytest.mark.parametrize(
    ("model", "error", "code"),
    [
        ("fail-429", openai.RateLimitError, "rate_limit_exceeded"),
        ("fail-context", openai.BadRequestError, "context_length_exceeded"),
        ("gpt-4o", openai.NotFoundError, "model_not_found"),
    ],
)
async def test_failures_by_class(client, model, error, code):
    with pytest.raises(error) as raised:
        await client.responses.create(model=model, input="hi", stream=True)
    assert raised.value.code == code


ASKED = {"role": "user", "content": "hi"}
THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": []}
CALL = {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"}


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"input": []}, "input"),
        ({"input": [{"role": "user", "content": [{"type": "input_text"}]}]}, "input[0].content[0]"),
        ({"input": [{"role": "user", "content": [{"type": "output_text", "text": "a",
                                                   "annotations": []}]}]}, "input[0].content[0]"),
        ({"input": "hi", "max_output_tokens": 15}, "max_output_tokens"),
        ({"input": "hi", "temperature": 3}, "temperature"),
        ({"input": "hi", "messages": []}, "messages"),
        ({"input": "hi", "previous_response_id": "resp_1"}, "previous_response_id"),
        ({"input": "hi", "tool_choice": "required"}, "tool_choice"),
        ({"input": "hi", "top_logprobs": 2}, "top_logprobs"),
        ({"input": [ASKED, {"type": "item_reference", "id": "msg_1"}]}, "input[1]"),
        ({"input": [ASKED, THOUGHT, CALL]}, "input[1]"),
        ({"input": [ASKED, THOUGHT | {"encrypted_content": "AAAA"}, CALL]},
         "input[1].encrypted_content"),
        ({"input": [ASKED, THOUGHT | {"encrypted_content": encrypt("so")}]}, "input[1]"),
        ({"input": [ASKED, CALL]}, "input"),
        ({"input": [ASKED, {"type": "function_call_output", "call_id": "c1", "output": ""}]},
         "input[1].call_id"),
        ({"input": "hi", "text": {"format": {"type": "json_object"}}}, "input"),
    ],
)  # fmt: skip
async def test_a_wrong_field_is_named(client, body, param):
    with pytest.raises(openai.BadRequestError) as raised:
        await client.responses.create(model="echo", input="hi", extra_body=body)
    assert raised.value.param.startswith(param)


async def test_what_the_server_does_not_need_may_be_left_out(client):
    image = {"type": "input_image", "image_url": "https://example.com/a.png"}
    items = [
        {"role": "user", "content": [{"type": "input_text", "text": "see"}, image]},
        {"role": "assistant", "content": [{"type": "output_text", "text": "a", "annotations": []}]},
        ASKED,
    ]
    answer = await client.responses.create(
        model="echo", input=items, tools=[{"type": "function", "name": "f"}]
    )
    assert "an image" in answer.output_text


async def test_personalities_without_the_endpoint_answer_404(upstream):
    for name, status in (("deepseek", 404), ("mistral", 404), ("azure", 200), ("openai-o", 200)):
        async with (
            aiohttp.ClientSession() as session,
            session.post(
                f"{upstream.url}/{name}/v1/responses",
                json={"model": "echo", "input": "hi"},
                headers={"Authorization": "Bearer k"},
            ) as response,
        ):
            assert response.status == status
            answer = await response.json()
        if status == 404:
            assert answer["error"]["code"] == "unknown_url"
        elif name == "azure":
            assert answer["content_filters"]


async def test_models_that_reason_take_no_temperature(upstream):
    async with openai.AsyncOpenAI(
        base_url=f"{upstream.url}/openai-o/v1", api_key="k", max_retries=0
    ) as reasoning:
        answer = await reasoning.responses.create(model="gpt-5", input="hi")
        assert answer.output[0].type == "reasoning"
        with pytest.raises(openai.BadRequestError) as raised:
            await reasoning.responses.create(model="gpt-5", input="hi", temperature=0.5)
        assert raised.value.param == "temperature"
