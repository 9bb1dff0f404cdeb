"""Export of spans, measurements and log records over OTLP, by OpenTelemetry's SDK.

A thread of the SDK sends spans in batches, so that a slow or unreachable collector does not delay
requests. Spans that do not fit into its queue are dropped, which the SDK logs. Log records are sent
in batches that their sender makes, and retries.
"""

import asyncio
import os
import socket
from collections.abc import Mapping, Sequence

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.sampling import ParentBasedTraceIdRatio
from opentelemetry.trace import (
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    TraceState,
)

from services.common.process.telemetry.conventions import SCHEMA_URL
from services.common.process.telemetry.otlp_logs import OtlpLogs
from services.common.process.telemetry.spans import Attributes, Count, Kind, LogRecord, Measure
from services.common.process.telemetry.trace_context import TraceContext
from services.common.settings import Telemetry
from services.common.version import VERSION

_NAME = "sluicegate"
_TIMEOUT_S = 5  # of each export, including the last one
_KINDS: Mapping[Kind, SpanKind] = {
    "server": SpanKind.SERVER,
    "client": SpanKind.CLIENT,
    "internal": SpanKind.INTERNAL,
}
_SECONDS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
_FIRST = (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10)
_EACH = (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5)
_TOKENS = (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216)
# Unit, description and bucket boundaries, as recommended by the semantic conventions.
_MEASURES: Mapping[Measure, tuple[str, str, tuple[float, ...]]] = {
    "http.server.request.duration": ("s", "Duration of HTTP requests.", _SECONDS),
    "gen_ai.client.inference.duration": ("s", "Duration of attempts at providers.", _SECONDS),
    "gen_ai.client.inference.operation.input_tokens": ("{token}", "Tokens of inputs.", _TOKENS),
    "gen_ai.client.inference.operation.output_tokens": ("{token}", "Tokens of outputs.", _TOKENS),
    "gen_ai.client.embeddings.duration": ("s", "Duration of embeddings.", _SECONDS),
    "gen_ai.client.embeddings.operation.input_tokens": ("{token}", "Embedded tokens.", _TOKENS),
    "gen_ai.server.time_to_first_token": ("s", "Time to the first content.", _FIRST),
    "gen_ai.server.time_per_output_token": ("s", "Time per output token after the first.", _EACH),
}
# Descriptions of the sums of tokens.
_COUNTS: Mapping[Count, str] = {
    "gen_ai.client.inference.usage.input_tokens": "Input tokens.",
    "gen_ai.client.inference.usage.output_tokens": "Output tokens.",
    "gen_ai.client.inference.usage.cache_read.input_tokens": "Input tokens read from a cache.",
    "gen_ai.client.inference.usage.cache_write.input_tokens": "Input tokens written to a cache.",
}


class OtlpTelemetry:
    """Records spans and measurements, and sends them to a collector."""

    def __init__(self, settings: Telemetry, endpoint: str, instance: str) -> None:
        """Start the export.

        Args:
            settings: telemetry settings.
            endpoint: URL of the collector's OTLP receiver for HTTP, without `/v1/…`.
            instance: id of this process, which no other process of the service ever has.
        """
        resource = Resource.create(
            {
                "service.name": settings.service_name,
                "service.version": VERSION,
                "service.instance.id": instance,
                "host.name": socket.gethostname(),
                "process.pid": os.getpid(),
            },
            SCHEMA_URL,
        )
        self._spans = TracerProvider(
            resource=resource,
            sampler=ParentBasedTraceIdRatio(settings.sample_ratio),
            shutdown_on_exit=False,
        )
        self._spans.add_span_processor(
            BatchSpanProcessor(
                OTLPSpanExporter(f"{endpoint}/v1/traces", timeout=_TIMEOUT_S),
                schedule_delay_millis=1000,
            )
        )
        readers = []
        if settings.metrics_every_s:
            exporter = OTLPMetricExporter(f"{endpoint}/v1/metrics", timeout=_TIMEOUT_S)
            every_ms = 1000 * settings.metrics_every_s
            readers.append(PeriodicExportingMetricReader(exporter, every_ms))
        self._meters = MeterProvider(readers, resource=resource, shutdown_on_exit=False)
        self._logs = OtlpLogs(f"{endpoint}/v1/logs", resource, _NAME, _TIMEOUT_S)
        self._tracer = self._spans.get_tracer(_NAME, VERSION, schema_url=SCHEMA_URL)
        meter = self._meters.get_meter(_NAME, VERSION, SCHEMA_URL)
        self._histograms = {
            name: meter.create_histogram(
                name, unit, description, explicit_bucket_boundaries_advisory=bounds
            )
            for name, (unit, description, bounds) in _MEASURES.items()
        }
        self._counters = {
            name: meter.create_counter(name, "{token}", description)
            for name, description in _COUNTS.items()
        }

    def begin(
        self, name: str, kind: Kind, parent: TraceContext | None, attributes: Attributes
    ) -> "OtlpSpan":
        """Start a span; without a `parent` it starts a trace."""
        # Explicit, since the SDK would use the context of the current task.
        context = trace.set_span_in_context(
            trace.INVALID_SPAN if parent is None else NonRecordingSpan(_remote(parent))
        )
        span = self._tracer.start_span(name, context, _KINDS[kind], attributes)
        return OtlpSpan(span)

    def record(self, measure: Measure, value: float, attributes: Attributes) -> None:
        """Record a value of a histogram: seconds, or tokens."""
        self._histograms[measure].record(value, attributes)

    def count(self, count: Count, number: int, attributes: Attributes) -> None:
        """Add a number of tokens to a sum."""
        self._counters[count].add(number, attributes)

    async def send_logs(self, records: Sequence[LogRecord]) -> bool:
        """Send log records; return whether the collector has accepted them."""
        return await asyncio.to_thread(self._logs.send, records)

    async def stop(self) -> None:
        """Export the remaining spans and measurements, within some seconds."""
        await asyncio.gather(
            asyncio.to_thread(self._logs.stop),
            asyncio.to_thread(self._spans.shutdown),
            asyncio.to_thread(self._meters.shutdown, 1000 * _TIMEOUT_S),
        )


class OtlpSpan:
    """A span of OpenTelemetry's SDK.

    Attributes:
        context: trace context to propagate to other services.
    """

    __slots__ = ("_span", "context")

    def __init__(self, span: trace.Span) -> None:
        self._span = span
        own = span.get_span_context()
        self.context = TraceContext(
            trace.format_trace_id(own.trace_id),
            trace.format_span_id(own.span_id),
            own.trace_flags.sampled,
            own.trace_state.to_header(),
        )

    def end(self, attributes: Attributes, error: str = "") -> None:
        """End the span; `error` is the type of a failure, or ""."""
        span = self._span
        if span.is_recording():
            span.set_attributes(attributes)
            if error:
                span.set_attribute("error.type", error)
                span.set_status(Status(StatusCode.ERROR))
        span.end()


def _remote(parent: TraceContext) -> SpanContext:
    return SpanContext(
        int(parent.trace_id, 16),
        int(parent.span_id, 16),
        is_remote=True,
        trace_flags=TraceFlags(TraceFlags.SAMPLED if parent.is_sampled else TraceFlags.DEFAULT),
        trace_state=TraceState.from_header([parent.state]) if parent.state else None,
    )
