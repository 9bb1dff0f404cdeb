"""The access log has a line for each request: user, model, tokens, and why it failed."""

import logging
from typing import Any

import pytest

from tests.gateway_in_process import Gateway
from tests.waiting import until

pytestmark = pytest.mark.asyncio(loop_scope="module")

CHAT = "/beta/v1/chat/completions"
MESSAGES = "/beta/v1/messages"
HELLO = [{"role": "user", "content": "Hello"}]


@pytest.fixture
def line(gateway: Gateway, caplog: pytest.LogCaptureFixture) -> Any:
    """Return a function that asks, and returns the answer's body and its line."""
    caplog.set_level(logging.INFO, "facade.access")

    async def ask(
        path: str, body: dict[str, Any] | None = None, headers: dict[str, str] | None = None
    ) -> tuple[str, dict[str, Any]]:
        method = "GET" if body is None else "POST"
        request_headers = (
            gateway.bearer() | {"anthropic-version": "x"} if headers is None else headers
        )
        async with gateway.http.request(
            method, gateway.url + path, json=body, headers=request_headers
        ) as answer:
            text, asked = await answer.text(), answer.headers["x-request-id"]

        def written() -> list[dict[str, Any]]:
            told = [vars(one) for one in caplog.records if one.name == "facade.access"]
            return [one for one in told if one["request_id"] == asked]

        (told,) = await until(written)
        assert gateway.key not in repr(told)
        return text, told

    return ask


@pytest.mark.parametrize("path", [CHAT, MESSAGES, "/coding/v1/messages"])
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("model", ["sandbox/echo", "openai/echo", "anthropic/echo"])
async def test_a_line_names_user_model_and_tokens(line, path, stream, model):
    body = {"model": model, "max_tokens": 50, "messages": HELLO, "stream": stream}
    _, record = await line(path, body)
    assert record["status"] == 200
    assert record["user"].startswith("user_")
    assert record["key_id"].startswith("key_")
    assert (record["model"], record["served_model"]) == (model, model)
    assert record["provider"] == model.partition("/")[0]
    assert record["input_tokens"] > 0
    assert record["output_tokens"] > 0
    assert not {"path", "error"} & record.keys()


async def test_a_line_names_the_fallback_model(line):
    body = {
        "model": "sandbox/fail-500",
        "messages": HELLO,
        "fallback": "enabled",
        "fallback_config": {
            "strategy": {"mode": "sequential"},
            "steps": [{"step_id": "s", "model": "openai/echo"}],
        },
    }
    text, record = await line(CHAT, body)
    assert record["status"] == 200, text
    assert (record["model"], record["served_model"]) == ("sandbox/fail-500", "openai/echo")


async def test_counting_returns_the_tokens(line):
    body = {"model": "sandbox/echo", "messages": HELLO}
    _, record = await line(f"{MESSAGES}/count_tokens", body)
    assert record["served_model"] == "sandbox/echo"
    assert record["input_tokens"] > 0


@pytest.mark.parametrize("stream", [False, True])
async def test_a_line_has_the_reason_of_a_failure(line, stream):
    body = {
        "model": "sandbox/fail-500",
        "messages": HELLO,
        "stream": stream,
        "fallback": "disabled",
    }
    _, record = await line(CHAT, body)
    assert (record["status"], record["error"]) == (502, "upstream_error")
    assert record["model"] == "sandbox/fail-500"
    assert "served_model" not in record


async def test_a_broken_stream_reports_the_cause(line):
    body = {"model": "sandbox/cut", "messages": HELLO, "stream": True, "fallback": "disabled"}
    text, record = await line(CHAT, body)
    assert "error" in text
    assert (record["status"], record["error"]) == (200, "upstream_connection")


async def test_a_path_that_leads_nowhere_is_an_error(line, gateway):
    _, record = await line("/v2/responses?key=secret")
    assert (record["status"], record["route"]) == (404, "unknown")
    assert (record["path"], record["error"]) == ("/v2/responses", "unknown_path")
    _, record = await line(f"/{gateway.key}/v1/models")
    assert record["path"] == "/gw-…/v1/models"
    _, record = await line("/a%0Ab%1B%5B31m%E2%80%AEc/" + "x" * 1000)
    assert record["path"].startswith(r"/a\nb\x1b[31m\u202ec/xxx")
    assert len(record["path"]) < 300
    assert record["path"].isprintable()


async def test_a_caller_without_a_key_is_nobody(line):
    _, record = await line(MESSAGES, {"model": "sandbox/echo"}, headers={})
    assert (record["status"], record["error"]) == (401, "invalid_api_key")
    assert not {"user", "key_id", "model", "path"} & record.keys()
