"""Bedrock behind a gateway: signed requests, credentials that end, API keys, and the doctor."""

import base64
import json
import logging
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, cast
from unittest.mock import patch

import pytest
import pytest_asyncio
from aiohttp import web
from anthropic import AsyncAnthropic

from services.common.http import Client
from services.common.settings import Settings, parse
from services.doctor.findings import Finding
from services.doctor.providers import ask_all
from services.inference.facts.lifecycle import ModelLifecycle, ModelLifecycles, seconds_of
from services.inference.models import discovery
from tests.gateway_in_process import Gateway, running_gateway, serving
from tests.upstream.app import create_app
from tests.upstream.bedrock.signatures import ACCESS_KEY, ENVIRONMENT, SECRET_KEY
from tests.upstream.log import Entry, RequestLog

pytestmark = pytest.mark.asyncio(loop_scope="module")
SESSION_TOKEN = "a session token that nobody may read"
MODEL = "us.anthropic.echo-v1:0"
QUESTION = [{"role": "user", "content": "Hello"}]
# Without keys: credentials come from a container's server alone.
NO_KEYS = {name: one for name, one in ENVIRONMENT.items() if one not in (ACCESS_KEY, SECRET_KEY)}


@dataclass
class Container:
    """The server that gives a container its credentials.

    Attributes:
        asked: how often it was asked.
        lasts: how long its credentials are valid.
    """

    asked: int = 0
    lasts: timedelta = timedelta(seconds=50)

    async def credentials(self, request: web.Request) -> web.Response:
        self.asked += 1
        return web.json_response(
            {
                "AccessKeyId": ACCESS_KEY,
                "SecretAccessKey": SECRET_KEY,
                "Token": SESSION_TOKEN,
                "Expiration": (datetime.now(UTC) + self.lasts).isoformat(),
            }
        )


@dataclass
class Bedrock:
    """A gateway in front of Bedrock, in a container."""

    gateway: Gateway
    log: RequestLog
    container: Container
    url: str

    async def ask(self, provider: str, **fields: Any) -> tuple[int, Any]:
        body = {"model": f"{provider}/{MODEL}", "messages": QUESTION, **fields}
        url = f"{self.gateway.url}/v1/chat/completions"
        headers = self.gateway.bearer()
        async with self.gateway.http.post(url, json=body, headers=headers) as response:
            return response.status, await response.json()

    def anthropic(self) -> AsyncAnthropic:
        return AsyncAnthropic(base_url=self.gateway.url, api_key=self.gateway.key)

    async def embed(self, model: str, texts: list[str], **fields: Any) -> tuple[int, Any]:
        body = {"model": f"bedrock/{model}", "input": texts, **fields}
        url, headers = f"{self.gateway.url}/v1/embeddings", self.gateway.bearer()
        async with self.gateway.http.post(url, json=body, headers=headers) as response:
            return response.status, await response.json()

    def last_call(self) -> Entry:
        """Return the last request to a model; lists of models are asked for at any time."""
        return next(entry for entry in reversed(self.log.entries) if "/model/" in entry.path)


def section(url: str, **fields: Any) -> dict[str, Any]:
    return {"kind": "bedrock", "base_url": url, "region": "us-east-1", **fields}


@asynccontextmanager
async def in_container(container: Container) -> AsyncIterator[None]:
    app = web.Application()
    app.router.add_get("/credentials", container.credentials)
    async with serving(app) as url:
        address = {"AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{url}/credentials"}
        with patch.dict(os.environ, NO_KEYS | address):
            yield


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def bedrock(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Bedrock]:
    log, container = RequestLog(), Container()
    async with in_container(container), serving(create_app(log)) as url:
        providers = {
            "bedrock": section(url),
            "keyed": section(url, api_key="an API key"),
            "guarded": section(url, guardrail={"id": "gr1abcd2efgh", "version": "1"}),
            "elsewhere": section(url, region="eu-west-1"),
        }
        folder = tmp_path_factory.mktemp("gateway")
        async with running_gateway(folder, url, providers=providers) as gateway:
            yield Bedrock(gateway, log, container, url)


async def test_signed_with_a_containers_credentials(
    bedrock: Bedrock, caplog: pytest.LogCaptureFixture
):
    with caplog.at_level(logging.DEBUG):
        status, answer = await bedrock.ask("bedrock")
    assert (status, answer["choices"][0]["message"]["content"]) == (
        200,
        'Sandbox echo: you said "Hello".',
    )
    sent = bedrock.last_call()
    assert "x-amz-security-token" in sent.headers
    assert "/model/us.anthropic.echo-v1:0/converse" in sent.path
    assert bedrock.container.asked >= 1
    logged = caplog.text
    assert SESSION_TOKEN not in logged and SECRET_KEY not in logged and "Canonical" not in logged


async def test_an_api_key_needs_no_signature(bedrock: Bedrock):
    status, _ = await bedrock.ask("keyed")
    assert status == 200
    assert "x-amz-date" not in bedrock.last_call().headers


async def test_a_signature_for_another_region_is_refused(bedrock: Bedrock):
    status, answer = await bedrock.ask("elsewhere")
    assert status == 502
    assert "credentials" in answer["error"]["message"]


async def test_tokens_are_counted_by_bedrock(bedrock: Bedrock):
    url = f"{bedrock.gateway.url}/beta/v1/messages/count_tokens"
    body = {"model": f"bedrock/{MODEL}", "messages": QUESTION}
    headers = bedrock.gateway.api_key()
    async with bedrock.gateway.http.post(url, json=body, headers=headers) as response:
        assert response.status == 200
        assert "x-gateway-estimate" not in response.headers
    assert bedrock.last_call().path.endswith("/count-tokens")


