"""Listeners: one for HTTP and gRPC callers, and one for Envoy's own metrics."""

from services.common.settings import Settings
from services.envoy import tls
from services.envoy.local_replies import local_replies
from services.envoy.routes import (
    MAX_UNAUTHENTICATED_MESSAGE,
    max_body_bytes,
    max_body_seconds,
    virtual_host,
)
from services.envoy.types import (
    ADMIN,
    CONNECTION_BUFFER,
    HTTP2_WINDOWS,
    Config,
    address,
    seconds,
    typed,
)

# Prefix of the statistics of callers' requests.
STATISTICS = "gateway"

_MANAGER = "extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"
_LOG_LINE: Config = {
    "time": "%START_TIME(%Y-%m-%dT%H:%M:%S.%3fZ)%",
    "request_id": "%REQ(X-REQUEST-ID)%",
    "client": "%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%",
    "protocol": "%PROTOCOL%",
    "method": "%REQ(:METHOD)%",
    "path": "%PATH(NQ)%",  # without the query
    "status": "%RESPONSE_CODE%",
    "grpc_status": "%GRPC_STATUS%",
    "flags": "%RESPONSE_FLAGS%",
    "details": "%RESPONSE_CODE_DETAILS%",
    "bytes_in": "%BYTES_RECEIVED%",
    "bytes_out": "%BYTES_SENT%",
    "first_byte_ms": "%RESPONSE_DURATION%",
    "duration_ms": "%DURATION%",
    "attempts": "%UPSTREAM_REQUEST_ATTEMPT_COUNT%",
    "upstream": "%UPSTREAM_HOST%",
}


def callers(settings: Settings, *, has_services: bool) -> Config:
    """Return the shared listener for HTTP/1.1, HTTP/2 and gRPC callers."""
    chain: Config = {"filters": [_filter(_manager(settings, has_services))]}
    if transport := tls.towards_callers(settings.envoy):
        chain["transport_socket"] = transport
        chain["transport_socket_connect_timeout"] = seconds(settings.limits.head_timeout_s)
    return {
        "name": "gateway",
        "address": address(settings.envoy.host, settings.envoy.port),
        # Bodies and streams are not buffered, except for this much per connection.
        "per_connection_buffer_limit_bytes": CONNECTION_BUFFER,
        "filter_chains": [chain],
    }


def metrics(settings: Settings) -> Config:
    """Return the listener for Envoy's metrics and readiness, without its other admin endpoints."""
    routes = [
        {"match": {"path": path}, "route": {"cluster": ADMIN, "timeout": "10s"}}
        for path in ("/stats/prometheus", "/ready")
    ]
    manager = typed(
        _MANAGER,
        stat_prefix="metrics",
        route_config={
            "name": "metrics",
            "virtual_hosts": [{"name": "metrics", "domains": ["*"], "routes": routes}],
        },
        http_filters=[_router()],
    )
    return {
        "name": "metrics",
        "address": address(settings.envoy.metrics_host, settings.envoy.metrics_port),
        "filter_chains": [{"filters": [_filter(manager)]}],
    }


def _manager(settings: Settings, has_services: bool) -> Config:
    request_id = "%REQ(X-REQUEST-ID)%"
    return typed(
        _MANAGER,
        stat_prefix=STATISTICS,
        codec_type="AUTO",
        # Only the part of x-forwarded-for that trusted proxies in front of Envoy wrote is used.
        use_remote_address=True,
        xff_num_trusted_hops=settings.envoy.trusted_proxies,
        # The caller's x-request-id is kept.
        preserve_external_request_id=True,
        server_header_transformation="PASS_THROUGH",
        # `%2F` is kept, since model names contain slashes. Dot segments and double slashes are
        # normalized.
        normalize_path=True,
        merge_slashes=True,
        path_with_escaped_slashes_action="KEEP_UNCHANGED",
        max_request_headers_kb=32,
        common_http_protocol_options={
            "idle_timeout": "300s",
            "headers_with_underscores_action": "DROP_HEADER",
            "max_headers_count": 100,
        },
        http2_protocol_options={"max_concurrent_streams": 200, **HTTP2_WINDOWS},
        request_headers_timeout=seconds(settings.limits.head_timeout_s),
        # The facade rejects slower bodies; this limit is for requests that do not reach it.
        request_timeout=seconds(max_body_seconds(settings)),
        # Idle time in both directions. Streams send keep-alives more often; the routes for whole
        # answers have their own idle timeout.
        stream_idle_timeout="120s",
        access_log=[
            {
                "name": "envoy.access_loggers.stdout",
                "typed_config": typed(
                    "extensions.access_loggers.stream.v3.StdoutAccessLog",
                    log_format={"json_format": _LOG_LINE},
                ),
            }
        ],
        local_reply_config=local_replies(max_body_bytes(settings)),
        route_config={
            "name": "gateway",
            # Adds the id to Envoy's own responses; the facade's responses have the same value.
            "response_headers_to_add": [
                {"header": {"key": name, "value": request_id}, "append_action": "ADD_IF_ABSENT"}
                for name in ("x-request-id", "request-id")
            ],
            "virtual_hosts": [virtual_host(settings, has_services=has_services)],
        },
        http_filters=[
            {
                "name": "envoy.filters.http.buffer",
                "disabled": True,  # enabled by single routes
                "typed_config": typed(
                    "extensions.filters.http.buffer.v3.Buffer",
                    max_request_bytes=MAX_UNAUTHENTICATED_MESSAGE,
                ),
            },
            _router(),
        ],
    )


def _filter(manager: Config) -> Config:
    return {"name": "envoy.filters.network.http_connection_manager", "typed_config": manager}


def _router() -> Config:
    return {
        "name": "envoy.filters.http.router",
        "typed_config": typed(
            "extensions.filters.http.router.v3.Router", suppress_envoy_headers=True
        ),
    }
