"""Models with several deployments, over HTTP: failures, limits and sticky conversations."""

from collections import Counter
from contextlib import asynccontextmanager
from typing import Any

import orjson
import pytest

from services.common.clock import Clock
from tests.facade.deployment_upstream import DeploymentUpstream, failing
from tests.facade.sockets import refusing_port
from tests.gateway_in_process import Gateway, running_gateway, serving
from tests.manual_clock import ManualClock

CHAT, MESSAGES = "/beta/v1/chat/completions", "/beta/v1/messages"
NAMES = ("east", "west", "south")

every_way = pytest.mark.parametrize(
    ("path", "stream"),
    [(CHAT, False), (CHAT, True), (MESSAGES, False), (MESSAGES, True)],
)


@asynccontextmanager
async def deployed(tmp_path, *, clock: Clock | None = None, **model: Any):
    """Run a gateway whose model `m` has deployments of weights that nobody reaches by chance."""
    upstream = DeploymentUpstream()
    weights = (1000, 1e-30, 1e-60)
    places = [
        {"provider": name, "upstream": "m", "weight": weight}
        for name, weight in zip(NAMES, weights, strict=True)
    ]
    settings = {"name": "m", "deployments": places, **model}
    async with serving(upstream.app) as address:
        providers = upstream.providers(address, *NAMES)
        async with running_gateway(
            tmp_path, address, providers=providers, models=[settings], clock=clock
        ) as gateway:
            yield gateway, upstream


async def ask(
    gateway: Gateway, path: str = CHAT, text: str = "Hi", *, stream: bool = False, **fields: Any
) -> tuple[int, dict[str, str], str]:
    """Return the status of an answer, its headers and its text, of a failure the body."""
    body = {
        "model": "m",
        "max_tokens": 10,
        "messages": [{"role": "user", "content": text}],
        "stream": stream,
        **fields,
    }
    headers = gateway.bearer() if path != MESSAGES else gateway.api_key()
    async with gateway.http.post(gateway.url + path, json=body, headers=headers) as answer:
        answer_body = await answer.read()
    head = {name.lower(): value for name, value in answer.headers.items()}
    deployments = [name for name in NAMES if name.encode() in answer_body]
    return answer.status, head, deployments[0] if answer.status == 200 else answer_body.decode()


@every_way
async def test_the_deployment_that_served_is_named(tmp_path, path, stream):
    async with deployed(tmp_path) as (gateway, _):
        status, headers, text = await ask(gateway, path, stream=stream)
    assert (status, text) == (200, "east")
    assert headers["x-gateway-model"] == "m"
    assert (headers["x-gateway-provider"], headers["x-gateway-deployment"]) == ("east", "east/m")
    assert headers["x-gateway-attempts"] == "1"


@pytest.mark.thorough(one_in=3)
@every_way
@pytest.mark.parametrize("status", [401, 404, 429, 500, 503])
async def test_a_failing_deployment_is_stood_in_for(tmp_path, path, stream, status):
    async with deployed(tmp_path) as (gateway, upstream):
        upstream.scripts["east"] = failing(status)
        answered, headers, text = await ask(gateway, path, stream=stream)
    assert (answered, text) == (200, "west")
    assert headers["x-gateway-deployment"] == "west/m"
    assert (headers["x-gateway-step"], headers["x-gateway-attempts"]) == ("primary", "2")
    assert upstream.asked == ["east", "west"]


@pytest.fixture
def dead_port():
    with refusing_port() as port:
        yield port


@every_way
async def test_a_dead_server_is_stood_in_for(tmp_path, dead_port, path, stream):
    upstream = DeploymentUpstream()
    async with serving(upstream.app) as address:
        providers = upstream.providers(address, "east", "west")
        providers["east"]["base_url"] = f"http://127.0.0.1:{dead_port}"
        places = [{"provider": "east", "weight": 1000}, {"provider": "west", "weight": 1e-30}]
        models = [{"name": "m", "deployments": places}]
        async with running_gateway(
            tmp_path, address, providers=providers, models=models
        ) as gateway:
            status, headers, text = await ask(gateway, path, stream=stream)
    assert (status, text, headers["x-gateway-attempts"]) == (200, "west", "2")


async def test_a_silent_deployment_takes_the_time_of_its_step(tmp_path):
    async with deployed(tmp_path) as (gateway, upstream):
        upstream.silent.add("east")
        step = {"step_id": "s", "model": "m", "timeout_ms": 50}
        chain = {"strategy": {"mode": "sequential"}, "steps": [step]}
        status, _, body = await ask(gateway, fallback="strict", fallback_config=chain)
    assert status == 504
    assert [one["model"] for one in orjson.loads(body)["error"]["attempts"]] == ["east/m"]


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "20"}, 20),
        ({"retry-after-ms": "2500"}, 2.5),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "1m0s"}, 60),
    ],
)
async def test_a_rate_limit_is_kept_for_as_long_as_asked(tmp_path, headers, seconds):
    clock = ManualClock(1000)
    async with deployed(tmp_path, clock=Clock(monotonic=clock.monotonic)) as (gateway, upstream):
        upstream.scripts["east"] = failing(429, headers)
        assert [(await ask(gateway))[2] for _ in range(3)] == ["west"] * 3
        assert upstream.asked == ["east", "west", "west", "west"]
        del upstream.scripts["east"]
        clock.now_s += seconds - 0.1
        assert (await ask(gateway))[2] == "west"
        clock.now_s += 0.2
        assert (await ask(gateway))[2] == "east"
        labels = {"provider": "east", "model": "m", "reason": "rate_limited"}
        counted = gateway.counters.get_sample_value("gateway_deployment_cooldowns_total", labels)
    assert counted == 1


