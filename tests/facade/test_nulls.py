"""Bodies of clients that write every field they know, null in those that do not apply."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from tests.gateway_in_process import Gateway, running_gateway, serving
from tests.upstream.app import create_app

pytestmark = pytest.mark.asyncio(loop_scope="module")

Json = dict[str, Any]

MODELS = ("openai/echo", "native/echo", "anthropic/echo", "gemini/echo", "sandbox/echo")
CALL = {
    "id": "call_1",
    "type": "function",
    "function": {"name": "f", "arguments": "{}"},
    "custom": None,
}
# As the Agents SDK for Node sends back what a message said.
SAID = {"type": "text", "text": "Hi", "refusal": None, "annotations": [], "role": "assistant"}
BEGUN = [{"role": "user", "content": "a"}]
RESULT = {"role": "tool", "tool_call_id": "call_1", "content": "b", "tool_calls": None}
PIXEL = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGA"
    "WjR9awAAAABJRU5ErkJggg=="
)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Gateway]:
    async with serving(create_app()) as url:
        native = {"kind": "openai", "base_url": f"{url}/v1", "responses": True}
        providers = {
            "openai": {**native, "responses": False},
            "native": native,
            "anthropic": {"kind": "anthropic", "base_url": url},
            "gemini": {"kind": "gemini", "base_url": f"{url}/v1beta"},
        }
        keyed = {name: {**table, "api_key": "k"} for name, table in providers.items()}
        folder = tmp_path_factory.mktemp("gateway")
        async with running_gateway(folder, providers=keyed) as started:
            yield started


async def _post(gateway: Gateway, path: str, body: Json) -> tuple[int, Json]:
    url = f"{gateway.url}/beta/v1/{path}"
    async with gateway.http.post(url, json=body, headers=gateway.bearer()) as answer:
        return answer.status, await answer.json()


@pytest.fixture(params=MODELS)
def model(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def _user(**part: Any) -> list[Json]:
    return [{"role": "user", "content": [part]}]


@pytest.mark.parametrize(
    "messages",
    [
        _user(type="text", text="Hi", image_url=None, input_audio=None, file=None, refusal=None),
        _user(type="image_url", image_url={"url": PIXEL}, text=None),
        [*BEGUN, {"role": "assistant", "content": [SAID]}, *BEGUN],
        [*BEGUN, {"role": "assistant", "tool_calls": [CALL]}, RESULT],
    ],
    ids=["text", "image", "said", "call"],
)
async def test_chats_take_nulls(gateway: Gateway, model: str, messages: list[Json]) -> None:
    status, answer = await _post(
        gateway, "chat/completions", {"model": model, "messages": messages}
    )
    assert status == 200, answer


@pytest.mark.parametrize(
    "item",
    [
        {"type": "input_text", "text": "Hi", "image_url": None, "input_audio": None},
        {"type": "input_image", "image_url": PIXEL, "text": None, "refusal": None},
    ],
    ids=["text", "image"],
)
async def test_responses_take_nulls(gateway: Gateway, model: str, item: Json) -> None:
    said = {"type": "output_text", "text": "Hi", "refusal": None, "annotations": []}
    given = [*_user(**item), {"role": "assistant", "content": [said]}, *_user(**item)]
    status, answer = await _post(gateway, "responses", {"model": model, "input": given})
    assert status == 200, answer


@pytest.mark.parametrize("kind", ["text", "image_url"])
@pytest.mark.parametrize("beside", [{}, {"file": None}])
async def test_null_is_no_content_of_a_part(
    gateway: Gateway, model: str, kind: str, beside: Json
) -> None:
    for role in ("user", "system"):
        if role == "system" and kind != "text":
            continue
        part = {"type": kind, kind: None, **beside}
        messages = [{"role": role, "content": [part]}, {"role": "user", "content": "Hi"}]
        body = {"model": model, "messages": messages}
        status, answer = await _post(gateway, "chat/completions", body)
        assert (status, answer["error"]["param"]) == (400, f"messages[0].content[0].{kind}")
        assert "is required" in answer["error"]["message"]
    part = {"type": "input_text", "text": None, **beside}
    status, answer = await _post(gateway, "responses", {"model": model, "input": _user(**part)})
    assert (status, answer["error"]["param"]) == (400, "input[0].content[0].text")


async def test_null_is_no_call(gateway: Gateway, model: str) -> None:
    calls = [{"id": "call_1", "type": "function", "function": None}]
    messages = [*BEGUN, {"role": "assistant", "tool_calls": calls}, RESULT]
    status, answer = await _post(
        gateway, "chat/completions", {"model": model, "messages": messages}
    )
    assert (status, answer["error"]["param"]) == (400, "messages[1].tool_calls[0].function")
