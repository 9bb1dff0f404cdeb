"""Azure behind a gateway: access tokens, deployments, the filter's results, and the doctor."""

import logging
import os
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from email.utils import formatdate
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import pytest_asyncio
from aiohttp import web

from services.common.settings import parse
from services.doctor.findings import Finding
from services.doctor.providers import ask_all, clock
from services.inference.providers.credentials.azure import AzureSource
from tests.gateway_in_process import Gateway, running_gateway, serving
from tests.upstream.app import create_app
from tests.upstream.azure_paths import API_VERSION, KEY
from tests.upstream.log import Entry, RequestLog
from tests.upstream.vertex.tokens import IDENTITY_HEADER, Tokens

pytestmark = pytest.mark.asyncio(loop_scope="module")
QUESTION = [{"role": "user", "content": "Hello"}]


@dataclass
class Azure:
    """A gateway in front of Azure, on a machine of Azure with an identity."""

    gateway: Gateway
    log: RequestLog
    tokens: Tokens
    url: str

    async def ask(self, path: str, **body: Any) -> tuple[int, Any]:
        url, headers = f"{self.gateway.url}{path}", self.gateway.bearer()
        async with self.gateway.http.post(url, json=body, headers=headers) as response:
            return response.status, await response.json()

    async def chat(self, provider: str, **fields: Any) -> tuple[int, Any]:
        body = {"model": f"{provider}/echo", "messages": QUESTION, **fields}
        return await self.ask("/v1/chat/completions", **body)

    def last_call(self) -> Entry:
        return next(one for one in reversed(self.log.entries) if one.body is not None)


def identity(url: str) -> Mapping[str, str]:
    """Return the environment of a program of Azure that has an identity, and nothing else."""
    return {
        "IDENTITY_ENDPOINT": f"{url}/msi/token",
        "IDENTITY_HEADER": IDENTITY_HEADER,
        "AZURE_TOKEN_CREDENTIALS": "ManagedIdentityCredential",
        "AZURE_CLIENT_ID": "",
    }


def sections(url: str) -> dict[str, dict[str, Any]]:
    entra = {"kind": "openai", "credentials": "azure"}
    return {
        "azure": {**entra, "base_url": f"{url}/openai/v1"},
        "deployed": {**entra, "base_url": f"{url}/openai", "api_version": API_VERSION},
        "keyed": {
            **{"kind": "openai", "base_url": url, "api_key": KEY},
            "api_version": API_VERSION,
        },
        "foundry": {
            **{"kind": "anthropic", "base_url": f"{url}/anthropic"},
            "credentials": "azure",
        },
    }


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def azure(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Azure]:
    log, tokens = RequestLog(), Tokens()
    async with serving(create_app(log, tokens=tokens)) as url:
        folder = tmp_path_factory.mktemp("azure")
        with patch.dict(os.environ, identity(url)):
            async with running_gateway(folder, url, providers=sections(url)) as gateway:
                yield Azure(gateway, log, tokens, url)


async def test_tokens_of_an_identity_whole_and_streamed(
    azure: Azure, caplog: pytest.LogCaptureFixture
):
    with caplog.at_level(logging.DEBUG):
        status, answer = await azure.chat("azure")
    assert (status, answer["choices"][0]["message"]["content"]) == (
        200,
        'Sandbox echo: you said "Hello".',
    )
    # The results of Azure's filter, for the prompt and for the answer.
    assert answer["prompt_filter_results"] and answer["choices"][0]["content_filter_results"]
    assert azure.last_call().path == "/openai/v1/chat/completions"
    assert azure.tokens.issued
    assert not any(token in caplog.text for token in azure.tokens.issued)
    url, headers = f"{azure.gateway.url}/v1/chat/completions", azure.gateway.bearer()
    body = {"model": "azure/echo", "messages": QUESTION, "stream": True}
    async with azure.gateway.http.post(url, json=body, headers=headers) as response:
        streamed = await response.text()
    assert "prompt_filter_results" in streamed and "content_filter_results" in streamed


