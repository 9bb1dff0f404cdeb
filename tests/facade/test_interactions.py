"""Google's interactions with its own client, over every provider."""

import base64
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from services.accounts.repository import AccountRepository
from services.common.settings import Storage
from services.common.storage.database import open_engine
from tests.facade.conversations import png
from tests.facade.google_callers import sent_to
from tests.gateway_in_process import Gateway, running_gateway
from tests.grid import each_row

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    # Of google-genai's import.
    pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession"),
]

Json = dict[str, Any]

MODELS = ("openai/echo", "anthropic/echo", "gemini/echo", "sandbox/echo")
FUNCTION: Json = {
    "type": "function",
    "name": "look_up",
    "description": "Looks it up",
    "parameters": {"type": "object", "properties": {"place": {"type": "string"}}},
}
SCHEMA: Json = {
    "type": "object",
    "properties": {"name": {"type": "string"}},
    "required": ["name"],
    "additionalProperties": False,
}


class Clients:
    """Google's client of two users of one gateway, and the errors that it raises.

    Its import takes more than a second, which those save that only collect tests.
    """

    def __init__(self, gateway: Gateway, other_key: str) -> None:
        from google import genai
        from google.genai import _interactions, types

        self.errors = _interactions
        self.gateway = gateway
        self._clients = [
            genai.Client(api_key=key, http_options=types.HttpOptions(base_url=gateway.url))
            for key in (gateway.key, other_key)
        ]
        self.ada, self.bob = (one.aio.interactions for one in self._clients)

    async def close(self) -> None:
        for one in self._clients:
            await one.aio.aclose()
            one.close()

    async def post(self, **body: Any) -> tuple[int, Any, Json]:
        """Return the status, the headers and the answer of a request without a client."""
        url = f"{self.gateway.url}/v1beta/interactions"
        headers = {"x-goog-api-key": self.gateway.key}
        async with self.gateway.http.post(url, json=body, headers=headers) as answer:
            return answer.status, answer.headers, await answer.json()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def at(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Clients]:
    folder = tmp_path_factory.mktemp("gateway")
    async with running_gateway(folder) as gateway:
        database = open_engine(Storage(data_dir=folder))
        other = await AccountRepository(database).create_key("bob")
        await database.dispose()
        clients = Clients(gateway, other)
        yield clients
        await clients.close()


@each_row("model", MODELS)
async def test_answers_of_every_provider(at: Clients, model: str) -> None:
    whole = await at.ada.create(
        model=model, input="hello there", system_instruction="be brief", store=False
    )
    assert whole.status == "completed" and "hello there" in whole.output_text, whole
    assert whole.usage.total_tokens > whole.usage.total_input_tokens > 0, whole.usage
    kinds, text, numbers = [], "", []
    async for event in await at.ada.create(model=model, input="hello there", stream=True):
        kinds.append(event.event_type)
        numbers.append(int(event.event_id))
        if event.event_type == "step.delta" and event.delta.type == "text":
            text += event.delta.text
    assert kinds[0] == "interaction.created" and kinds[-1] == "interaction.completed", kinds
    assert kinds.count("step.start") == kinds.count("step.stop") >= 1, kinds
    assert "hello there" in text and numbers == list(range(len(numbers))), text
    formatted = await at.ada.create(
        model=model,
        input="a place",
        response_format={"type": "text", "mime_type": "application/json", "schema": SCHEMA},
    )
    assert '"name"' in formatted.output_text, formatted


@each_row("model, is_stored", zip(MODELS, (True, False, False, True), strict=True))
async def test_functions_with_thoughts(at: Clients, model: str, is_stored: bool) -> None:
    asked: Json = {
        "model": model,
        "tools": [FUNCTION],
        "generation_config": {"thinking_level": "low", "thinking_summaries": "auto"},
        "store": is_stored,
    }
    start: Json = {"type": "user_input", "content": [{"type": "text", "text": "use look_up"}]}
    first = await at.ada.create(**asked, input=[start])
    call = next(step for step in first.steps if step.type == "function_call")
    assert (first.status, call.name) == ("requires_action", "look_up"), first
    result = {"type": "function_result", "call_id": call.id, "name": "look_up", "result": "sunny"}
    if is_stored:
        second = await at.ada.create(**asked, input=[result], previous_interaction_id=first.id)
        assert second.previous_interaction_id == first.id
    else:
        steps = [step.model_dump(mode="json", exclude_none=True) for step in first.steps]
        second = await at.ada.create(**asked, input=[start, *steps, result])
    assert "sunny" in second.output_text, second
    streamed = [event async for event in await at.ada.create(**asked, input=[start], stream=True)]
    deltas = [one.delta for one in streamed if one.event_type == "step.delta"]
    written = "".join(one.arguments for one in deltas if one.type == "arguments_delta")
    assert written.startswith("{"), deltas
    assert streamed[-1].interaction.status == "requires_action"


