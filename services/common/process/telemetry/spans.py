"""Spans and measurements of requests, independent of their export.

Names and attributes follow OpenTelemetry's semantic conventions for HTTP and generative AI:
https://opentelemetry.io/docs/specs/semconv/gen-ai/. Texts of conversations are never recorded.
"""

from collections.abc import Mapping
from typing import Literal, Protocol

from services.common.process.telemetry.trace_context import TraceContext

Value = str | bool | int | float
Attributes = Mapping[str, Value]
Kind = Literal["server", "client", "internal"]
Measure = Literal[
    "http.server.request.duration",
    "gen_ai.client.operation.duration",
    "gen_ai.client.token.usage",
    "gen_ai.server.time_to_first_token",
    "gen_ai.server.time_per_output_token",
]


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

    async def stop(self) -> None:
        """Export the remaining spans and measurements, within some seconds."""
        ...
