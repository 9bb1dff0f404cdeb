"""How a provider's failure reaches whoever can mend it, and what its caller is told."""

import logging
from typing import Any

import orjson
import pytest

from services.common.process.logs import JsonFormatter
from tests.facade.sockets import refusing_port
from tests.gateway_in_process import running_gateway

CHAT = "/beta/v1/chat/completions"


@pytest.mark.parametrize("stream", [False, True])
async def test_a_refused_connection_is_reported_with_its_request(tmp_path, caplog, stream):
    caplog.handler.setFormatter(JsonFormatter())
    caplog.set_level(logging.WARNING)
    with refusing_port() as port:
        async with running_gateway(tmp_path, f"http://127.0.0.1:{port}") as gateway:
            body: dict[str, Any] = {
                "model": "openai/gpt-x",
                "messages": [{"role": "user", "content": "my words"}],
                "stream": stream,
                "fallback": "disabled",
            }
            async with gateway.http.post(
                gateway.url + CHAT, json=body, headers=gateway.bearer()
            ) as answer:
                error = (await answer.json())["error"]
    assert answer.status == 502
    assert error["message"] == "the server of the provider openai refused the connection"
    assert str(port) not in orjson.dumps(error).decode()
    lines = [orjson.loads(line) for line in caplog.text.splitlines()]
    (line,) = [line for line in lines if line["message"] == "a provider failed"]
    assert line["level"] == "warning"
    assert line["request_id"] == answer.headers["x-request-id"]
    assert (line["provider"], line["model"]) == ("openai", "openai/gpt-x")
    assert (line["reason"], line["status"]) == ("upstream_connection", None)
    assert line["cause"].startswith(f"127.0.0.1:{port}: ")
    assert gateway.key not in caplog.text
    assert "my words" not in caplog.text


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("model", ["openai/fail-context", "anthropic/fail-context"])
async def test_a_too_long_prompt_makes_agents_compact(tmp_path, model, stream):
    body: dict[str, Any] = {
        "model": model,
        "max_tokens": 10,
        "messages": [{"role": "user", "content": "Hi"}],
        "stream": stream,
    }
    async with running_gateway(tmp_path) as gateway:
        address, headers = gateway.url, gateway.bearer()
        async with gateway.http.post(
            f"{address}/coding/v1/messages", json=body, headers=headers
        ) as answer:
            error = (await answer.json())["error"]
        assert (answer.status, error["type"]) == (400, "invalid_request_error")
        assert error["message"].startswith("prompt is too long")
        async with gateway.http.post(address + CHAT, json=body, headers=headers) as answer:
            error = (await answer.json())["error"]
        assert (answer.status, error["code"]) == (400, "context_length_exceeded")
