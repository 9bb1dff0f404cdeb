"""Health, readiness and metrics, for the operator and for callers."""

import pytest

from tests.gateway_in_process import running_gateway

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def seen(gateway, path: str, **options):
    async with gateway.http.get(gateway.url + path, **options) as answer:
        return answer.status, await answer.text()


async def shown(gateway, path: str):
    async with gateway.http.get(gateway.metrics_url + path) as answer:
        return answer.status, await answer.text()


async def test_health_readiness_and_descriptions_need_no_key(gateway):
    for path in ("/healthz", "/readyz", "/openapi.json", "/docs"):
        status, body = await seen(gateway, path)
        assert status == 200, body


async def test_a_model_that_keeps_failing_shows(tmp_path):
    async with running_gateway(tmp_path, limits={"breaker_failures": 1}) as gateway:
        body = {
            "model": "openai/fail-500",
            "fallback": "disabled",
            "messages": [{"role": "user", "content": "Hi"}],
        }
        assert '"breakers": {}' in (await shown(gateway, "/readyz?verbose"))[1]
        address = f"{gateway.url}/beta/v1/chat/completions"
        async with gateway.http.post(address, headers=gateway.bearer(), json=body) as answer:
            assert answer.status == 502
        assert '"openai/fail-500": "open"' in (await shown(gateway, "/readyz?verbose"))[1]
        _, metrics = await shown(gateway, "/metrics")
        assert 'gateway_breaker_open{model="fail-500",provider="openai"} 1.0' in metrics
        assert "gateway_upstream_live_calls 0.0" in metrics


async def test_operations_have_a_listener_of_their_own(gateway):
    for path in ("/healthz", "/readyz", "/readyz?verbose", "/metrics"):
        assert (await shown(gateway, path))[0] == 200
    for path in ("/openapi.json", "/beta/v1/models"):
        status, body = await shown(gateway, path)
        assert (status, "unknown_path" in body) == (404, True)


@pytest.mark.parametrize("path", ["/metrics", "/metrics/", "/%6detrics"])
async def test_metrics_are_unknown_where_callers_ask(gateway, path):
    for headers in ({}, {"X-Forwarded-For": "127.0.0.1"}):
        status, body = await seen(gateway, path, headers=headers)
        assert (status, "unknown_path" in body) == (404, True)


@pytest.mark.parametrize("query", ["verbose", "verbose=1", "%76erbose"])
async def test_readiness_shows_callers_no_details(gateway, query):
    assert await seen(gateway, f"/readyz?{query}") == (200, '{"status": "ready"}')


@pytest.mark.parametrize("path", ["/beta", "/beta/v1", "/coding", "/coding/v1", "/coding/"])
async def test_the_head_of_a_base_address_is_there(gateway, path):
    async with gateway.http.head(gateway.url + path) as answer:
        assert answer.status == 200