async def test_deployments_with_a_key_and_with_a_token(azure: Azure):
    for provider in ("keyed", "deployed"):
        status, answer = await azure.chat(provider)
        assert status == 200, answer
        sent = azure.last_call()
        assert sent.path == "/openai/deployments/echo/chat/completions"
        assert ("api-key" in sent.headers) == (provider == "keyed")
        assert ("authorization" in sent.headers) == (provider == "deployed")
        status, answer = await azure.ask("/v1/embeddings", model=f"{provider}/embed", input="one")
        assert status == 200, answer
        assert azure.last_call().path == "/openai/deployments/embed/embeddings"


async def test_claude_in_foundry(azure: Azure):
    status, answer = await azure.chat("foundry")
    assert status == 200, answer
    sent = azure.last_call()
    assert sent.path == "/anthropic/v1/messages"
    assert "authorization" in sent.headers and "x-api-key" not in sent.headers


async def test_a_refused_token_is_an_error_of_the_gateway(azure: Azure):
    kept = dict(azure.tokens.issued)
    azure.tokens.issued.clear()
    status, answer = await azure.chat("azure")
    azure.tokens.issued.update(kept)
    assert (status, answer["error"]["code"]) == (502, "upstream_auth")


async def finding(url: str, name: str = "azure") -> Finding:
    providers = {name: sections(url)[name]}
    settings = parse({"discovery": {"enabled": False}, "providers": providers}, "test")
    checks = await ask_all(settings, os.environ)
    (check,) = [one.finding for one in checks if name in one.finding.check]
    return check


async def test_the_doctor_tries_the_identity(azure: Azure):
    for name in ("azure", "deployed"):
        assert (await finding(azure.url, name)).message == "reachable; the credentials are valid"
    assert (await finding(azure.url, "keyed")).message == "reachable; the API key is valid"
    wrong = {"IDENTITY_HEADER": "wrong"}
    with patch.dict(os.environ, wrong):
        missing = await finding(azure.url)
    assert "no Azure credentials" in missing.message and "az login" in missing.advice


async def test_the_doctor_says_that_the_clock_is_off(azure: Azure):
    async def late(_: web.Request, response: web.StreamResponse) -> None:
        response.headers["date"] = formatdate(time.time() + 400, usegmt=True)

    app = create_app(RequestLog(), tokens=azure.tokens)
    app.on_response_prepare.append(late)
    async with serving(app) as url:
        providers = {"azure": sections(url)["azure"]}
        settings = parse({"discovery": {"enabled": False}, "providers": providers}, "test")
        checks = await ask_all(settings, os.environ)
    (ahead_s,) = [one.ahead_s for one in checks if "azure" in one.finding.check]
    said = clock({"provider azure": ahead_s or 0})
    assert (said.status, "behind the clock" in said.message) == ("failure", True), said
    refusal = "AADSTS700024: Client assertion is not within its valid time range."
    assert "clock" in AzureSource("scope").explain(ValueError(refusal))


async def test_what_the_content_filter_found_is_in_the_error(tmp_path: Path):
    findings = {"hate": {"filtered": True, "severity": "high"}}
    inner = {"code": "ResponsibleAIPolicyViolation", "content_filter_result": findings}
    error = {
        **{"message": "The prompt was filtered.", "type": None, "param": "prompt", "status": 400},
        **{"code": "content_filter", "innererror": {**inner, "note": "Some text of a server."}},
    }

    async def serve(request: web.Request) -> web.Response:
        return web.json_response({"error": error}, status=400)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", serve)
    async with serving(app) as url:
        provider = {"kind": "openai", "base_url": f"{url}/v1", "api_key": "k"}
        async with running_gateway(tmp_path, url, providers={"azure": provider}) as gateway:
            body = {"model": "azure/gpt", "messages": [{"role": "user", "content": "Hi"}]}
            address = f"{gateway.url}/v1/chat/completions"
            async with gateway.http.post(address, json=body, headers=gateway.bearer()) as answer:
                shown = (await answer.json())["error"]
    assert (answer.status, shown["code"]) == (400, "content_filter")
    assert shown["innererror"] == inner