@every_way
async def test_one_with_nothing_left_is_spared_before_it_fails(tmp_path, path, stream):
    clock = ManualClock(1000)
    async with deployed(tmp_path, clock=Clock(monotonic=clock.monotonic)) as (gateway, upstream):
        upstream.headers["east"] = {
            "x-ratelimit-remaining-requests": "0",
            "x-ratelimit-reset-requests": "30s",
        }
        told = [(await ask(gateway, path, stream=stream))[2] for _ in range(3)]
        assert told == ["east", "west", "west"]
        clock.now_s += 31
        assert (await ask(gateway, path, stream=stream))[2] == "east"


async def test_all_limited_tells_the_caller_when_to_return(tmp_path):
    async with deployed(tmp_path) as (gateway, upstream):
        for name in NAMES:
            upstream.scripts[name] = failing(429, {"retry-after": "40"})
        status, headers, body = await ask(gateway)
    assert (status, headers["retry-after"]) == (429, "40")
    attempts = orjson.loads(body)["error"]["attempts"]
    assert [one["model"] for one in attempts] == ["east/m", "west/m", "south/m"]
    assert not any("key-" in value for value in (body, str(headers)))


async def test_disabled_fallback_asks_one_deployment(tmp_path):
    async with deployed(tmp_path) as (gateway, upstream):
        upstream.scripts["east"] = failing(500)
        status, _, _ = await ask(gateway, fallback="disabled")
    assert (status, upstream.asked) == (502, ["east"])


async def test_each_deployment_is_counted(tmp_path):
    async with deployed(tmp_path) as (gateway, upstream):
        upstream.scripts["east"] = failing(500)
        await ask(gateway)

        def counted(provider: str, outcome: str) -> float | None:
            labels = {"provider": provider, "model": "m", "outcome": outcome}
            return gateway.counters.get_sample_value("gateway_deployment_attempts_total", labels)

        assert (counted("east", "failed"), counted("west", "served")) == (1, 1)


@pytest.mark.parametrize("stream", [False, True])
async def test_a_conversation_stays_where_it_began(tmp_path, stream):
    upstream = DeploymentUpstream()
    async with serving(upstream.app) as address:
        providers = upstream.providers(address, *NAMES)
        models = [{"name": "m", "deployments": [{"provider": name} for name in NAMES]}]
        async with running_gateway(
            tmp_path, address, providers=providers, models=models
        ) as gateway:
            homes = {}
            for number in range(40):
                text = f"Question {number}"
                _, _, homes[number] = await ask(gateway, text=text, stream=stream)
                later = [
                    {"role": "user", "content": text},
                    {"role": "assistant", "content": "An answer."},
                    {"role": "user", "content": "And then?"},
                ]
                for path in (CHAT, MESSAGES):
                    _, _, home = await ask(gateway, path, messages=later, stream=stream)
                    assert home == homes[number]
            assert set(homes.values()) == set(NAMES)

            # One fails: its conversations move, all others stay.
            upstream.scripts["east"] = failing(429, {"retry-after": "600"})
            for number, home in homes.items():
                _, _, now = await ask(gateway, text=f"Question {number}", stream=stream)
                assert now == home or home == "east"
                assert now != "east"


async def test_without_sticky_a_conversation_goes_anywhere(tmp_path):
    upstream = DeploymentUpstream()
    async with serving(upstream.app) as address:
        providers = upstream.providers(address, *NAMES)
        places = [{"provider": name} for name in NAMES]
        models = [{"name": "m", "deployments": places, "sticky": False}]
        async with running_gateway(
            tmp_path, address, providers=providers, models=models
        ) as gateway:
            homes = Counter([(await ask(gateway))[2] for _ in range(60)])
    assert set(homes) == set(NAMES)


async def test_vectors_are_of_one_deployment_unless_they_compare(tmp_path):
    upstream = DeploymentUpstream()
    async with serving(upstream.app) as address:
        providers = upstream.providers(address, *NAMES)
        places = [{"provider": name} for name in NAMES]
        models = [
            {"name": "own", "deployments": places},
            {"name": "shared", "deployments": places, "vector_space": "e"},
        ]
        async with running_gateway(
            tmp_path, address, providers=providers, models=models
        ) as gateway:

            async def embed(model: str) -> int:
                body = {"model": model, "input": "text"}
                async with gateway.http.post(
                    gateway.url + "/beta/v1/embeddings", json=body, headers=gateway.bearer()
                ) as answer:
                    return answer.status

            for _ in range(20):
                assert await embed("own") == 200
            assert set(upstream.asked) == {"east"}
            upstream.scripts["east"] = failing(400)
            assert await embed("own") == 400
            del upstream.scripts["east"]
            for _ in range(40):
                assert await embed("shared") == 200
            assert set(upstream.asked) == set(NAMES)
