"""Bedrock behind a gateway: signed requests, credentials that end, API keys, and the doctor."""

import logging
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import pytest_asyncio
from aiohttp import web

from services.common.http import Client
from services.common.settings import Settings, parse
from services.doctor.findings import Finding
from services.doctor.providers import ask_all
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


async def test_models_and_profiles_are_listed(bedrock: Bedrock):
    providers = {"bedrock": settings(bedrock.url).providers["bedrock"]}
    async with Client(5) as client:
        listed = await discovery.learn(client, providers)
    assert {"anthropic.echo", "us.anthropic.echo"} <= set(listed["bedrock"])


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
