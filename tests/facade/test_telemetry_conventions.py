"""Spans and measurements against lists from OpenTelemetry's semantic conventions.

Spans and metrics of generative AI (0.1.0, `docs/gen-ai` of
https://github.com/open-telemetry/semantic-conventions-genai), HTTP server spans (1.45), resources:
https://opentelemetry.io/docs/specs/semconv/. What the conventions do not name begins with
`gateway.`.
"""

import pytest
from opentelemetry.proto.common.v1.common_pb2 import ArrayValue

from services.common.process.telemetry.conventions import provider_name, server_attributes
from services.common.settings.presets import PRESETS
from services.common.version import VERSION
from tests.facade.collector import Collector, attributes
from tests.gateway_in_process import running_gateway, serving
from tests.grid import each_row
from tests.upstream.app import create_app

# The attributes that they name, of those that a gateway could know, with the type of the value.
NAMED = {
    "enduser.id": str,
    "error.type": str,
    "gen_ai.conversation.id": str,
    "gen_ai.operation.name": str,
    "gen_ai.provider.name": str,
    "gen_ai.request.max_tokens": int,
    "gen_ai.request.model": str,
    "gen_ai.response.finish_reasons": list,
    "gen_ai.response.id": str,
    "gen_ai.response.model": str,
    "gen_ai.tool.call.id": str,
    "gen_ai.tool.name": str,
    "gen_ai.usage.cache_read.input_tokens": int,
    "gen_ai.usage.cache_write.input_tokens": int,
    "gen_ai.usage.input_tokens": int,
    "gen_ai.usage.output_tokens": int,
    "gen_ai.usage.reasoning.output_tokens": int,
    "http.request.method": str,
    "http.response.status_code": int,
    "http.route": str,
    "server.address": str,
    "server.port": int,
    "url.path": str,
    "url.scheme": str,
}
OPERATIONS = {
    *("chat", "create_agent", "embeddings", "execute_tool", "generate_content", "invoke_agent"),
    *("invoke_workflow", "retrieval", "text_completion"),
}
PROVIDERS = {
    *("anthropic", "aws.bedrock", "azure.ai.inference", "azure.ai.openai", "cohere", "deepseek"),
    *("gcp.gemini", "gcp.gen_ai", "gcp.vertex_ai", "groq", "ibm.watsonx.ai", "mistral_ai"),
    *("openai", "perplexity", "x_ai"),
}
# Presets that the conventions have no value for.
WITHOUT_A_VALUE = {
    *("cerebras", "dashscope", "fireworks", "github", "huggingface", "minimax", "moonshot"),
    *("nvidia", "openrouter", "sambanova", "together", "zai"),
}
OF_A_SERVER = {"http.request.method", "http.route", "url.path", "url.scheme"}
OF_A_MODEL = {
    *("gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.request.model"),
    *("server.address", "server.port"),
}
INFERENCE, EMBEDDINGS = "gen_ai.client.inference", "gen_ai.client.embeddings"
MEASURES = {
    *("http.server.request.duration", f"{INFERENCE}.duration", f"{EMBEDDINGS}.duration"),
    *(f"{INFERENCE}.operation.input_tokens", f"{INFERENCE}.operation.output_tokens"),
    *(f"{EMBEDDINGS}.operation.input_tokens", "gen_ai.server.time_to_first_token"),
    "gen_ai.server.time_per_output_token",
}
SUMS = {f"{INFERENCE}.usage.input_tokens", f"{INFERENCE}.usage.output_tokens"}


