"""Models of the sandbox, as callers see them while it is present and while it is absent."""

import pytest
import pytest_asyncio

from services.accounts.admin.admin_keys import hash_admin_key, make_admin_key
from tests.gateway_in_process import running_gateway

pytestmark = pytest.mark.asyncio(loop_scope="module")

HELLO = [{"role": "user", "content": "Hello"}]
CHAT = {"model": "sandbox/echo", "messages": HELLO}
IMAGE = {
    "type": "image_url",
    "image_url": {
        "url": "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"
        "YPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
    },
}
ADMIN_KEY = make_admin_key(bytes(32))
ADMIN = {"key_sha256": hash_admin_key(ADMIN_KEY).hex()}


def automatic(folder, **sections):
    """Return a gateway whose settings say nothing of the sandbox."""
    return running_gateway(folder, sandbox={}, admin=ADMIN, **sections)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def with_providers(tmp_path_factory):
    models = [
        {"name": "all/*", "provider": "openai", "upstream": "echo"},
        {"name": "*", "provider": "openai", "upstream": "echo"},
        {"name": "blind", "provider": "openai", "upstream": "echo", "inputs": ["text"]},
        {"name": "broken", "provider": "openai", "upstream": "fail-500"},
        {
            "name": "spared",
            "provider": "openai",
            "upstream": "fail-500",
            "fallbacks": ["sandbox/echo"],
        },
    ]
    roles = {"describe_image": "sandbox/vision"}
    async with automatic(tmp_path_factory.mktemp("real"), models=models, roles=roles) as gateway:
        yield gateway


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def alone(tmp_path_factory):
    async with automatic(tmp_path_factory.mktemp("alone"), providers={}) as gateway:
        yield gateway


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def disabled(tmp_path_factory):
    folder = tmp_path_factory.mktemp("disabled")
    async with running_gateway(folder, providers={}, sandbox={"enabled": False}) as gateway:
        yield gateway


@pytest.fixture(params=["with_providers", "disabled"])
def absent(request):
    """Return a gateway without the sandbox: beside providers, and by its settings."""
    return request.getfixturevalue(request.param)


async def answer(gateway, path, body=None, headers=None):
    method = "GET" if body is None else "POST"
    headers = headers or gateway.bearer()
    async with gateway.http.request(
        method, gateway.url + path, json=body, headers=headers
    ) as response:
        return response.status, await response.json()


async def names(gateway, headers=None):
    status, body = await answer(gateway, "/beta/v1/models?limit=1000", headers=headers)
    assert status == 200
    return {model["id"] for model in body["data"]}


async def test_without_a_provider_the_sandbox_answers(alone):
    for headers in (alone.bearer(), alone.api_key()):
        assert "sandbox/echo" in await names(alone, headers)
    assert (await answer(alone, "/beta/v1/models/sandbox/echo"))[0] == 200
    status, body = await answer(alone, "/beta/v1/chat/completions", CHAT)
    assert status == 200 and "Sandbox echo" in body["choices"][0]["message"]["content"]
    body = {**CHAT, "max_tokens": 99}
    assert (await answer(alone, "/beta/v1/messages", body, alone.api_key()))[0] == 200


async def test_an_absent_sandbox_is_not_listed(absent):
    for headers in (absent.bearer(), absent.api_key()):
        assert not {name for name in await names(absent, headers) if "sandbox" in name}
        status, body = await answer(absent, "/beta/v1/models/sandbox/echo", headers=headers)
        assert (status, body["error"]["code"]) == (404, "model_not_found")


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/beta/v1/chat/completions", CHAT),
        ("/beta/v1/chat/completions", {**CHAT, "model": "sandbox/vision", "stream": True}),
        ("/beta/v1/messages", {**CHAT, "max_tokens": 99}),
        ("/coding/v1/messages", {**CHAT, "max_tokens": 99}),
        ("/beta/v1/messages/count_tokens", CHAT),
        ("/beta/v1/responses", {"model": "sandbox/echo", "input": "Hello"}),
        ("/beta/v1/embeddings", {"model": "sandbox/embed", "input": "Hello"}),
    ],
)
async def test_an_absent_sandbox_is_not_called(absent, path, body):
    headers = absent.api_key() if "messages" in path else absent.bearer()
    status, answered = await answer(absent, path, body, headers)
    assert (status, answered["error"]["code"]) == (404, "model_not_found"), answered
    assert "unknown model 'sandbox/" in answered["error"]["message"]


@pytest.mark.parametrize("mode", ["enabled", "strict"])
async def test_a_step_of_an_absent_sandbox_is_named(with_providers, mode):
    steps = [
        {"step_id": "first", "model": "broken"},
        {"step_id": "second", "model": "sandbox/echo"},
    ]
    config = {"strategy": {"mode": "sequential"}, "steps": steps}
    body = {"model": "blind", "messages": HELLO, "fallback": mode, "fallback_config": config}
    status, answered = await answer(with_providers, "/beta/v1/chat/completions", body)
    assert (status, answered["error"]["param"]) == (400, "fallback_config.steps[1].model")
    assert "unknown model 'sandbox/echo'" in answered["error"]["message"]

    body["max_tokens"] = 99
    status, answered = await answer(
        with_providers, "/beta/v1/messages", body, with_providers.api_key()
    )
    assert (status, answered["error"]["code"]) == (400, "invalid_request")
    assert "fallback_config.steps[1].model: unknown model" in answered["error"]["message"]


async def test_an_absent_sandbox_is_no_fallback(with_providers):
    body = {"model": "spared", "messages": HELLO}
    status, answered = await answer(with_providers, "/beta/v1/chat/completions", body)
    assert status == 502
    assert {attempt["model"] for attempt in answered["error"]["attempts"]} == {"openai/fail-500"}


async def test_an_absent_sandbox_describes_no_image(with_providers):
    body = {"model": "blind", "messages": [{"role": "user", "content": [IMAGE]}]}
    for multimodal, place in (
        ({}, "[roles] describe_image"),
        ({"image": {"model": "sandbox/vision"}}, "multimodal.image.model"),
    ):
        asked = {**body, "multimodal": multimodal} if multimodal else body
        status, answered = await answer(with_providers, "/beta/v1/chat/completions", asked)
        assert status == 400, answered
        assert f"{place}: unknown model 'sandbox/vision'" in answered["error"]["message"]


async def test_operators_see_no_absent_sandbox(with_providers, alone):
    headers = {"Authorization": f"Bearer {ADMIN_KEY}"}
    for gateway, is_present in ((with_providers, False), (alone, True)):
        status, body = await answer(gateway, "/admin/v1/providers", headers=headers)
        assert status == 200
        assert ("sandbox" in {provider["id"] for provider in body["data"]}) == is_present


async def test_a_configured_sandbox_stays(tmp_path):
    play = {"kind": "sandbox"}
    real = {"kind": "openai", "base_url": "http://127.0.0.1:1"}
    async with automatic(tmp_path, providers={"mine": real, "play": play}) as gateway:
        body = {"model": "play/echo", "messages": HELLO}
        assert (await answer(gateway, "/beta/v1/chat/completions", body))[0] == 200
        assert (await answer(gateway, "/beta/v1/chat/completions", CHAT))[0] == 404
