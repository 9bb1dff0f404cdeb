"""Health checks of providers, which close breakers without a request of a caller."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from aiohttp import web

from services.accounts.admin.admin_keys import hash_admin_key, make_admin_key
from tests.gateway_in_process import Gateway, running_gateway, serving
from tests.waiting import until

ADMIN_KEY = make_admin_key(bytes(32))
CHECKED = {"kind": "openai", "api_key": "k", "health_check_every_s": 0.05}
ANSWER = {
    "id": "c",
    "model": "m",
    "choices": [
        {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Hi"}}
    ],
}

pytestmark = pytest.mark.asyncio(loop_scope="module")


class Upstream:
    """A server that can be down; under `/nolist/v1` it has no list of models.

    Attributes:
        is_down: whether it fails.
        lists: requests for a list of models.
        chats: bodies of requests for chat completions.
    """

    def __init__(self) -> None:
        self.is_down = False
        self.lists = 0
        self.chats: list[Any] = []

    def app(self) -> web.Application:
        app = web.Application()
        for path in ("/v1", "/nolist/v1"):
            app.router.add_post(f"{path}/chat/completions", self.chat)
        app.router.add_get("/v1/models", self.models)
        return app

    async def chat(self, request: web.Request) -> web.Response:
        self.chats.append(await request.json())
        return web.Response(status=503) if self.is_down else web.json_response(ANSWER)

    async def models(self, request: web.Request) -> web.Response:
        self.lists += 1
        return web.Response(status=503) if self.is_down else web.json_response({"data": []})


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def upstream() -> Upstream:
    return Upstream()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(
    tmp_path_factory: pytest.TempPathFactory, upstream: Upstream
) -> AsyncIterator[Gateway]:
    async with serving(upstream.app()) as url:
        providers = {
            "listed": {**CHECKED, "base_url": f"{url}/v1"},
            "unlisted": {**CHECKED, "base_url": f"{url}/nolist/v1"},
            "unchecked": {"kind": "openai", "api_key": "k", "base_url": f"{url}/v1"},
        }
        async with running_gateway(
            tmp_path_factory.mktemp("checks"),
            url,
            providers=providers,
            limits={"breaker_failures": 2},
            admin={"key_sha256": hash_admin_key(ADMIN_KEY).hex()},
        ) as running:
            yield running


async def ask(gateway: Gateway, model: str) -> int:
    body = {
        "model": model,
        "messages": [{"role": "user", "content": "Hello"}],
        "fallback": "disabled",
    }
    url = f"{gateway.url}/v1/chat/completions"
    async with gateway.http.post(url, json=body, headers=gateway.bearer()) as answer:
        return answer.status


async def breaker(gateway: Gateway, provider: str) -> str:
    """Return the state of the breaker of a provider's only model."""
    headers = {"Authorization": f"Bearer {ADMIN_KEY}"}
    async with gateway.http.get(f"{gateway.url}/admin/v1/providers", headers=headers) as answer:
        providers = {one["id"]: one for one in (await answer.json())["data"]}
    state: str = providers[provider]["models"][0]["breaker"]
    return state


async def open_breaker(gateway: Gateway, provider: str) -> None:
    """Have two requests fail, which opens the breaker of the provider's model."""
    for _ in range(2):
        assert await ask(gateway, f"{provider}/m") >= 500
    assert await breaker(gateway, provider) == "open"


@pytest.mark.parametrize("provider", ["listed", "unlisted"])
async def test_a_check_closes_a_breaker(
    gateway: Gateway, upstream: Upstream, provider: str
) -> None:
    upstream.is_down = True
    before = len(upstream.chats), upstream.lists
    await open_breaker(gateway, provider)
    checks = "gateway_provider_health_checks_total"

    def count(outcome: str) -> float:
        labels = {"provider": provider, "outcome": outcome}
        return gateway.counters.get_sample_value(checks, labels) or 0

    await until(lambda: count("failed") >= 2)
    assert await breaker(gateway, provider) == "open"
    upstream.is_down = False

    async def is_closed() -> bool:
        return await breaker(gateway, provider) == "closed"

    await until(is_closed)
    chats, lists = len(upstream.chats) - before[0], upstream.lists - before[1]
    if provider == "listed":
        assert (chats, lists >= 3) == (2, True)
    else:
        assert chats >= 2 + 3
        sent = upstream.chats[-1]
        assert (sent["model"], sent["max_tokens"]) == ("m", 1)
    # Nothing is sent while no breaker is open, and the first failure opens it again.
    assert count("answered") == 1
    upstream.is_down = True
    assert await ask(gateway, f"{provider}/m") >= 500
    assert await breaker(gateway, provider) == "open"


async def test_a_provider_is_not_checked_by_default(gateway: Gateway, upstream: Upstream) -> None:
    upstream.is_down = True
    for provider in ("unchecked", "listed"):
        await open_breaker(gateway, provider)
    upstream.is_down = False

    async def is_other_closed() -> bool:
        return await breaker(gateway, "listed") == "closed"

    await until(is_other_closed)
    assert await breaker(gateway, "unchecked") == "open"
