"""Which models stand in for one that makes vectors, and how often it is asked again."""

from collections.abc import AsyncIterator
from io import BytesIO
from typing import Any

import orjson
import pytest
import pytest_asyncio
from aiohttp import web

from tests.gateway_in_process import Gateway, running_gateway

pytestmark = pytest.mark.asyncio(loop_scope="module")


def model(name: str, provider: str, upstream: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, "provider": provider, "upstream": upstream, **fields}


MODELS = [
    model("first", "openai", "fail-500", vector_space="s", fallbacks=["other", "second"]),
    model("second", "gemini", "embed", vector_space="s"),
    model("other", "sandbox", "embed", vector_space="t"),
    model("alone", "openai", "fail-500", fallbacks=["sandbox/embed"]),
    model("unnamed", "openai", "embed"),
    model("good", "openai", "embed", vector_space="s"),
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Gateway]:
    async with running_gateway(tmp_path_factory.mktemp("gateway"), models=MODELS) as one:
        yield one


async def post(gateway: Gateway, model: str, **fields: Any) -> tuple[int, Any, Any]:
    body = {"model": model, "input": "a dog", **fields}
    async with gateway.http.post(
        f"{gateway.url}/beta/v1/embeddings",
        data=BytesIO(orjson.dumps(body)),
        headers=gateway.bearer() | {"content-type": "application/json"},
    ) as answer:
        return answer.status, orjson.loads(await answer.read()), answer.headers


def chain(*models: str, mode: str = "enabled", **step: Any) -> dict[str, Any]:
    steps = [{"step_id": f"s{at}", "model": name, **step} for at, name in enumerate(models)]
    return {
        "fallback": mode,
        "fallback_config": {"strategy": {"mode": "sequential"}, "steps": steps},
    }


async def test_the_operators_fallbacks_are_those_of_the_space(gateway: Gateway) -> None:
    status, answer, headers = await post(gateway, "first")
    assert status == 200
    assert len(answer["data"][0]["embedding"]) == 256
    assert headers["x-gateway-model"] == "second"
    assert headers["x-gateway-step"] == "fallback-2"


async def test_a_model_without_a_space_stands_alone(gateway: Gateway) -> None:
    status, answer, _ = await post(gateway, "alone")
    assert status == 502
    assert {one["model"] for one in answer["error"]["attempts"]} == {"openai/fail-500"}


async def test_no_fallback_asks_one_model_once(gateway: Gateway) -> None:
    status, answer, _ = await post(gateway, "first", fallback="disabled")
    assert status == 502
    assert len(answer["error"]["attempts"]) == 1


@pytest.mark.parametrize("mode", ["enabled", "strict"])
async def test_a_chain_within_one_space_is_run(gateway: Gateway, mode: str) -> None:
    status, _, headers = await post(gateway, "first", **chain("first", "good", mode=mode))
    assert (status, headers["x-gateway-step"]) == (200, "s1")


@pytest.mark.parametrize(
    ("asked", "fields", "path"),
    [
        ("first", chain("second", "other"), "fallback_config.steps[1].model"),
        ("first", chain("unnamed"), "fallback_config.steps[0].model"),
        ("unnamed", chain("good", "sandbox/embed"), "fallback_config.steps[1].model"),
        ("any", chain("second", "other", mode="strict"), "fallback_config.steps[1].model"),
        (
            "first",
            chain("second", parameters={"dimensions": 8}),
            "fallback_config.steps[0].parameters",
        ),
        ("first", {"fallback": "enabled"}, "fallback_config"),
    ],
)
async def test_spaces_are_not_mixed(
    gateway: Gateway, asked: str, fields: dict[str, Any], path: str
) -> None:
    status, answer, _ = await post(gateway, asked, **fields)
    assert (status, answer["error"]["param"]) == (400, path)
    assert answer["error"]["message"].startswith(f"{path}: ")