async def test_messages_are_claudes_own(bedrock: Bedrock):
    fields: Any = {"model": f"bedrock/{MODEL}", "messages": QUESTION}
    more = {"extra_body": {"top_k": 3}, "betas": ["interleaved-thinking-2025-05-14"]}
    async with bedrock.anthropic() as client:
        whole = await client.beta.messages.create(max_tokens=100, **fields, **more)
        assert whole.content[0].to_dict()["text"] == 'Sandbox echo: you said "Hello".'
        sent = bedrock.last_call()
        assert sent.path.endswith(f"{MODEL}/invoke")
        # Verbatim: what the caller sent, with the version in place of the model.
        assert sent.body == {
            "anthropic_version": "bedrock-2023-05-31",
            "anthropic_beta": more["betas"],
            **{"max_tokens": 100, "messages": QUESTION, "top_k": 3},
        }
        assert "anthropic-beta" not in sent.headers
        async with client.messages.stream(max_tokens=100, **fields) as stream:
            assert await stream.get_final_text() == 'Sandbox echo: you said "Hello".'
        sent = bedrock.last_call()
        assert sent.path.endswith("/invoke-with-response-stream") and "stream" not in sent.body
        thinking = {"type": "enabled", "budget_tokens": 2000}
        await client.messages.count_tokens(**fields, thinking=thinking)
        packed = bedrock.last_call().body["input"]["invokeModel"]["body"]
        assert json.loads(base64.b64decode(packed))["max_tokens"] > 2000


async def test_a_guardrail_is_named_in_each_api(bedrock: Bedrock):
    await bedrock.ask("guarded")
    config = {"guardrailIdentifier": "gr1abcd2efgh", "guardrailVersion": "1"}
    assert bedrock.last_call().body["guardrailConfig"] == config
    async with bedrock.anthropic() as client:
        await client.messages.create(
            model=f"guarded/{MODEL}", max_tokens=10, messages=cast(Any, QUESTION)
        )
    headers = bedrock.last_call().headers
    assert headers["x-amzn-bedrock-guardrailidentifier"] == "gr1abcd2efgh"
    assert headers["x-amzn-bedrock-guardrailversion"] == "1"


VECTORS: list[tuple[str, dict[str, Any], list[dict[str, Any]]]] = [
    (
        "amazon.titan-embed-text-v2:0",
        {"dimensions": 8},
        [{"inputText": "one", "dimensions": 8}, {"inputText": "two", "dimensions": 8}],
    ),
    (
        "cohere.embed-v4:0",
        {"dimensions": 8},
        [
            {
                **{"texts": ["one", "two"], "input_type": "search_document", "truncate": "NONE"},
                **{"embedding_types": ["float"], "output_dimension": 8},
            }
        ],
    ),
]


async def test_vectors_of_titan_and_cohere(bedrock: Bedrock):
    for model, fields, expected in VECTORS:
        bedrock.log.clear()
        status, answer = await bedrock.embed(model, ["one", "two"], **fields)
        assert status == 200, answer
        assert {len(one["embedding"]) for one in answer["data"]} == {fields.get("dimensions", 8)}
        assert answer["usage"]["prompt_tokens"] == 2
        sent = [one.body for one in bedrock.log.entries if one.path.endswith("/invoke")]
        assert sorted(map(str, sent)) == sorted(map(str, expected))
    for model in ("amazon.nova-embed", "amazon.titan-embed-text-v1"):
        status, answer = await bedrock.embed(model, ["one"], dimensions=8)
        assert status == 400, answer


async def test_models_and_profiles_are_listed(bedrock: Bedrock):
    providers = {"bedrock": settings(bedrock.url).providers["bedrock"]}
    async with Client(5) as client:
        ends: ModelLifecycles = {}
        listed = await discovery.learn(client, providers, lifecycles=ends)
    assert {"anthropic.echo", "us.anthropic.echo"} <= set(listed["bedrock"])
    days = [date(2026, 5, 1), date(2027, 3, 1)]
    end = ModelLifecycle(*map(seconds_of, days))
    assert ends["bedrock", "anthropic.echo"] == ends["bedrock", "us.anthropic.echo"] == end


def settings(url: str) -> Settings:
    return parse({"discovery": {"enabled": False}, "providers": {"bedrock": section(url)}}, "test")


async def finding(url: str) -> Finding:
    (check,) = [
        one.finding for one in await ask_all(settings(url), os.environ) if "bedrock" in str(one)
    ]
    return check


async def test_the_doctor_tries_the_credentials(bedrock: Bedrock):
    assert (await finding(bedrock.url)).message == "reachable; the credentials are valid"
    keys = {"AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": "wrong"}
    with patch.dict(os.environ, keys):
        wrong = await finding(bedrock.url)
    assert "InvalidSignatureException" in wrong.message
    with patch.dict(os.environ, {"AWS_CONTAINER_CREDENTIALS_FULL_URI": ""}):
        missing = await finding(bedrock.url)
    assert "no AWS credentials" in missing.message and "AWS_BEARER_TOKEN_BEDROCK" in missing.advice


async def test_the_doctor_says_that_the_clock_is_off(bedrock: Bedrock, tmp_path: Path):
    fast = create_app(RequestLog(), now=lambda: time.time() + 400)
    async with serving(fast) as url:
        late = await finding(url)
        assert "clock is off" in late.message and "NTP" in late.advice
        async with running_gateway(tmp_path, url, providers={"bedrock": section(url)}) as gateway:
            asked = Bedrock(gateway, bedrock.log, bedrock.container, url)
            status, answer = await asked.ask("bedrock")
    assert status == 502
    assert "clock" in answer["error"]["message"]
