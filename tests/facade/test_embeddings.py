"""Embeddings over HTTP: through the official SDK, over each provider, and what is refused."""

import base64
import struct
from typing import Any

import openai
import orjson
import pytest

from services.sandbox.model import models, vectors
from tests.gateway_in_process import Gateway
from tests.grid import each_row

pytestmark = pytest.mark.asyncio(loop_scope="module")

TEXTS = ["a dog", "two cats", "日本"]
MODELS = ["openai/embed", "gemini/embed", "sandbox/embed"]
EMBEDDINGS = "/beta/v1/embeddings"


def expected(*texts: str, dimensions: int | None = None) -> list[list[float]]:
    made = vectors.embed(texts, models.find_model("embed"), dimensions)
    size = len(made[0])
    return [list(struct.unpack(f"{size}f", struct.pack(f"{size}f", *vector))) for vector in made]


async def post(gateway: Gateway, body: Any, path: str = EMBEDDINGS) -> tuple[int, Any, Any]:
    data = body if isinstance(body, bytes) else orjson.dumps(body)
    headers = gateway.bearer() | {"content-type": "application/json"}
    async with gateway.http.post(gateway.url + path, data=data, headers=headers) as answer:
        return answer.status, orjson.loads(await answer.read()), answer.headers


async def refusal(gateway: Gateway, body: Any) -> tuple[int, str | None, str]:
    """Return status, path and message of a refused body, whose error is OpenAI's."""
    status, answer, _ = await post(gateway, body)
    assert answer["error"]["type"] in ("invalid_request_error", "server_error")
    return status, answer["error"]["param"], answer["error"]["message"]


@pytest.mark.parametrize("model", MODELS)
async def test_the_sdk_reads_vectors_of_every_provider(gateway: Gateway, model: str) -> None:
    async with openai.AsyncOpenAI(
        base_url=f"{gateway.url}/beta/v1", api_key=gateway.key, max_retries=0
    ) as client:
        # In base64, which the SDK asks for by itself, and in numbers.
        packed = await client.embeddings.create(model=model, input=TEXTS, user="ada")
        numbers = await client.embeddings.create(
            model=model, input=TEXTS, dimensions=8, encoding_format="float"
        )
    assert [item.embedding for item in packed.data] == expected(*TEXTS)
    for made, vector in zip(numbers.data, expected(*TEXTS, dimensions=8), strict=True):
        assert made.embedding == pytest.approx(vector, abs=1e-7)
    assert [item.index for item in numbers.data] == [0, 1, 2]
    assert packed.object == "list"
    assert packed.data[0].object == "embedding"
    assert packed.model.endswith("embed")
    assert packed.usage.prompt_tokens == packed.usage.total_tokens > 0


@pytest.mark.parametrize("model", MODELS)
async def test_one_text_is_one_vector(gateway: Gateway, model: str) -> None:
    status, answer, headers = await post(gateway, {"model": model, "input": "a dog"})
    assert status == 200
    [item] = answer["data"]
    assert item["embedding"] == pytest.approx(expected("a dog")[0], abs=1e-7)
    assert headers["x-gateway-model"] == model
    assert headers["x-gateway-provider"] == model.partition("/")[0]
    assert headers.get("x-gateway-estimate") == ("true" if "gemini" in model else None)


async def test_the_embedded_model_is_listed_and_serves_the_sdk(gateway: Gateway) -> None:
    name = "embedded/multilingual-e5-small"
    async with openai.AsyncOpenAI(
        base_url=f"{gateway.url}/beta/v1", api_key=gateway.key, max_retries=0
    ) as client:
        made = await client.embeddings.create(model=name, input=TEXTS)
        assert name in [model.id async for model in client.models.list()]
        with pytest.raises(openai.BadRequestError) as refused:
            await client.chat.completions.create(
                model=name, messages=[{"role": "user", "content": "Hi"}]
            )
        with pytest.raises(openai.NotFoundError):
            await client.embeddings.create(model="embedded/other", input=TEXTS)
    assert [len(item.embedding) for item in made.data] == [384] * 3
    assert made.usage.prompt_tokens > 0
    assert refused.value.param == "model"
    assert "/embeddings" in refused.value.message


async def test_more_texts_than_google_takes_in_a_request(gateway: Gateway) -> None:
    texts = [f"text {number}" for number in range(250)]
    _, answer, _ = await post(
        gateway, {"model": "gemini/embed", "input": texts, "encoding_format": "base64"}
    )
    made = [list(struct.unpack("256f", base64.b64decode(x["embedding"]))) for x in answer["data"]]
    assert made == expected(*texts)


