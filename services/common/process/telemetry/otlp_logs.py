"""Export of log records over OTLP, by OpenTelemetry's SDK."""

from collections.abc import Mapping, Sequence
from functools import cached_property

from opentelemetry import trace
from opentelemetry._logs import LogRecord as SdkRecord
from opentelemetry._logs import SeverityNumber
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.sdk._logs import ReadableLogRecord
from opentelemetry.sdk._logs.export import LogRecordExportResult
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from services.common.process.telemetry.conventions import SCHEMA_URL
from services.common.process.telemetry.spans import LogRecord, Severity
from services.common.process.telemetry.trace_context import TraceContext
from services.common.version import VERSION

_NS_PER_MS = 1_000_000
_SEVERITIES: Mapping[Severity, SeverityNumber] = {
    "information": SeverityNumber.INFO,
    "warning": SeverityNumber.WARN,
    "error": SeverityNumber.ERROR,
}


class OtlpLogs:
    """Sends log records to a collector. Its methods block.

    Args:
        url: the collector's URL for logs.
        resource: the process.
        name: name of the instrumentation scope.
        timeout_s: timeout of sending a batch, with the SDK's own attempts.
    """

    def __init__(self, url: str, resource: Resource, name: str, timeout_s: float) -> None:
        self._url = url
        self._resource = resource
        self._scope = InstrumentationScope(name, VERSION, SCHEMA_URL)
        self._timeout_s = timeout_s

    @cached_property
    def _exporter(self) -> OTLPLogExporter:
        return OTLPLogExporter(self._url, timeout=self._timeout_s)

    def send(self, records: Sequence[LogRecord]) -> bool:
        """Send log records; return whether the collector has accepted them."""
        return self._exporter.export(list(map(self._readable, records))) is (
            LogRecordExportResult.SUCCESS
        )

    def stop(self) -> None:
        """Close the connections."""
        if "_exporter" in vars(self):
            self._exporter.shutdown()  # type: ignore[no-untyped-call]  # no types there

    def _readable(self, record: LogRecord) -> ReadableLogRecord:
        time_ns = record.time_ms * _NS_PER_MS
        return ReadableLogRecord(
            SdkRecord(
                timestamp=time_ns,
                observed_timestamp=time_ns,
                context=trace.set_span_in_context(_span(record.trace)),
                severity_text=_SEVERITIES[record.severity].name,
                severity_number=_SEVERITIES[record.severity],
                body=record.body,
                attributes=record.attributes,
                event_name=record.event_name,
            ),
            self._resource,
            self._scope,
        )


def _span(context: TraceContext | None) -> trace.Span:
    """Return a span with a context, which is not recorded."""
    if context is None:
        return trace.INVALID_SPAN
    flags = trace.TraceFlags.SAMPLED if context.is_sampled else trace.TraceFlags.DEFAULT
    return trace.NonRecordingSpan(
        trace.SpanContext(
            int(context.trace_id, 16),
            int(context.span_id, 16),
            is_remote=False,
            trace_flags=trace.TraceFlags(flags),
        )
    )
