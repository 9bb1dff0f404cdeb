"""Health checks and readings of metrics are no requests of callers."""

from tests.gateway_in_process import running_gateway


async def test_probes_are_counted_apart(tmp_path):
    async with running_gateway(tmp_path) as gateway:
        for path in ("/healthz", "/readyz"):
            async with gateway.http.get(gateway.url + path) as answer:
                assert answer.status == 200
        async with gateway.http.get(f"{gateway.url}/openapi.json") as answer:
            assert answer.status == 200
        async with gateway.http.get(f"{gateway.metrics_url}/metrics") as answer:
            text = await answer.text()
    assert 'gateway_http_probes_total{route="/healthz",status="200"} 1.0' in text
    assert 'gateway_http_probes_total{route="/readyz",status="200"} 1.0' in text
    assert 'gateway_http_requests_total{route="/openapi.json",status="200"} 1.0' in text
    assert 'requests_total{route="/healthz"' not in text


async def test_a_process_describes_itself(tmp_path):
    async with running_gateway(tmp_path) as gateway:
        async with gateway.http.get(f"{gateway.metrics_url}/metrics") as answer:
            text = await answer.text()
    values = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    assert [name for name in values if name.startswith("gateway_build_info{")]
    assert float(values["process_resident_memory_bytes"]) > 20_000_000
    assert float(values["process_cpu_seconds_total"]) > 0
    assert float(values["process_open_fds"]) > 3
