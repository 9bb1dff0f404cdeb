"""Tracing of requests: their spans, and the trace context of their calls."""

from collections.abc import Mapping

from facade.http.exchange import AnswerSummary, Exchange
from facade.reports import WATCHING
from services.common.process.telemetry.conventions import provider_name
from services.common.process.telemetry.spans import Span, Telemetry
from services.common.process.telemetry.trace_context import (
    TRACEPARENT_KEY,
    TRACESTATE_KEY,
    current_trace,
    parse_trace_context,
)

_SERVER_ERRORS = 500


def begin_trace(exchange: Exchange) -> Span | None:
    """Join the trace of a request's headers, or begin one; return the span if it is recorded.

    Without a collector the caller's trace context is passed to the provider, and logged.
    """
    parent = None
    if (traceparent := exchange.headers.get(TRACEPARENT_KEY)) is not None:
        parent = parse_trace_context(traceparent, exchange.headers.get(TRACESTATE_KEY, ""))
    telemetry, settings = exchange.context.telemetry, exchange.context.settings
    span = None
    if telemetry is not None and exchange.route not in WATCHING:
        span = telemetry.begin(
            f"{exchange.method} {exchange.route}",
            "server",
            parent,
            {
                "http.request.method": exchange.method,
                "http.route": exchange.route,
                "url.path": exchange.path,
                "url.scheme": "https" if settings.server.tls_certificate else "http",
                "gateway.request_id": exchange.request_id,
            },
        )
    exchange.trace = parent if span is None else span.context
    current_trace.set(exchange.trace)
    return span


def end_trace(exchange: Exchange, span: Span, status: int, seconds: float) -> None:
    """End the span of a request, and record its duration and token counts."""
    telemetry = exchange.context.telemetry
    assert telemetry is not None, "it began the span"
    error = (exchange.failure or str(status)) if status >= _SERVER_ERRORS else ""
    details: dict[str, str | int] = {"http.response.status_code": status}
    if exchange.caller is not None:
        details["enduser.id"] = exchange.caller.user_id
    if exchange.failure is not None:
        details["gateway.error"] = exchange.failure
    names: dict[str, str] = {}
    summary = exchange.answer_summary
    if summary is not None and summary.model:
        names = {
            "gen_ai.operation.name": "embeddings" if _is_embedding(exchange) else "chat",
            "gen_ai.provider.name": provider_name(summary.provider),
            "gen_ai.request.model": exchange.model or summary.model,
            "gen_ai.response.model": summary.model,
        }
        # Readers take each span with a model for a call of it: the calls have spans of their own.
        details["gateway.model"] = names["gen_ai.request.model"]
        details["gateway.provider"] = summary.provider
    span.end(details, error)
    telemetry.record(
        "http.server.request.duration",
        seconds,
        {
            "http.request.method": exchange.method,
            "http.route": exchange.route,
            "http.response.status_code": status,
        },
    )
    if summary is None or not names:
        return
    if _is_embedding(exchange):
        telemetry.record(
            "gen_ai.client.embeddings.operation.input_tokens", summary.input_tokens, names
        )
        return
    _record_tokens(telemetry, summary, names)
    if (timing := exchange.stream_timing(seconds)) is not None:
        first, each = timing
        telemetry.record("gen_ai.server.time_to_first_token", first, names)
        if each is not None:
            telemetry.record("gen_ai.server.time_per_output_token", each, names)


def _record_tokens(telemetry: Telemetry, summary: AnswerSummary, names: Mapping[str, str]) -> None:
    """Record the tokens of an answer of a model: those of each request, and the sums."""
    read, written = summary.cache_read_tokens, summary.cache_creation_tokens
    telemetry.record("gen_ai.client.inference.operation.input_tokens", summary.input_tokens, names)
    telemetry.record(
        "gen_ai.client.inference.operation.output_tokens", summary.output_tokens, names
    )
    telemetry.count("gen_ai.client.inference.usage.input_tokens", summary.input_tokens, names)
    telemetry.count("gen_ai.client.inference.usage.output_tokens", summary.output_tokens, names)
    if read:
        telemetry.count("gen_ai.client.inference.usage.cache_read.input_tokens", read, names)
    if written:
        telemetry.count("gen_ai.client.inference.usage.cache_write.input_tokens", written, names)


def _is_embedding(exchange: Exchange) -> bool:
    return exchange.route.endswith("/embeddings")