async def test_contents_reach_a_provider(at: Clients) -> None:
    picture = base64.b64encode(png(7, 5)).decode()
    contents = [
        {"type": "text", "text": "look"},
        {"type": "image", "data": picture, "mime_type": "image/png", "resolution": "low"},
        {
            "type": "document",
            "data": base64.b64encode(b"notes").decode(),
            "mime_type": "text/plain",
        },
    ]
    answer = await at.ada.create(
        model="gemini/echo",
        input=contents,
        store=False,
        generation_config={"seed": 7, "temperature": 0.5},
        safety_settings=[{"type": "hate_speech", "threshold": "block_none"}],
        tools=[{"type": "google_search"}, {"type": "url_context"}],
    )
    assert answer.status == "completed"
    sent = await sent_to(at.gateway, "gemini")
    parts = [part for content in sent["contents"] for part in content["parts"]]
    assert parts[0] == {"text": "look"} and parts[1]["inlineData"]["data"] == picture
    assert "notes" in parts[2]["text"]
    config = sent["generationConfig"]
    assert (config["seed"], config["temperature"]) == (7, 0.5)
    category = {"category": "HARM_CATEGORY_HATE_SPEECH", "threshold": "BLOCK_NONE"}
    assert sent["safetySettings"] == [category]
    assert sent["tools"] == [{"googleSearch": {}}, {"urlContext": {}}]
    stopped = await at.ada.create(
        model="openai/echo", input="one END two", generation_config={"stop_sequences": ["END"]}
    )
    assert "one" in stopped.output_text and "two" not in stopped.output_text, stopped


async def test_a_stored_interaction(at: Clients) -> None:
    first = await at.ada.create(model="sandbox/echo", input="I am Ada.", labels={"team": "a"})
    again = await at.ada.get(id=first.id, include_input=True)
    assert (again.output_text, again.labels) == (first.output_text, {"team": "a"}), again
    assert [step.content[0].text for step in again.input] == ["I am Ada."], again.input
    recited = await at.ada.create(
        model="sandbox/echo", input="sandbox: recite", previous_interaction_id=first.id
    )
    assert "I am Ada." in recited.output_text
    # It is a response too, and a response is an interaction.
    url = f"{at.gateway.url}/v1/responses/{first.id}"
    async with at.gateway.http.get(url, headers=at.gateway.bearer()) as answer:
        assert (await answer.json())["output"][0]["content"][0]["text"] == first.output_text
    with pytest.raises(at.errors.NotFoundError, match="Interaction"):
        await at.bob.get(id=first.id)
    with pytest.raises(at.errors.BadRequestError, match="Previous interaction"):
        await at.bob.create(model="sandbox/echo", input="x", previous_interaction_id=first.id)
    replayed = [event async for event in await at.ada.get(id=first.id, stream=True)]
    last = replayed[1].event_id
    rest = [one async for one in await at.ada.get(id=first.id, stream=True, last_event_id=last)]
    assert [one.event_id for one in rest] == [one.event_id for one in replayed[2:]]
    await at.ada.delete(id=first.id)
    with pytest.raises(at.errors.NotFoundError):
        await at.ada.get(id=first.id)
    unstored = await at.ada.create(model="sandbox/echo", input="x", store=False)
    with pytest.raises(at.errors.NotFoundError):
        await at.ada.get(id=unstored.id)


async def test_an_interaction_in_the_background(at: Clients) -> None:
    queued = await at.ada.create(model="sandbox/echo", input="hello there", background=True)
    assert queued.status in ("queued", "in_progress"), queued
    events = [one async for one in await at.ada.get(id=queued.id, stream=True)]
    assert events[-1].interaction.status == "completed"
    assert "hello there" in (await at.ada.get(id=queued.id)).output_text
    streamed = await at.ada.create(
        model="sandbox/echo", input="hello there", background=True, stream=True
    )
    kinds = [one.event_type async for one in streamed]
    assert (kinds[0], kinds[-1]) == ("interaction.created", "interaction.completed"), kinds
    with pytest.raises(at.errors.BadRequestError):
        await at.ada.cancel(id=(await at.ada.create(model="sandbox/echo", input="x")).id)


REFUSED: list[tuple[Json, str]] = [
    ({"agent": "deep-research"}, "agent"),
    ({"model": None}, "model"),
    ({"environment": "e"}, "environment"),
    ({"response_modalities": ["image"]}, "response_modalities"),
    ({"tools": [{"type": "file_search"}]}, "tools[0].type"),
    ({"input": [{"type": "nothing"}, {"content": []}]}, "input[1].type"),
    ({"input": [{"type": "function_call", "name": "f"}]}, "input[0].id"),
    ({"input": [{"type": "user_input", "content": [{"type": "image"}]}]}, "input[0].content[0]"),
    ({"input": [{"type": "model_output", "content": "text"}]}, "input[0]"),
    ({"tools": [{"google_search": 5}]}, "tools[0]"),
    ({"generation_config": {"tool_choice": "some"}}, "generation_config.tool_choice"),
    ({"generation_config": {"max_output_tokens": 0}}, "generation_config.max_output_tokens"),
    ({"previous_interaction_id": "resp_none"}, "previous_interaction_id"),
    ({"background": True, "store": False}, "background"),
]


@each_row("fields, path", REFUSED)
async def test_invalid_bodies_name_the_field(at: Clients, fields: Json, path: str) -> None:
    status, _, answer = await at.post(**{"model": "sandbox/echo", "input": "x", **fields})
    violations = [
        one["fieldViolations"][0]["field"]
        for one in answer["error"]["details"]
        if "fieldViolations" in one
    ]
    assert (status, violations) == (400, [path]), answer


async def test_what_has_no_counterpart_is_named(at: Clients) -> None:
    config = {"image_config": {"aspect_ratio": "1:1"}, "temperature": 1}
    body: Json = {"model": "sandbox/echo", "input": "x", "novel": 1, "generation_config": config}
    status, headers, _ = await at.post(**body)
    dropped = headers["x-gateway-dropped"].split(", ")
    assert status == 200 and {"novel", "generation_config.image_config"} <= {*dropped}, dropped
