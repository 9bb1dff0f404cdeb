"""Requests to providers whose base URL is wrong, and the warning at the start."""

import logging
from pathlib import Path
from typing import Any

import pytest

from services.common import http
from services.common.settings import Provider
from services.inference.models import discovery
from tests.gateway_in_process import Gateway, running_gateway, serving
from tests.grid import each_row
from tests.upstream.app import create_app
from tests.waiting import until

HELLO = [{"role": "user", "content": "Hello"}]


async def chat(gateway: Gateway, model: str) -> tuple[int, Any]:
    async with gateway.http.post(
        f"{gateway.url}/v1/chat/completions",
        json={"model": model, "messages": HELLO},
        headers=gateway.bearer(),
    ) as response:
        return response.status, await response.json()


@each_row(
    ("kind", "wrong", "right"),
    [
        ("openai", "/x", "/v1"),
        ("openai", "/v1/v1", "/v1"),
        ("openai", "/v1/chat/completions", "/v1"),
        ("anthropic", "/v1", ""),
        ("gemini", "/x", "/v1beta"),
    ],
)
async def test_the_404_of_a_request_names_the_right_one(
    tmp_path_factory: pytest.TempPathFactory,
    caplog: pytest.LogCaptureFixture,
    kind: str,
    wrong: str,
    right: str,
) -> None:
    caplog.clear()
    async with serving(create_app()) as upstream:
        section = {"kind": kind, "base_url": upstream + wrong, "api_key": "k"}
        folder: Path = tmp_path_factory.mktemp("wrong")
        with caplog.at_level(logging.WARNING):
            async with running_gateway(folder, providers={"p": section}) as gateway:

                async def is_reported() -> bool:
                    return any(
                        f"one answers at {upstream}{right}" in str(vars(record).get("problem"))
                        for record in caplog.records
                    )

                await until(is_reported)
                status, body = await chat(gateway, "p/echo")
    assert status == 404
    assert body["error"]["code"] == "model_not_found"
    # The address is of the operator's own network: callers read its path alone.
    assert "the operator must set providers.p.base_url" in body["error"]["message"]
    assert upstream not in body["error"]["message"]


async def test_a_right_base_url_is_asked_for_no_other() -> None:
    async with serving(create_app()) as upstream:
        async with http.Client(5) as client:
            right = Provider(kind="openai", base_url=f"{upstream}/v1")
            assert await discovery.answering_base_url(client, right, {}) == ""
            wrong = Provider(kind="openai", base_url=f"{upstream}/x")
            assert await discovery.answering_base_url(client, wrong, {}) == f"{upstream}/v1"
            other = Provider(kind="openai", base_url=f"{upstream}/v1", api_key_env="NO_KEY")
            assert await discovery.answering_base_url(client, other, {}) == ""
