"""Exporter to an OpenTelemetry collector: a log record for each entry."""

from collections.abc import Iterator, Sequence

from services.common.money import decimal_dollars
from services.common.process.telemetry.conventions import provider_name
from services.common.process.telemetry.spans import LogRecord, Severity, Telemetry, Value
from services.request_log.exporters.base import ExportedRequest, ExportError

_EVENT = "gateway.request"
_CLIENT_ERRORS, _SERVER_ERRORS = 400, 500


class OtlpExporter:
    """Sends batches to the collector that gets traces and metrics.

    Args:
        telemetry: the collector.
    """

    name = "otlp"

    def __init__(self, telemetry: Telemetry) -> None:
        self._telemetry = telemetry

    async def send(self, batch: Sequence[ExportedRequest]) -> int:
        """Send a batch; see `Exporter`."""
        if not await self._telemetry.send_logs(list(map(_log_record, batch))):
            # The SDK has logged why.
            raise ExportError("the collector did not accept the log records")
        return 0

    async def close(self) -> None:
        """Do nothing: telemetry is stopped with the process."""


def _log_record(entry: ExportedRequest) -> LogRecord:
    """Return the log record of an entry. Pure."""
    logged, bodies = entry.logged, entry.bodies
    body = {} if bodies is None else {"request": bodies.request, "response": bodies.response}
    return LogRecord(
        time_ms=logged.time_ms,
        event_name=_EVENT,
        severity=_severity(logged.status, bool(logged.error_code)),
        body=body or f"{logged.endpoint} {logged.status}",
        attributes=dict(_attributes(entry)),
        trace=entry.trace,
    )


def _severity(status: int, has_failed: bool) -> Severity:
    if status >= _SERVER_ERRORS:
        return "error"
    return "warning" if has_failed or status >= _CLIENT_ERRORS else "information"


def _attributes(entry: ExportedRequest) -> Iterator[tuple[str, Value]]:
    logged = entry.logged
    method, _, route = logged.endpoint.partition(" ")
    yield "http.request.method", method
    yield "http.route", route
    yield "http.response.status_code", logged.status
    yield "enduser.id", logged.user_id
    yield "gateway.entry_id", logged.id
    yield "gateway.request_id", logged.request_id
    yield "gateway.key_id", logged.key_id
    yield "gateway.duration_ms", logged.duration_ms
    if logged.team_id:
        yield "gateway.team_id", logged.team_id
    if logged.error_code:
        yield "error.type", logged.error_code
    if logged.requested_model:
        yield "gen_ai.request.model", logged.requested_model
        yield "gateway.attempts", logged.attempts
    if logged.model:
        yield "gen_ai.response.model", logged.model
        yield "gen_ai.usage.input_tokens", logged.input_tokens
        yield "gen_ai.usage.output_tokens", logged.output_tokens
    if logged.provider:
        yield "gen_ai.provider.name", provider_name(logged.provider)
        yield "gateway.provider", logged.provider
    if logged.HasField("first_content_ms"):
        yield "gateway.first_content_ms", logged.first_content_ms
    if logged.HasField("cost_pusd"):
        yield "gateway.cost_usd", float(decimal_dollars(logged.cost_pusd))
