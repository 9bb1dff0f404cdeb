"""Start of telemetry, as configured by the settings."""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from services.common.process.telemetry.spans import Telemetry
from services.common.settings import SettingsError
from services.common.settings import Telemetry as TelemetrySettings

if TYPE_CHECKING:
    from services.common.process.telemetry.otlp import OtlpTelemetry

# OpenTelemetry's standard variable; the settings have precedence.
ENDPOINT_VARIABLE = "OTEL_EXPORTER_OTLP_ENDPOINT"


def open_telemetry(
    settings: TelemetrySettings,
    instance: str,
    environ: Mapping[str, str] = os.environ,
    *,
    is_required: bool = False,
) -> Telemetry | None:
    """Return the telemetry for the configured collector, or None without a collector.

    Args:
        settings: telemetry settings of the gateway.
        instance: id of this process, never reused.
        environ: environment variables.
        is_required: whether the request log is sent to the collector.

    Raises:
        SettingsError: a collector is configured, but the extra `telemetry` is not installed; or
            none is, although it is required.
    """
    endpoint = settings.otlp_endpoint or environ.get(ENDPOINT_VARIABLE, "")
    if not endpoint:
        if is_required:
            raise SettingsError(
                "request_log.otlp: requires the address of a collector, telemetry.otlp_endpoint"
            )
        return None
    return load_otlp()(settings, endpoint.rstrip("/"), instance)


def load_otlp() -> "type[OtlpTelemetry]":
    """Import and return the class that exports to a collector; most gateways do not load it.

    Raises:
        SettingsError: the extra `telemetry` is not installed.
    """
    try:
        from services.common.process.telemetry.otlp import OtlpTelemetry
    except ImportError:
        raise SettingsError(
            "telemetry.otlp_endpoint: sending traces requires an extra that is not installed: pip "
            "install 'sluicegate[telemetry]'"
        ) from None
    return OtlpTelemetry
