"""The configuration of an Envoy in front of the gateway: `template.yaml` with its values."""

from pathlib import Path

from services.common.settings import Settings
from services.envoy.clusters import clusters
from services.envoy.template import render

TEMPLATE = Path(__file__).with_name("template.yaml")

# Seconds added to the gateway's own idle limits, whose errors say more and should come first.
_MARGIN_S = 60
# Bytes of a multipart form in addition to its file.
_FORM = 1 << 20
# Envoy closes idle connections to facades at the latest after this time.
_MAX_IDLE_CONNECTION_S = 30.0


def bootstrap(settings: Settings) -> str:
    """Return the configuration for the settings: YAML with comments.

    Raises:
        SettingsError: `[envoy]` lacks a certificate that the facades or services need.
    """
    envoy, limits = settings.envoy, settings.limits
    upstream = clusters(settings)
    max_body_bytes = max(limits.max_body_bytes, limits.max_file_bytes + _FORM)
    values = {
        **dict(envoy),
        "no_admin_api": not envoy.admin_api,
        "requires_client_certificate": bool(envoy.client_ca),
        "head_timeout_s": limits.head_timeout_s,
        # The maximum time for which the facade waits for a body.
        "body_timeout_s": limits.body_idle_s + max_body_bytes / limits.min_body_bytes_per_s,
        "answer_idle_s": max(limits.step_timeout_s, limits.stream_idle_s) + _MARGIN_S,
        "max_body_bytes": max_body_bytes,
        "first_rejected_length": max_body_bytes + 1,
        "idle_connection_s": min(_MAX_IDLE_CONNECTION_S, limits.idle_connection_s / 2),
        "max_calls_per_connection": settings.grpc.max_calls_per_connection,
        "clusters": upstream,
        "has_services": any(cluster["is_services"] for cluster in upstream),
    }
    return render(TEMPLATE.read_text("utf-8"), values)
