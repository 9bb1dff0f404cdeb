"""Vertex AI behind a gateway: tokens, Gemini and Claude there, vectors, and the doctor."""

import asyncio
import json
import logging
import os
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import pytest_asyncio
from anthropic import AsyncAnthropic
from openai import AsyncOpenAI

from services.common.http import Client
from services.common.settings import Settings, parse
from services.doctor.findings import Finding
from services.doctor.providers import ask_all
from services.inference.models import discovery
from tests.gateway_in_process import Gateway, running_gateway, serving
from tests.upstream.app import create_app
from tests.upstream.log import Entry, RequestLog
from tests.upstream.vertex.tokens import ServiceAccount, Tokens

pytestmark = pytest.mark.asyncio(loop_scope="module")
QUESTION: Any = [{"role": "user", "content": "Hello"}]
ANSWER = 'Sandbox echo: you said "Hello".'
CLAUDE = "vertex/claude-echo@20250929"


@dataclass
class Vertex:
    """A gateway in front of Vertex AI, with a service account."""

    gateway: Gateway
    log: RequestLog
    tokens: Tokens
    url: str
    file: Path
    openai: AsyncOpenAI
    anthropic: AsyncAnthropic

    def last_call(self) -> Entry:
        return next(entry for entry in reversed(self.log.entries) if "/projects/" in entry.path)


def section(url: str, file: Path | None = None, **fields: Any) -> dict[str, Any]:
    own = {"credentials_file": str(file)} if file else {}
    return {"kind": "vertex", "base_url": url, "project": "my-project", **own, **fields}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def vertex(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Vertex]:
    folder = tmp_path_factory.mktemp("vertex")
    log, tokens, account = RequestLog(), Tokens(), ServiceAccount()
    async with serving(create_app(log, tokens=tokens, account=account)) as url:
        file = folder / "account.json"
        file.write_text(account.file(f"{url}/token"))
        providers = {
            "vertex": section(url, file),
            "eu": section(url, file, region="europe-west1"),
        }
        async with running_gateway(folder, url, providers=providers) as gateway:
            async with (
                AsyncOpenAI(base_url=f"{gateway.url}/v1", api_key=gateway.key) as openai,
                AsyncAnthropic(base_url=gateway.url, api_key=gateway.key) as anthropic,
            ):
                yield Vertex(gateway, log, tokens, url, file, openai, anthropic)


async def test_gemini_over_chats(vertex: Vertex, caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.DEBUG):
        made = await vertex.openai.chat.completions.create(model="vertex/echo", messages=QUESTION)
    assert made.choices[0].message.content == ANSWER
    sent = vertex.last_call()
    models = "/v1/projects/my-project/locations/global/publishers/google/models"
    assert sent.path == f"{models}/echo:generateContent"
    assert vertex.tokens.asked and not any(one in caplog.text for one in vertex.tokens.issued)
    assert "private_key" not in caplog.text


async def test_claude_over_messages_whole_and_streamed(vertex: Vertex):
    client = vertex.anthropic
    fields: Any = {"model": CLAUDE, "max_tokens": 100, "messages": QUESTION}
    whole = await client.messages.create(**fields, extra_body={"top_k": 3})
    assert whole.content[0].to_dict()["text"] == ANSWER
    sent = vertex.last_call()
    assert sent.path.endswith("/publishers/anthropic/models/claude-echo@20250929:rawPredict")
    # Verbatim: what the caller sent, with the version in place of the model.
    assert sent.body == {
        "anthropic_version": "vertex-2023-10-16",
        **{"max_tokens": 100, "messages": QUESTION, "top_k": 3},
    }
    async with client.messages.stream(**fields) as stream:
        assert await stream.get_final_text() == ANSWER
    assert vertex.last_call().path.endswith(":streamRawPredict")
    counted = await client.messages.count_tokens(model=CLAUDE, messages=QUESTION)
    assert counted.input_tokens > 0
    assert vertex.last_call().path.endswith("/models/count-tokens:rawPredict")


async def test_other_dialects_reach_both_models(vertex: Vertex):
    client = vertex.openai
    chat = await client.chat.completions.create(model=CLAUDE, messages=QUESTION)
    assert chat.choices[0].message.content == ANSWER
    answer = await client.responses.create(model=CLAUDE, input="Hello")
    assert answer.output_text == ANSWER
    counted = await vertex.anthropic.messages.count_tokens(model="vertex/echo", messages=QUESTION)
    assert counted.input_tokens > 0
    assert vertex.last_call().path.endswith("echo:countTokens")


