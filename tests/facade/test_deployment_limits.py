"""The operator's limits on calls of deployments and providers, over HTTP."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pytest
from prometheus_client import CollectorRegistry

from services.common.clock import Clock
from services.common.settings import Storage
from tests.facade.deployment_upstream import DeploymentUpstream, failing
from tests.gateway_in_process import Gateway, running_gateway, serving
from tests.limited_callers import MINUTE_S
from tests.manual_clock import ManualClock
from tests.waiting import until

CHAT, MESSAGES = "/beta/v1/chat/completions", "/beta/v1/messages"
RESPONSES, EMBEDDINGS = "/beta/v1/responses", "/beta/v1/embeddings"
NAMES = ("east", "west")


@dataclass
class Deployed:
    """Gateways with a model `m` of two deployments, of which the first is preferred."""

    gateways: list[Gateway]
    upstream: DeploymentUpstream
    clock: ManualClock


@asynccontextmanager
async def deployed(
    storage: Storage,
    limits: Mapping[str, Any],
    count: int = 1,
    providers: Mapping[str, Any] | None = None,
    names: tuple[str, ...] = NAMES,
    **model: Any,
) -> AsyncIterator[Deployed]:
    """Run gateways over one database, whose deployments have limits by their names."""
    upstream, clock = DeploymentUpstream(), ManualClock(MINUTE_S + 40)
    places = [
        {"provider": name, "upstream": "m", "weight": weight, "limits": limits.get(name)}
        for name, weight in zip(names, (1000, 1e-30), strict=False)
    ]
    async with AsyncExitStack() as stack:
        address = await stack.enter_async_context(serving(upstream.app))
        sections = upstream.providers(address, *NAMES)
        for name, of_provider in (providers or {}).items():
            sections[name]["limits"] = of_provider
        gateways = [
            await stack.enter_async_context(
                running_gateway(
                    storage.data_dir,
                    address,
                    providers=sections,
                    models=[{"name": "m", "deployments": places, "sticky": False, **model}],
                    clock=Clock(now=clock.now),
                    storage={
                        "data_dir": str(storage.data_dir),
                        "database_url": storage.database_url,
                    },
                )
            )
            for _ in range(count)
        ]
        yield Deployed(gateways, upstream, clock)


async def ask(
    gateway: Gateway, path: str = CHAT, model: str = "m", **fields: Any
) -> tuple[int, Mapping[str, str], Any]:
    """Return the status of an answer, its headers, and its body."""
    content: dict[str, Any] = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 10}
    if path == RESPONSES:
        content = {"input": "Hi", "store": False}
    elif path == EMBEDDINGS:
        content = {"input": "Hi"}
    body = {"model": model, **content, **fields}
    headers = gateway.bearer() if path != MESSAGES else gateway.api_key()
    async with gateway.http.post(gateway.url + path, json=body, headers=headers) as answer:
        content_bytes = await answer.read()
        shown = content_bytes.decode() if fields.get("stream") else orjson.loads(content_bytes)
        return answer.status, answer.headers, shown


def counted(registry: CollectorRegistry, provider: str) -> float | None:
    labels = {"provider": provider, "model": "m"}
    return registry.get_sample_value("gateway_deployment_limits_reached_total", labels)


async def test_another_deployment_is_called_at_a_limit(tmp_path: Path) -> None:
    async with deployed(Storage(data_dir=tmp_path), {"east": {"requests_per_minute": 2}}) as one:
        [gateway] = one.gateways
        for stream in (False, True, False, True):
            status, headers, _ = await ask(gateway, stream=stream)
            # What is not sent is no attempt.
            assert (status, headers["x-gateway-attempts"]) == (200, "1")
        assert one.upstream.asked == ["east", "east", "west", "west"]
        assert counted(gateway.counters, "east") == 2
        one.clock.now_s += 20
        await ask(gateway)
        assert one.upstream.asked[4:] == ["east"]


@pytest.mark.parametrize("path", [CHAT, MESSAGES, RESPONSES, EMBEDDINGS])
async def test_all_at_their_limits_is_429_with_the_time_to_wait(tmp_path: Path, path: str) -> None:
    limits = {name: {"requests_per_minute": 1} for name in NAMES}
    async with deployed(Storage(data_dir=tmp_path), limits, vector_space="e") as one:
        [gateway] = one.gateways
        assert [(await ask(gateway, path))[0] for _ in range(2)] == [200, 200]
        status, headers, body = await ask(gateway, path)
        assert (status, headers["retry-after"], len(one.upstream.asked)) == (429, "20", 2)
        message = body["error"]["message"]
        assert "the limit of the deployment" in message
        assert "/m, 1 requests per minute, is reached; try again in 20 s" in message
        assert body["error"]["type"] == "rate_limit_error"


async def test_a_fallback_is_called_at_the_limit_of_a_provider(tmp_path: Path) -> None:
    providers = {"east": {"requests_per_minute": 1}}
    names = ("east",)
    async with deployed(
        Storage(data_dir=tmp_path), {}, providers=providers, names=names, fallbacks=["west/w"]
    ) as one:
        [gateway] = one.gateways
        # The limit is of all models of the provider.
        assert (await ask(gateway, model="east/other"))[0] == 200
        status, headers, _ = await ask(gateway)
        assert (status, headers["x-gateway-provider"]) == (200, "west")
        status, _, body = await ask(gateway, model="east/third", fallback="disabled")
        assert status == 429
        assert "the limit of the provider east, 1 requests per minute" in body["error"]["message"]
    assert one.upstream.asked == ["east", "west"]


async def test_calls_count_for_all_workers(tmp_path: Path) -> None:
    limits = {"east": {"requests_per_minute": 5}}
    async with deployed(Storage(data_dir=tmp_path), limits, count=2, names=("east",)) as one:
        asked = [ask(one.gateways[n % 2], fallback="disabled") for n in range(16)]
        statuses = [status for status, _, _ in await asyncio.gather(*asked)]
    assert sorted(statuses) == [200] * 5 + [429] * 11
    assert len(one.upstream.asked) == 5


async def test_calls_in_progress_are_limited(tmp_path: Path) -> None:
    limits = {"east": {"concurrent_requests": 1}}
    async with deployed(Storage(data_dir=tmp_path), limits) as one:
        [gateway] = one.gateways
        one.upstream.gate.clear()
        first = asyncio.create_task(ask(gateway))
        assert await until(lambda: one.upstream.asked == ["east"])
        second = asyncio.create_task(ask(gateway))
        assert await until(lambda: one.upstream.asked == ["east", "west"])
        one.upstream.gate.set()
        await asyncio.gather(first, second)
        one.upstream.scripts["east"] = failing(400)

        async def fails() -> bool:
            return (await ask(gateway))[0] == 400

        # A failed call is no longer in progress either.
        for _ in range(3):
            assert await until(fails)


async def test_tokens_are_reserved_and_then_counted(tmp_path: Path) -> None:
    limits = {"east": {"tokens_per_minute": 1000}}
    async with deployed(Storage(data_dir=tmp_path), limits) as one:
        [gateway] = one.gateways
        one.upstream.gate.clear()
        large = asyncio.create_task(ask(gateway, max_tokens=2000))
        assert await until(lambda: one.upstream.asked == ["east"])
        beside = asyncio.create_task(ask(gateway))
        assert await until(lambda: one.upstream.asked == ["east", "west"])
        one.upstream.gate.set()
        await asyncio.gather(large, beside)

        async def is_preferred() -> bool:
            await ask(gateway)
            return one.upstream.asked[-1] == "east"

        # The answer was short.
        assert await until(is_preferred)
