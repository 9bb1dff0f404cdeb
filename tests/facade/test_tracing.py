"""Traces and measurements, as an OpenTelemetry collector and providers receive them."""

import json
import logging

import pytest
from aiohttp import web
from yarl import URL

from services.common.process.logs import JsonFormatter
from services.common.process.telemetry.trace_context import TraceContext, parse_trace_context
from tests.facade.collector import Collector, attributes
from tests.gateway_in_process import Gateway, running_gateway, serving
from tests.upstream.app import create_app
from tests.waiting import until

CHAT, MESSAGES = "/beta/v1/chat/completions", "/beta/v1/messages"
SECRET = "The secret of the house is a blue door."
PARENT = TraceContext("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7", True, "vendor=a1")
UNSAMPLED = PARENT._replace(is_sampled=False)


class Upstream:
    """The sandbox as an upstream that notes the trace headers of its requests."""

    def __init__(self) -> None:
        self.traces: list[TraceContext | None] = []
        self.app = create_app()
        self.app.middlewares.append(self._note)

    @web.middleware
    async def _note(self, request, handler):
        if request.path in ("/v1/chat/completions", "/v1/messages"):
            given = request.headers.get("traceparent", "")
            self.traces.append(parse_trace_context(given, request.headers.get("tracestate", "")))
        return await handler(request)


async def ask(gateway: Gateway, path=CHAT, parent: TraceContext | None = None, **fields):
    body = {
        "model": "openai/echo",
        "max_tokens": 50,
        "messages": [{"role": "user", "content": SECRET}],
        **fields,
    }
    headers = gateway.bearer() | {
        "anthropic-version": "x",
        **dict(parent.pairs() if parent else ()),
    }
    async with gateway.http.post(gateway.url + path, json=body, headers=headers) as answer:
        await answer.read()
        return answer


@pytest.fixture
async def collector(monkeypatch):
    # What a gateway has not told within 5 s of its end is lost, on a busy machine too.
    monkeypatch.setattr("services.common.process.telemetry.otlp._TIMEOUT_S", 60)
    collector = Collector()
    async with serving(collector.app) as url:
        collector.environ = {"OTEL_EXPORTER_OTLP_ENDPOINT": url}
        yield collector


@pytest.mark.parametrize("path", [CHAT, MESSAGES])
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("parent", [None, PARENT])
async def test_a_request_is_one_trace(tmp_path, collector, path, stream, parent):
    upstream = Upstream()
    async with running_gateway(tmp_path, upstream.app, environ=collector.environ) as gateway:
        answer = await ask(gateway, path, parent, stream=stream)
    [server] = collector.named(f"POST {path}")
    [attempt] = collector.named("chat echo")
    assert attempt.parent_span_id == server.span_id
    assert server.parent_span_id.hex() == (parent.span_id if parent else "")
    if parent:
        assert server.trace_id.hex() == parent.trace_id
    # What the provider is sent continues the span of the attempt.
    [sent] = upstream.traces
    assert sent == (
        attempt.trace_id.hex(),
        attempt.span_id.hex(),
        True,
        parent.state if parent else "",
    )
    assert attempt.trace_id == server.trace_id
    told = attributes(server)
    assert told["gateway.request_id"] == answer.headers["x-request-id"]
    assert told["http.response.status_code"] == 200
    assert told["gateway.model"] == "openai/echo"
    # Whoever reads it would count the call of the model twice.
    assert not [name for name in told if name.startswith("gen_ai.")]
    of_attempt = attributes(attempt)
    assert of_attempt.pop("gen_ai.usage.input_tokens") > 0
    assert of_attempt.pop("gen_ai.usage.output_tokens") > 0
    assert of_attempt.pop("gen_ai.response.id")
    assert str(of_attempt.pop("gen_ai.response.finish_reasons")).count("stop") == 1
    assert of_attempt == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "echo",
        "server.address": "127.0.0.1",
        "server.port": URL(gateway.upstream).port,
        "gateway.step": "primary",
        "gateway.provider": "openai",
        "gateway.outcome": "served",
    }


async def test_traces_alone_go_to_langfuse(tmp_path, monkeypatch):
    collector, langfuse = Collector(), web.Application()
    langfuse.add_subapp("/api/public/otel", collector.app)
    headers = "Authorization=Basic%20cGs6c2s=,x-langfuse-ingestion-version=4"
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", headers)
    async with serving(langfuse) as url:
        telemetry = {"otlp_endpoint": f"{url}/api/public/otel", "metrics_every_s": 0}
        async with running_gateway(tmp_path, Upstream().app, telemetry=telemetry) as gateway:
            await ask(gateway)
    [attempt] = collector.named("chat echo")
    assert attributes(attempt)["gen_ai.usage.input_tokens"] > 0
    assert collector.headers["Authorization"] == "Basic cGs6c2s="
    assert collector.headers["x-langfuse-ingestion-version"] == "4"
    assert not collector.points and not collector.sums