@pytest.mark.parametrize(
    ("model", "inputs", "methods"),
    [
        ("embed", ["one", "two"], ["predict"]),
        ("embed", ["x" * 15_000, "y" * 15_000], ["predict", "predict"]),
        ("gemini-embed", ["one"], ["embedContent"]),
        ("gemini-embed", ["one", "two"], ["batchEmbedContents"]),
    ],
)
async def test_vectors(vertex: Vertex, model: str, inputs: list[str], methods: list[str]):
    vertex.log.clear()
    made = await vertex.openai.embeddings.create(
        model=f"vertex/{model}", input=inputs, dimensions=8, encoding_format="float"
    )
    assert [len(one.embedding) for one in made.data] == [8] * len(inputs)
    assert made.usage.prompt_tokens == len(inputs)
    sent = [entry for entry in vertex.log.entries if "/projects/" in entry.path]
    assert [one.path.rpartition(":")[2] for one in sent] == methods
    assert '"autoTruncate": false' in json.dumps(sent[0].body)


async def test_a_region_is_in_the_path(vertex: Vertex):
    await vertex.openai.chat.completions.create(model="eu/echo", messages=QUESTION)
    assert "/locations/europe-west1/" in vertex.last_call().path


async def test_models_of_both_makers_are_listed(vertex: Vertex):
    providers = settings(vertex.url, vertex.file).providers
    async with Client(5) as client:
        listed = (await discovery.learn(client, providers))["vertex"]
    assert any(name.startswith("gemini-") for name in listed)
    assert any(name.startswith("claude-") for name in listed)


async def test_tokens_are_renewed_without_a_failed_request(vertex: Vertex, tmp_path: Path):
    tokens = Tokens(lasts_s=45)
    account = ServiceAccount()
    async with serving(create_app(tokens=tokens, account=account)) as url:
        file = tmp_path / "account.json"
        file.write_text(account.file(f"{url}/token"))
        providers = {"vertex": section(url, file)}
        async with running_gateway(tmp_path, url, providers=providers) as gateway:

            async def ask() -> int:
                body = {"model": "vertex/gemini-echo", "messages": QUESTION}
                path = f"{gateway.url}/v1/chat/completions"
                headers = gateway.bearer()
                async with gateway.http.post(path, json=body, headers=headers) as response:
                    await response.read()
                    return response.status

            assert await asyncio.gather(*(ask() for _ in range(20))) == [200] * 20
            # The list of models, or the first request: one token for all.
            assert tokens.asked == 1
            tokens.issued.clear()  # revoked: the provider refuses the token
            assert await ask() == 502


@contextmanager
def metadata_server(url: str) -> Iterator[None]:
    """Point google-auth to a metadata server at an address, and to nothing else."""
    nothing = {"GOOGLE_APPLICATION_CREDENTIALS": "", "CLOUDSDK_CONFIG": "/nonexistent"}
    host = url.removeprefix("http://")
    with (
        patch.dict(os.environ, nothing | {"GCE_METADATA_IP": host, "GCE_METADATA_HOST": host}),
        patch("google.auth.compute_engine._metadata._GCE_METADATA_HOST", host),
    ):
        yield


def settings(url: str, file: Path | None = None) -> Settings:
    providers = {"vertex": section(url, file)}
    return parse({"discovery": {"enabled": False}, "providers": providers}, "test")


async def finding(url: str, file: Path | None = None) -> Finding:
    checks = await ask_all(settings(url, file), os.environ)
    (check,) = [one.finding for one in checks if "vertex" in one.finding.check]
    return check


async def test_the_metadata_server_gives_tokens(vertex: Vertex):
    with metadata_server(vertex.url):
        assert (await finding(vertex.url)).message == "reachable; the credentials are valid"
    assert any(token.startswith("ya29.m") for token in vertex.tokens.issued)


async def test_the_doctor_tries_the_credentials(vertex: Vertex, tmp_path: Path):
    assert (await finding(vertex.url, vertex.file)).message == (
        "reachable; the credentials are valid"
    )
    other = tmp_path / "other.json"
    other.write_text(ServiceAccount().file(f"{vertex.url}/token"))
    wrong = await finding(vertex.url, other)
    assert "Google rejected the credentials (invalid_grant)" in wrong.message
    assert "GOOGLE_APPLICATION_CREDENTIALS" in wrong.advice


async def test_the_doctor_says_that_the_clock_is_off(tmp_path: Path):
    account = ServiceAccount()
    late = Tokens(now=lambda: time.time() + 400)
    async with serving(create_app(tokens=late, account=account)) as url:
        file = tmp_path / "account.json"
        file.write_text(account.file(f"{url}/token"))
        check = await finding(url, file)
    assert "clock" in check.message and "NTP" in check.advice
