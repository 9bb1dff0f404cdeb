"""What the gateway records of its requests: spans and measurements, whoever exports them.

Names and attributes are those of OpenTelemetry's semantic conventions for HTTP and generative AI:
https://opentelemetry.io/docs/specs/semconv/gen-ai/. No text of a conversation is among them.
"""

from collections.abc import Mapping
from typing import Literal, Protocol

from services.common.telemetry.trace_context import TraceContext

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
    """A span that has begun."""

    @property
    def context(self) -> TraceContext:
        """What others are sent who continue the trace."""
        ...

    def end(self, attributes: Attributes, error: str = "") -> None:
        """End the span; with an `error`, its type, as a failed one."""
        ...


class Telemetry(Protocol):
    """Records spans and measurements."""

    def begin(
        self, name: str, kind: Kind, parent: TraceContext | None, attributes: Attributes
    ) -> Span:
        """Begin a span; without a `parent` it begins a trace."""
        ...

    def record(self, measure: Measure, value: float, attributes: Attributes) -> None:
        """Record a value of a histogram: seconds, or tokens."""
        ...

    async def stop(self) -> None:
        """Send what has been recorded, within some seconds."""
        ...