async def test_tokens_go_to_providers_of_the_dialect_alone(gateway: Gateway) -> None:
    _, answer, _ = await post(gateway, {"model": "openai/embed", "input": [[1, 20], [3]]})
    assert answer["data"][1]["embedding"] == pytest.approx(expected("3")[0], abs=1e-7)
    for model in ("gemini/embed", "sandbox/embed"):
        for tokens in ([[1, 20], [3]], [1, 20]):
            status, path, message = await refusal(gateway, {"model": model, "input": tokens})
            assert (status, path) == (400, "input")
            assert message.startswith("input: not supported by the provider")


async def test_what_other_providers_cannot_use_is_named(gateway: Gateway) -> None:
    body = {"model": "gemini/embed", "input": "a", "user": "ada", "new_field": 1}
    _, _, headers = await post(gateway, body)
    assert set(headers["x-gateway-dropped"].split(", ")) == {"user", "new_field"}


async def test_anthropics_api_has_none(gateway: Gateway) -> None:
    status, path, message = await refusal(gateway, {"model": "anthropic/embed", "input": "a"})
    assert (status, path) == (400, "model")
    assert "use an embedding model of a provider of kind openai or gemini" in message


@each_row(
    ("fields", "path", "words"),
    [
        ({"input": ""}, "input", "must not be empty"),
        ({"input": []}, "input", "must not be empty"),
        ({"input": 1}, "input", "must be a string"),
        ({"input": None}, "input", "must be a string"),
        ({"input": ["a", ""]}, "input[1]", "must not be empty"),
        ({"input": ["a", 1]}, "input[1]", "must be a string"),
        ({"input": [1, "a"]}, "input[1]", "must be an integer"),
        ({"input": [1, -1]}, "input[1]", "must be at least 0"),
        ({"input": [True]}, "input[0]", "must be an integer"),
        ({"input": [[1], []]}, "input[1]", "must not be empty"),
        ({"input": [[1], "a"]}, "input[1]", "must be an array"),
        ({"input": ["a"] * 2049}, "input", "must have at most 2048 items"),
        ({"input": [[1]] * 2049}, "input", "must have at most 2048 items"),
        ({"input": "a", "dimensions": 0}, "dimensions", "must be at least 1"),
        ({"input": "a", "dimensions": 1.5}, "dimensions", "must be an integer"),
        ({"input": "a", "encoding_format": "hex"}, "encoding_format", "must be 'float'"),
        ({"input": "a", "user": 1}, "user", "must be a string"),
        ({"input": "a", "model": ""}, "model", "must not be empty"),
        ({"input": "a", "model": "none"}, "model", "none"),
        ({"input": "a", "memory_id": "m"}, "memory_id", "not supported for embeddings"),
        ({}, "input", "is required"),
    ],
)
async def test_a_refused_body_names_the_field(
    gateway: Gateway, fields: dict[str, Any], path: str, words: str
) -> None:
    status, told, message = await refusal(gateway, {"model": "openai/embed", **fields})
    assert (status, told) == (404 if fields.get("model") == "none" else 400, path)
    assert words in message


async def test_the_most_inputs_are_taken(gateway: Gateway) -> None:
    body = {"model": "sandbox/embed", "input": ["a"] * 2048, "encoding_format": "base64"}
    status, answer, _ = await post(gateway, body)
    assert (status, len(answer["data"])) == (200, 2048)


async def test_what_the_provider_refuses_is_told_as_its_own(gateway: Gateway) -> None:
    for model in ("openai/embed", "sandbox/embed"):
        status, path, _ = await refusal(
            gateway, {"model": model, "input": "a", "dimensions": 257, "fallback": "disabled"}
        )
        assert status == 400
        assert path in ("dimensions", None)
    for model in MODELS:
        status, _, _ = await refusal(
            gateway, {"model": model.replace("embed", "echo"), "input": "a"}
        )
        assert status == 400


async def test_the_log_and_metrics_count_it(gateway: Gateway) -> None:
    def counted() -> float:
        labels = {"route": EMBEDDINGS, "status": "200"}
        return gateway.counters.get_sample_value("gateway_http_requests_total", labels) or 0

    def attempts() -> float:
        labels = {"provider": "openai", "outcome": "served"}
        return gateway.counters.get_sample_value("gateway_upstream_attempts_total", labels) or 0

    before = counted(), attempts()
    await post(gateway, {"model": "openai/embed", "input": "a"})
    assert (counted(), attempts()) == (before[0] + 1, before[1] + 1)
