"""Vectors of texts: what is asked of a provider, and what counts as an answer."""

from collections.abc import AsyncIterator
from typing import Any

import orjson
import pytest

from gateway.errors.v1.errors_pb2 import Reason
from services.common.errors import GatewayError, UpstreamError
from services.inference.providers.anthropic import AnthropicProvider
from services.inference.providers.openai import OpenAIProvider
from services.inference.providers.sandbox import SandboxProvider
from services.inference.providers.upstream import Upstream
from tests.services.inference.providers.embedding_calls import embed
from tests.services.inference.providers.scripted_server import ScriptedUpstream, scripted_upstream
from tests.upstream.app import serving


@pytest.fixture
async def here() -> AsyncIterator[ScriptedUpstream]:
    async with scripted_upstream() as made:
        yield made
        assert made.live.count == 0, "every call that began is over"


def openai_provider(upstream: Upstream) -> OpenAIProvider:
    return OpenAIProvider("acme", upstream, pass_stateful=False, newest=False, fetches_urls=False)


def answer_of(*items: Any) -> bytes:
    return orjson.dumps({"object": "list", "data": list(items)})


def item(index: int | None, *values: float) -> dict[str, Any]:
    return {"embedding": values} if index is None else {"index": index, "embedding": values}


async def test_vectors_over_http_match_the_in_process_sandbox(here: ScriptedUpstream) -> None:
    texts = ["a dog", "two cats", "日本"]
    async with serving() as sandbox:
        upstream = here.upstream(f"{sandbox.url}/v1")
        made = await embed(openai_provider(upstream), texts)
        [entry] = sandbox.log.entries
        assert (entry.path, entry.body) == (
            "/v1/embeddings",
            {"model": "embed", "input": texts},
        )
    assert made == await embed(SandboxProvider("sandbox"), texts)


async def test_vectors_come_in_the_order_of_the_texts(here: ScriptedUpstream) -> None:
    here.server.plays(lambda c: c.answer(answer_of(item(1, 0.5, 1), item(0, 2, -3))))
    assert await embed(openai_provider(here.upstream(None)), ["a", "b"]) == [
        [2.0, -3.0],
        [0.5, 1.0],
    ]


async def test_a_server_that_leaves_the_index_out_keeps_the_order(here: ScriptedUpstream) -> None:
    here.server.plays(lambda c: c.answer(answer_of(item(None, 1), item(None, 2))))
    assert await embed(openai_provider(here.upstream(None)), ["a", "b"]) == [[1], [2]]


@pytest.mark.parametrize(
    "body",
    [
        b"[]",
        b"{}",
        answer_of(),
        answer_of(item(0, 1)),
        answer_of(item(0, 1), item(0, 1)),
        answer_of(item(0, 1), item(2, 1)),
        answer_of(item(0, 1), item(1, 1), item(2, 1)),
        answer_of(item(0, 1), item(1, 1, 2)),
        answer_of(item(0, 1), item(1, 1e39)),
        answer_of(item(0, 1), item(2**31, 1)),
        answer_of(item(0, *[0] * 8193), item(1, *[0] * 8193)),
        answer_of(*[item(0, *[0] * 100)] * 400),
        answer_of(item(0), item(1)),
        answer_of({"index": 0, "embedding": "AAAA"}, item(1, 1)),
        answer_of({"index": 0, "embedding": ["1"]}, item(1, 1)),
        answer_of({"index": [], "embedding": [None]}, item(1, 1)),
        answer_of(7, item(1, 1)),
        b'{"data": {"0": [1]}}',
    ],
)
async def test_a_missing_or_malformed_vector_is_a_failure(
    here: ScriptedUpstream, body: bytes
) -> None:
    here.server.plays(lambda c: c.answer(body))
    with pytest.raises(UpstreamError) as raised:
        await embed(openai_provider(here.upstream(None)), ["a", "b"])
    assert Reason.Name(raised.value.reason) == "REASON_UPSTREAM_ERROR"


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        ("echo", "REASON_UPSTREAM_REJECTED"),
        ("none", "REASON_MODEL_NOT_FOUND"),
        ("fail-429", "REASON_UPSTREAM_RATE_LIMITED"),
        ("fail-500", "REASON_UPSTREAM_ERROR"),
    ],
)
async def test_in_process_failures_match_those_over_http(
    here: ScriptedUpstream, model: str, reason: str
) -> None:
    async with serving() as sandbox:
        upstream = here.upstream(f"{sandbox.url}/v1")
        for provider in (openai_provider(upstream), SandboxProvider("sandbox")):
            with pytest.raises(UpstreamError) as raised:
                await embed(provider, ["a"], model)
            assert Reason.Name(raised.value.reason) == reason


async def test_a_provider_without_embeddings_sends_nothing(here: ScriptedUpstream) -> None:
    anthropic = AnthropicProvider(
        "acme", here.upstream(None), pass_stateful=False, fetches_urls=False, official=True
    )
    with pytest.raises(GatewayError) as raised:
        await embed(anthropic, ["a"])
    assert Reason.Name(raised.value.reason) == "REASON_UNSUPPORTED"
    assert here.server.connections == 0
