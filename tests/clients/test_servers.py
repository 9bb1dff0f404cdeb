"""A server that plays providers, which nobody here wrote: the official SDKs ask it by a gateway."""

import asyncio
import base64
import io
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import anthropic
import openai
import pytest

from tests.clients.test_programs import NODE, PROGRAMS
from tests.e2e.gateway import Gateway, gateway
from tests.e2e.processes import Running
from tests.upstream.vertex.tokens import ServiceAccount
from tests.waiting import until

pytestmark = pytest.mark.clients

_AIMOCK = PROGRAMS / "aimock"
_SERVER = _AIMOCK / "node_modules" / "@copilotkit" / "aimock" / "dist" / "cli.js"
_SETTINGS = """
[providers.chats]
kind = "openai"
base_url = "http://127.0.0.1:{port}/v1"
api_key = "upstream-key"
responses = false

[providers.openrouter]
kind = "openai"
base_url = "http://127.0.0.1:{port}/api/v1"
api_key = "upstream-key"

[providers.bedrock]
base_url = "http://127.0.0.1:{port}"
api_key = "upstream-key"

[providers.azure]
kind = "openai"
base_url = "http://127.0.0.1:{port}"
api_version = "2024-10-21"
api_key = "upstream-key"

[providers.vertex]
base_url = "http://127.0.0.1:{port}"
project = "my-project"
region = "europe-west1"
credentials_file = "{account}"
"""
MODELS = (
    *("openai/gpt-4o", "chats/gpt-4o", "openrouter/openai/gpt-4o"),
    *("anthropic/claude-sonnet-4-5", "gemini/gemini-2.5-pro", "azure/gpt-4o"),
    *("bedrock/amazon.nova-pro-v1:0", "vertex/gemini-2.5-pro"),
)
# Asked by Converse for chats and responses. For messages it is asked by InvokeModel, whose streams
# the server writes without the field `bytes` of Bedrock's events.
_CLAUDE_AT_BEDROCK = "bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0"
HELLO = 'Hi! Grüße, 世界 🌍 "quoted" \\ back'
CITIES = [{"city": "Paris"}, {"city": "Rome"}]
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