async def test_each_attempt_is_a_span_of_the_request(tmp_path, collector):
    upstream = Upstream()
    async with running_gateway(tmp_path, upstream.app, environ=collector.environ) as gateway:
        steps = [{"step_id": "second", "model": "openai/echo"}]
        config = {"strategy": {"mode": "sequential"}, "steps": steps}
        answer = await ask(
            gateway, model="openai/fail-500", fallback="enabled", fallback_config=config
        )
    assert answer.status == 200
    [server] = collector.named(f"POST {CHAT}")
    failed = collector.named("chat fail-500")
    [served] = collector.named("chat echo")
    assert {span.parent_span_id for span in [*failed, served]} == {server.span_id}
    assert len(upstream.traces) == len(failed) + 1
    for span in failed:
        told = attributes(span)
        assert told["gateway.outcome"] == "failed"
        assert told["http.response.status_code"] == 500
        assert span.status.code == span.status.STATUS_CODE_ERROR
    assert attributes(served)["gateway.step"] == "second"


async def test_a_failed_request_names_its_error(tmp_path, collector):
    async with running_gateway(tmp_path, environ=collector.environ) as gateway:
        await ask(gateway, model="openai/fail-500", fallback="disabled")
        await ask(gateway, model="no-such-model")
    failed, refused = collector.named(f"POST {CHAT}")
    assert failed.status.code == failed.status.STATUS_CODE_ERROR
    assert attributes(failed)["error.type"]
    # A mistake of the caller's is no failure of the gateway.
    assert refused.status.code == refused.status.STATUS_CODE_UNSET
    assert attributes(refused)["http.response.status_code"] == 404


async def test_measurements(tmp_path, collector):
    async with running_gateway(tmp_path, environ=collector.environ) as gateway:
        await ask(gateway, stream=True)
        await ask(gateway)
    counts = {name: sum(one.count for one in points) for name, points in collector.points.items()}
    assert {name: sum(numbers) > 2 for name, numbers in collector.sums.items()} == {
        "gen_ai.client.inference.usage.input_tokens": True,
        "gen_ai.client.inference.usage.output_tokens": True,
    }
    assert counts == {
        "http.server.request.duration": 2,
        "gen_ai.client.inference.duration": 2,
        "gen_ai.client.inference.operation.input_tokens": 2,
        "gen_ai.client.inference.operation.output_tokens": 2,
        "gen_ai.server.time_to_first_token": 1,
        "gen_ai.server.time_per_output_token": 1,
    }


async def test_no_text_or_key_is_sent(tmp_path, collector):
    async with running_gateway(tmp_path, environ=collector.environ) as gateway:
        await ask(gateway)
        await ask(gateway, model=f"no {SECRET}")
        await ask(gateway, extra_field=SECRET, temperature=SECRET)
        key = gateway.key
    sent = repr(collector.spans) + repr(collector.points) + repr(collector.resources)
    assert SECRET not in sent.replace("no " + SECRET, "")
    assert key not in sent


async def test_a_trace_that_is_not_sampled_is_not_sent(tmp_path, collector):
    upstream = Upstream()
    async with running_gateway(tmp_path, upstream.app, environ=collector.environ) as gateway:
        await ask(gateway, parent=UNSAMPLED)
    assert collector.spans == []
    [sent] = upstream.traces
    assert sent is not None
    assert (sent.trace_id, sent.is_sampled) == (UNSAMPLED.trace_id, False)


async def test_a_collector_that_is_gone_costs_no_answer(tmp_path):
    environ = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}
    async with running_gateway(tmp_path, environ=environ) as gateway:
        answer = await ask(gateway)
    assert answer.status == 200


@pytest.mark.parametrize("stream", [False, True])
async def test_without_a_collector_the_context_goes_on(tmp_path, stream, caplog):
    caplog.set_level(logging.INFO, "facade.access")
    upstream = Upstream()
    async with running_gateway(tmp_path, upstream.app) as gateway:
        await ask(gateway, parent=PARENT, stream=stream)
        await ask(gateway, stream=stream)
        await ask(gateway, parent=PARENT, model="openai/fail-500", fallback="disabled")

        def lines():
            found = [one for one in caplog.records if one.name == "facade.access"]
            return found if len(found) == 3 else []

        with_trace, without, failed = await until(lines)
    assert upstream.traces == [PARENT, None, PARENT]
    assert with_trace.trace_id == failed.trace_id == PARENT.trace_id
    assert not hasattr(without, "trace_id")


async def test_lines_of_a_request_name_its_trace(tmp_path, caplog):
    formatter, lines = JsonFormatter(), []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(json.loads(formatter.format(record)))
    logger = logging.getLogger("services.inference")
    logger.addHandler(handler)
    try:
        async with running_gateway(tmp_path) as gateway:
            await ask(gateway, parent=PARENT, model="openai/fail-500", fallback="disabled")
    finally:
        logger.removeHandler(handler)
    failures = [line for line in lines if line["level"] in ("warning", "error")]
    assert failures
    assert {line["trace_id"] for line in failures} == {PARENT.trace_id}


async def test_what_monitoring_asks_for_is_not_recorded(tmp_path, collector):
    async with running_gateway(tmp_path, environ=collector.environ) as gateway:
        for url in (f"{gateway.metrics_url}/metrics", f"{gateway.url}/healthz"):
            async with gateway.http.get(url) as answer:
                assert answer.status == 200
    assert collector.spans == []
