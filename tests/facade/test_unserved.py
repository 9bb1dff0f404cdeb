"""Methods of the official clients that are not served: 501, and what to do instead."""

from typing import Any

import anthropic
import openai
import pytest

from tests.gateway_in_process import Gateway
from tests.grid import each_row

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_openais_client_gets_501_and_advice_at_once(gateway: Gateway) -> None:
    client = openai.AsyncOpenAI(api_key=gateway.key, base_url=f"{gateway.url}/v1", max_retries=5)
    with pytest.raises(openai.InternalServerError) as raised:
        await client.evals.list()
    await client.close()
    assert raised.value.status_code == 501
    assert raised.value.code == "not_implemented"
    assert "/v1/evals: the gateway does not serve this" in raised.value.message
    assert raised.value.response.headers["x-should-retry"] == "false"


async def test_anthropics_client_gets_501_and_advice(gateway: Gateway) -> None:
    client = anthropic.AsyncAnthropic(api_key=gateway.key, base_url=gateway.url)
    with pytest.raises(anthropic.InternalServerError) as raised:
        await client.beta.skills.list()
    await client.close()
    assert raised.value.status_code == 501
    body: Any = raised.value.body
    assert body["error"]["type"] == "api_error"
    assert "Run agents in your program" in body["error"]["message"]


@each_row(
    ("method", "path", "status"),
    [
        ("PUT", "/v1/chat/completions", 405),
        ("DELETE", "/v1/models/gpt-5", 501),
        ("POST", "/v1/responses/compact", 415),
        ("POST", "/v1/responses/input_tokens", 415),
        ("POST", "/v1/responses/other", 405),
        ("GET", "/v1/imagesque", 404),
        ("GET", "/images", 404),
        ("GET", "/v1/" + "a/" * 5000, 404),
    ],
)
async def test_other_paths_are_unknown(
    gateway: Gateway, method: str, path: str, status: int
) -> None:
    async with gateway.http.request(
        method, gateway.url + path, headers=gateway.bearer()
    ) as response:
        assert response.status == status, path