@pytest.fixture(scope="module")
def front(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    if not _SERVER.exists():
        pytest.fail("aimock is not installed; run: make clients")
    arguments = [str(NODE), str(_SERVER), "--port", "0", "--strict"]
    arguments += ["--fixtures", str(_AIMOCK / "answers.json")]
    with Running(arguments) as server:
        port = int(server.wait_for(r"http://127\.0\.0\.1:(\d+)\s")[1])
        folder = tmp_path_factory.mktemp("gateway")
        account = folder / "account.json"
        with _token_server() as token_uri:
            account.write_text(ServiceAccount().file(token_uri))
            settings = _SETTINGS.format(port=port, account=account)
            with gateway(folder, port, settings=settings) as started:
                yield started


@contextmanager
def _token_server() -> Iterator[str]:
    """Run Google's token endpoint, which the server does not play; yield its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(b'{"access_token": "ya29", "expires_in": 3600}')

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/token"
        server.shutdown()


@pytest.fixture(scope="module")
def chats(front: Gateway) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{front.address}/beta/v1", api_key=front.key, max_retries=0)


@pytest.fixture(scope="module")
def messages(front: Gateway) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=f"{front.address}/beta", api_key=front.key, max_retries=0)


@pytest.fixture(params=MODELS)
def model(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture(params=[False, True], ids=["whole", "streamed"])
def streamed(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


def _chat(client: openai.OpenAI, model: str, streamed: bool, conversation: list[Any]) -> Any:
    """Return the choice of a chat with a tool."""
    function = {"name": "weather", "parameters": SCHEMA}
    body: dict[str, Any] = {
        "model": model,
        "messages": conversation,
        "tools": [{"type": "function", "function": function}],
    }
    if not streamed:
        return client.chat.completions.create(**body).choices[0]
    with client.chat.completions.stream(**body) as stream:
        for _ in stream:
            pass
        return stream.current_completion_snapshot.choices[0]


def _message(
    client: anthropic.Anthropic, model: str, streamed: bool, conversation: list[Any]
) -> Any:
    """Return an answer to messages with a tool."""
    body: dict[str, Any] = {
        "model": model,
        "max_tokens": 2_000,
        "messages": conversation,
        "tools": [{"name": "weather", "input_schema": SCHEMA}],
    }
    if not streamed:
        return client.messages.create(**body)
    with client.messages.stream(**body) as stream:
        return stream.get_final_message()


def _response(client: openai.OpenAI, model: str, streamed: bool, **body: Any) -> Any:
    """Return a response to a request with a tool."""
    tools: Any = [{"type": "function", "name": "weather", "parameters": SCHEMA, "strict": False}]
    if not streamed:
        return client.responses.create(model=model, tools=tools, **body)
    end = None
    for event in client.responses.create(model=model, tools=tools, stream=True, **body):
        end = event
    assert end is not None
    return end.response


def _says(text: str) -> list[Any]:
    return [{"role": "user", "content": text}]


def test_texts_stay_as_they_are(
    chats: openai.OpenAI, messages: anthropic.Anthropic, model: str, streamed: bool
) -> None:
    choice = _chat(chats, model, streamed, _says("Hello"))
    assert (choice.finish_reason, choice.message.content) == ("stop", HELLO)
    message = _message(messages, model, streamed, _says("Hello"))
    assert (message.stop_reason, message.content[0].text) == ("end_turn", HELLO)
    response = _response(chats, model, streamed, input="Hello")
    assert (response.status, response.output_text) == ("completed", HELLO)


@pytest.mark.parametrize("model", [*MODELS, _CLAUDE_AT_BEDROCK])
def test_tools_of_chats(chats: openai.OpenAI, model: str, streamed: bool) -> None:
    choice = _chat(chats, model, streamed, _says("Call"))
    assert (choice.finish_reason, choice.message.content) == ("tool_calls", "I ask.")
    calls = choice.message.tool_calls
    assert [json.loads(call.function.arguments) for call in calls] == CITIES
    conversation = [*_says("Call"), choice.message.model_dump(exclude_none=True)]
    conversation += [
        {"role": "tool", "tool_call_id": call.id, "content": "sunny"} for call in calls
    ]
    choice = _chat(chats, model, streamed, conversation)
    assert (choice.finish_reason, choice.message.content) == ("stop", "Sunny, says the tool.")


def test_tools_of_messages(messages: anthropic.Anthropic, model: str, streamed: bool) -> None:
    message = _message(messages, model, streamed, _says("Call"))
    assert message.stop_reason == "tool_use"
    calls = [block for block in message.content if block.type == "tool_use"]
    assert [call.input for call in calls] == CITIES
    answers = [{"type": "tool_result", "tool_use_id": call.id, "content": "sun"} for call in calls]
    own = [block.model_dump(exclude_none=True) for block in message.content]
    conversation = [{"role": "assistant", "content": own}, {"role": "user", "content": answers}]
    message = _message(messages, model, streamed, _says("Call") + conversation)
    assert message.stop_reason == "end_turn"
    assert message.content[0].text == "Sunny, says the tool."


@pytest.mark.parametrize("model", [*MODELS, _CLAUDE_AT_BEDROCK])
def test_tools_of_responses(chats: openai.OpenAI, model: str, streamed: bool) -> None:
    response = _response(chats, model, streamed, input="Call")
    calls = [item for item in response.output if item.type == "function_call"]
    assert [json.loads(call.arguments) for call in calls] == CITIES
    answers = [
        {"type": "function_call_output", "call_id": call.call_id, "output": "sun"} for call in calls
    ]
    response = _response(chats, model, streamed, input=answers, previous_response_id=response.id)
    assert response.output_text == "Sunny, says the tool."


def test_answers_that_are_cut_off_say_so(
    chats: openai.OpenAI, messages: anthropic.Anthropic, model: str, streamed: bool
) -> None:
    response = _response(chats, model, streamed, input="Cut")
    assert response.status == "incomplete"
    assert response.incomplete_details.reason == "max_output_tokens"
    assert _message(messages, model, streamed, _says("Cut")).stop_reason == "max_tokens"
    assert _chat(chats, model, False, _says("Cut")).finish_reason == "length"


@pytest.mark.parametrize("model", ["anthropic/claude-sonnet-4-5", "gemini/gemini-2.5-pro"])
def test_thoughts_are_shown_and_go_back(
    chats: openai.OpenAI, messages: anthropic.Anthropic, model: str, streamed: bool
) -> None:
    choice = _chat(chats, model, streamed, _says("Think"))
    assert choice.message.reasoning_content == "Six times seven."
    response = _response(chats, model, streamed, input="Think")
    assert response.output[0].summary[0].text == "Six times seven."
    message = _message(messages, model, streamed, _says("Think"))
    assert message.content[0].thinking == "Six times seven."
    own = [block.model_dump(exclude_none=True) for block in message.content]
    conversation = [*_says("Think"), {"role": "assistant", "content": own}, *_says("Hello")]
    assert _message(messages, model, streamed, conversation).content[0].text == HELLO


@pytest.mark.parametrize(
    ("prompt", "status", "code"),
    [("Refuse", 400, "upstream_rejected"), ("Limit", 429, "upstream_rate_limited")],
)
def test_refusals_name_every_attempt(
    chats: openai.OpenAI, model: str, streamed: bool, prompt: str, status: int, code: str
) -> None:
    with pytest.raises(openai.APIStatusError) as raised:
        _chat(chats, model, streamed, _says(prompt))
    assert raised.value.status_code == status
    body: Any = raised.value.body
    assert body["code"] in (code, status)  # OpenRouter's codes are numbers
    assert {attempt["status"] for attempt in body["attempts"]} == {status}


@pytest.mark.parametrize("model", ["openai/text-embedding-3-small", "chats/text-embedding-3-small"])
def test_vectors(chats: openai.OpenAI, model: str) -> None:
    made = chats.embeddings.create(model=model, input="vector")
    assert made.data[0].embedding == [0.5, 0.25, -0.125]


def test_media(chats: openai.OpenAI) -> None:
    image = chats.images.generate(model="openai/gpt-image-1", prompt="A lighthouse")
    assert image.data is not None and image.data[0].b64_json == base64.b64encode(b"image").decode()
    speech = chats.audio.speech.create(model="openai/tts-1", voice="alloy", input="Read it aloud")
    assert speech.read() == b"speech"
    sound = ("a.wav", io.BytesIO(b"RIFF"), "audio/wav")
    heard = chats.audio.transcriptions.create(model="openai/whisper-1", file=sound)
    assert heard.text == "Hello there."


def test_batches(chats: openai.OpenAI) -> None:
    lines = [
        {
            "custom_id": str(number),
            "method": "POST",
            "url": "/v1/chat/completions",
            "body": {"model": "openai/gpt-4o", "messages": _says("Hello")},
        }
        for number in range(3)
    ]
    content = "\n".join(json.dumps(line) for line in lines).encode()
    file = chats.files.create(file=("requests.jsonl", content), purpose="batch")
    batch = chats.batches.create(
        input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h"
    )

    def output_file() -> str | None:
        return chats.batches.retrieve(batch.id).output_file_id

    file_id = asyncio.run(until(output_file, every_s=0.2))
    assert file_id is not None
    results = [json.loads(line) for line in chats.files.content(file_id).iter_lines()]
    answers = {one["custom_id"]: one["response"]["body"]["choices"][0] for one in results}
    assert {key: one["message"]["content"] for key, one in answers.items()} == {
        str(number): HELLO for number in range(3)
    }