async def test_one_model_under_two_names_is_one_space(gateway: Gateway) -> None:
    # `unnamed` and `good` are the same model, whatever the settings say of their spaces.
    status, _, headers = await post(gateway, "unnamed", **chain("good", mode="strict"))
    assert (status, headers["x-gateway-model"]) == (200, "good")
    status, _, _ = await post(gateway, "unnamed", **chain("good"))
    assert status == 200


class Failing:
    """A server of OpenAI's dialect that answers a few requests with an error first.

    Attributes:
        bodies: what it was sent.
        failures: status and error of the answers to come before vectors.
    """

    def __init__(self, *failures: tuple[int, dict[str, Any]]) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.failures = [*failures]

    def app(self) -> web.Application:
        app = web.Application(client_max_size=1 << 24)
        app.router.add_post("/v1/embeddings", self._embed)
        return app

    async def _embed(self, request: web.Request) -> web.Response:
        self.bodies.append(await request.json())
        if self.failures:
            status, error = self.failures.pop(0)
            return web.json_response({"error": error}, status=status)
        return web.json_response({"data": [{"index": 0, "embedding": [0.5, 1]}]})


async def test_a_passing_failure_is_tried_again(tmp_path_factory: pytest.TempPathFactory) -> None:
    server = Failing((429, {"message": "slow down"}))
    folder = tmp_path_factory.mktemp("gateway")
    async with running_gateway(folder, server.app()) as gateway:
        status, _, headers = await post(gateway, "openai/m")
    assert (status, headers["x-gateway-attempts"], len(server.bodies)) == (200, "2", 2)


async def test_a_large_body_is_read_in_a_process(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    server = Failing()
    text = "x" * (4 << 20)
    folder = tmp_path_factory.mktemp("gateway")
    async with running_gateway(folder, server.app()) as gateway:
        status, answer, _ = await post(gateway, "openai/m", input=text, encoding_format="base64")
        assert (status, answer["data"][0]["embedding"]) == (200, "AAAAPwAAgD8=")
        assert server.bodies[0]["input"] == [text]
        status, answer, _ = await post(gateway, "openai/m", input=["", text])
        assert (status, answer["error"]["param"]) == (400, "input[0]")


async def test_a_refused_field_is_left_out(tmp_path_factory: pytest.TempPathFactory) -> None:
    def refused(name: str) -> tuple[int, dict[str, Any]]:
        return 400, {"message": f"Unsupported parameter: '{name}'", "param": name}

    server = Failing(refused("encoding_format"), refused("user"))
    fields = {"encoding_format": "base64", "user": "ada", "dimensions": 2}
    folder = tmp_path_factory.mktemp("gateway")
    async with running_gateway(folder, server.app()) as gateway:
        status, answer, headers = await post(gateway, "openai/m", **fields)
        assert (status, headers["x-gateway-dropped"]) == (200, "user")
        assert answer["data"][0]["embedding"] == "AAAAPwAAgD8="
        # What was learnt counts for the next request.
        await post(gateway, "openai/m", **fields)
        assert set(server.bodies[-1]) == {"model", "input", "dimensions"}
        assert len(server.bodies) == 4
        # Other numbers of a vector would be another answer.
        server.failures = [refused("dimensions")]
        status, answer, _ = await post(gateway, "openai/m", **fields)
        assert (status, answer["error"]["param"]) == (400, "dimensions")


async def test_a_model_that_keeps_failing_is_passed_over(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    server = Failing(*[(503, {"message": "down"})] * 100)
    models = [
        model("first", "openai", "m", vector_space="s", fallbacks=["second"]),
        model("second", "sandbox", "embed", vector_space="s"),
    ]
    folder = tmp_path_factory.mktemp("gateway")
    limits = {"breaker_failures": 1}
    async with running_gateway(folder, server.app(), models=models, limits=limits) as gateway:
        await post(gateway, "first")
        before = len(server.bodies)
        status, _, headers = await post(gateway, "first")
    assert (status, headers["x-gateway-model"], len(server.bodies)) == (200, "second", before)
