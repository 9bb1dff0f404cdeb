"""Spans, measurements and log records of requests, independent of their export.

Names and attributes follow OpenTelemetry's semantic conventions for HTTP and generative AI:
https://opentelemetry.io/docs/specs/semconv/gen-ai/. Texts of conversations are never recorded in
spans, and in log records only if the request log has them.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, Protocol

from services.common.process.telemetry.trace_context import TraceContext

Value = str | bool | int | float | Sequence[str]
Attributes = Mapping[str, Value]
Kind = Literal["server", "client", "internal"]
Measure = Literal[
    "http.server.request.duration",
    "gen_ai.client.inference.duration",
    "gen_ai.client.inference.operation.input_tokens",
    "gen_ai.client.inference.operation.output_tokens",
    "gen_ai.client.embeddings.duration",
    "gen_ai.client.embeddings.operation.input_tokens",
    "gen_ai.server.time_to_first_token",
    "gen_ai.server.time_per_output_token",
]


# Numbers of tokens that are summed up.
Count = Literal[
    "gen_ai.client.inference.usage.input_tokens",
    "gen_ai.client.inference.usage.output_tokens",
    "gen_ai.client.inference.usage.cache_read.input_tokens",
    "gen_ai.client.inference.usage.cache_write.input_tokens",
]
Severity = Literal["information", "warning", "error"]


class LogRecord(NamedTuple):
    """A log record of an event.

    Attributes:
        time_ms: Unix milliseconds.
        event_name: the kind of the event.
        severity: its severity.
        body: a text, or texts by name.
        attributes: its attributes.
        trace: the span in which it happened, or None.
    """

    time_ms: int
    event_name: str
    severity: Severity
    body: str | Mapping[str, str]
    attributes: Attributes
    trace: TraceContext | None


class Span(Protocol):
    """A started span."""

    @property
    def context(self) -> TraceContext:
        """The trace context to propagate to other services."""
        ...

    def end(self, attributes: Attributes, error: str = "") -> None:
        """End the span; `error` is the type of a failure, or ""."""
        ...


class Telemetry(Protocol):
    """Records spans and measurements."""

    def begin(
        self, name: str, kind: Kind, parent: TraceContext | None, attributes: Attributes
    ) -> Span:
        """Start a span; without a `parent` it starts a trace."""
        ...

    def record(self, measure: Measure, value: float, attributes: Attributes) -> None:
        """Record a value of a histogram: seconds, or tokens."""
        ...

    def count(self, count: Count, number: int, attributes: Attributes) -> None:
        """Add a number of tokens to a sum."""
        ...

    async def send_logs(self, records: Sequence[LogRecord]) -> bool:
        """Send log records; return whether the collector has accepted them."""
        ...

    async def stop(self) -> None:
        """Export the remaining spans and measurements, within some seconds."""
        ...