@pytest.fixture
async def collector(monkeypatch, tmp_path):
    """Return a collector that a gateway has sent requests of each kind to."""
    monkeypatch.setattr("services.common.process.telemetry.otlp._TIMEOUT_S", 60)
    collector = Collector()
    async with serving(collector.app) as url:
        environ = {"OTEL_EXPORTER_OTLP_ENDPOINT": url}
        async with running_gateway(tmp_path, create_app(), environ=environ) as gateway:
            for provider in ("openai", "anthropic", "gemini"):
                for stream in (False, True):
                    message = {"role": "user", "content": "Hello"}
                    body = {"model": f"{provider}/echo", "messages": [message], "stream": stream}
                    await ask(gateway, "chat/completions", body)
            failing = {"model": "openai/fail-500", "messages": [message], "fallback": "disabled"}
            await ask(gateway, "chat/completions", failing)
            await ask(gateway, "embeddings", {"model": "openai/embed", "input": "Hello"})
    return collector


async def ask(gateway, path, body):
    address = f"{gateway.url}/beta/v1/{path}"
    async with gateway.http.post(address, json=body, headers=gateway.bearer()) as answer:
        await answer.read()


async def test_what_is_recorded_is_what_the_conventions_name(collector):
    points = [point for of_measure in collector.points.values() for point in of_measure]
    for recorded in [*collector.spans, *points]:
        for name, value in attributes(recorded).items():
            if not name.startswith("gateway."):
                is_list = isinstance(value, ArrayValue)
                assert NAMED[name] is list if is_list else isinstance(value, NAMED[name]), name
    assert set(collector.points) == MEASURES
    assert set(collector.sums) == SUMS


async def test_spans_have_what_is_required(collector):
    servers = [span for span in collector.spans if span.kind == span.SPAN_KIND_SERVER]
    clients = [span for span in collector.spans if span.kind == span.SPAN_KIND_CLIENT]
    assert len(servers) == len(clients) == 8
    for span in servers:
        told = attributes(span)
        assert set(told) >= OF_A_SERVER | {"http.response.status_code"}
        assert span.name == f"{told['http.request.method']} {told['http.route']}"
    for span in clients:
        told = attributes(span)
        assert set(told) >= OF_A_MODEL
        assert told["gen_ai.operation.name"] in OPERATIONS
        assert told["server.address"] == "127.0.0.1"
        assert told["gen_ai.provider.name"] in PROVIDERS
        assert span.name == f"{told['gen_ai.operation.name']} {told['gen_ai.request.model']}"
        has_failed = span.status.code == span.status.STATUS_CODE_ERROR
        assert has_failed == ("error.type" in told)
        if told["gen_ai.operation.name"] == "chat" and not has_failed:
            assert told["gen_ai.usage.input_tokens"] > 0
            assert told["gen_ai.response.id"]
            reasons = told["gen_ai.response.finish_reasons"].values
            assert [one.string_value for one in reasons] == ["stop"]
    assert {attributes(span)["gen_ai.provider.name"] for span in clients} == {
        "openai",
        "anthropic",
        "gcp.gemini",
    }
    assert [span.name for span in clients if "embed" in span.name] == ["embeddings embed"]


async def test_senders_name_themselves(collector):
    for resource in collector.resources:
        assert resource["service.name"] == "sluicegate"
        assert resource["service.version"] == VERSION
        assert resource["service.instance.id"]
        assert resource["host.name"]
    assert collector.schema_urls == {"https://opentelemetry.io/schemas/1.45.0"}


@each_row(
    ("url", "expected"),
    [
        ("https://api.openai.com/v1", ("api.openai.com", 443)),
        ("http://vllm/v1", ("vllm", 80)),
        ("http://[::1]:8000", ("::1", 8000)),
        ("", None),
    ],
)
def test_servers_have_an_address_and_a_port(url, expected):
    names = ("server.address", "server.port")
    assert server_attributes(url) == (dict(zip(names, expected, strict=True)) if expected else {})


def test_presets_have_the_values_of_their_providers():
    for preset in PRESETS.keys() - WITHOUT_A_VALUE:
        assert provider_name(preset) in PROVIDERS, preset
    for preset in WITHOUT_A_VALUE:
        assert provider_name(preset) == preset
