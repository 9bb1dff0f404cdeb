"""Opening of telemetry, as the settings say."""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from services.common.settings import SettingsError
from services.common.settings import Telemetry as TelemetrySettings
from services.common.telemetry.spans import Telemetry

if TYPE_CHECKING:
    from services.common.telemetry.otlp import OtlpTelemetry

# The variable that OpenTelemetry's own tools read, under the settings.
ENDPOINT_VARIABLE = "OTEL_EXPORTER_OTLP_ENDPOINT"


def open_telemetry(
    settings: TelemetrySettings, instance: str, environ: Mapping[str, str] = os.environ
) -> Telemetry | None:
    """Return what records for the collector of the settings, None where they name none.

    Args:
        settings: of the gateway.
        instance: identifies this process.
        environ: environment variables.

    Raises:
        SettingsError: a collector is named, but the extra `telemetry` is not installed.
    """
    endpoint = settings.otlp_endpoint or environ.get(ENDPOINT_VARIABLE, "")
    if not endpoint:
        return None
    return load_otlp()(settings, endpoint.rstrip("/"), instance)


def load_otlp() -> "type[OtlpTelemetry]":
    """Return the class that sends to a collector, which most gateways do not load.

    Raises:
        SettingsError: the extra `telemetry` is not installed.
    """
    try:
        from services.common.telemetry.otlp import OtlpTelemetry
    except ImportError:
        raise SettingsError(
            "telemetry.otlp_endpoint: to send traces takes an extra, which is not installed: "
            "pip install 'llm-gateway[telemetry]'"
        ) from None
    return OtlpTelemetry
