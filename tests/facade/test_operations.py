"""What whoever runs the gateway can see of it."""

import pytest

from tests.running import running

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def seen(gateway, path: str):
    async with gateway.http.get(gateway.url + path) as answer:
        return answer.status, await answer.text()


async def test_health_readiness_and_descriptions_need_no_key(gateway):
    for path in ("/healthz", "/readyz", "/metrics", "/openapi.json", "/docs"):
        status, body = await seen(gateway, path)
        assert status == 200, body


async def test_a_model_that_keeps_failing_shows(tmp_path):
    async with running(tmp_path, limits={"breaker_failures": 1}) as gateway:
        body = {
            "model": "openai/fail-500",
            "fallback": "disabled",
            "messages": [{"role": "user", "content": "Hi"}],
        }
        assert '"breakers": {}' in (await seen(gateway, "/readyz?verbose"))[1]
        address = f"{gateway.url}/beta/v1/chat/completions"
        async with gateway.http.post(address, headers=gateway.bearer(), json=body) as answer:
            assert answer.status == 502
        assert '"openai/fail-500": "open"' in (await seen(gateway, "/readyz?verbose"))[1]
        _, metrics = await seen(gateway, "/metrics")
        assert 'gateway_breaker_open{model="fail-500",provider="openai"} 1.0' in metrics
        assert "gateway_upstream_live_calls 0.0" in metrics


async def test_what_is_for_the_machine_itself_is_closed_to_others(gateway, monkeypatch):
    monkeypatch.setattr("aiohttp.web.BaseRequest.remote", "192.0.2.1")
    for path in ("/metrics", "/readyz?verbose"):
        status, body = await seen(gateway, path)
        assert status == 403
        assert "metrics_host" in body
    assert (await seen(gateway, "/readyz"))[0] == 200


@pytest.mark.parametrize("path", ["/beta", "/beta/v1", "/coding", "/coding/v1"])
async def test_the_head_of_a_base_address_is_there(gateway, path):
    async with gateway.http.head(gateway.url + path) as answer:
        assert answer.status == 200
