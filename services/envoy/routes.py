"""Routes of requests to the facades and to the gRPC services; other requests are rejected."""

from services.common.settings import Settings
from services.envoy.types import FACADES, SERVICES, Config, seconds, typed

# Seconds added to the gateway's own idle limits, whose errors say more and should come first.
_MARGIN_S = 60
_MAX_INT64 = 2**63 - 1
# Bytes of a multipart form in addition to its file.
_FORM = 1 << 20
# Maximum request size of a gRPC health check, which needs no key.
MAX_UNAUTHENTICATED_MESSAGE = 64 << 10

_SMALL_GETS = r"/(healthz|readyz|openapi\.json|docs)"
_ENDPOINTS = r"/((beta|coding|article)/)?v1/.*"
_BASES = r"/((beta|coding)(/v1)?|v1)/?"
_ADMIN_ENDPOINTS = r"/admin/v1/.*"
_ADMIN_SERVICES = r"/gateway\.[a-z.]+\.v1\.[A-Za-z]*Admin[A-Za-z]*/.*"


def max_body_bytes(settings: Settings) -> int:
    """Return the size of the largest body that any endpoint accepts."""
    return max(settings.limits.max_body_bytes, settings.limits.max_file_bytes + _FORM)


def max_body_seconds(settings: Settings) -> float:
    """Return the maximum time for which the facade waits for a body."""
    limits = settings.limits
    return limits.body_idle_s + max_body_bytes(settings) / limits.min_body_bytes_per_s


def idle_timeout_s(settings: Settings) -> float:
    """Return the idle timeout of a request: no bytes are sent before a whole answer is complete."""
    limits = settings.limits
    return max(limits.step_timeout_s, limits.stream_idle_s) + _MARGIN_S


def virtual_host(settings: Settings, *, has_services: bool) -> Config:
    """Return the virtual host with all routes; Envoy answers unmatched requests with 404."""
    return {
        "name": "gateway",
        "domains": ["*"],
        "retry_policy": {
            # Only if no byte of the request was sent: a model must not be called twice.
            "retry_on": "connect-failure,refused-stream,reset-before-request",
            "num_retries": 2,
            "retry_host_predicate": [
                {
                    "name": "envoy.retry_host_predicates.previous_hosts",
                    "typed_config": typed(
                        "extensions.retry.host.previous_hosts.v3.PreviousHostsPredicate"
                    ),
                }
            ],
            "host_selection_retry_max_attempts": 3,
        },
        "routes": [
            _too_large(max_body_bytes(settings)),
            *_forbidden(admin_api=settings.envoy.admin_api),
            *(_to_services(settings) if has_services else ()),
            _to_facades(_SMALL_GETS, timeout="10s"),
            _to_facades(_BASES, timeout="10s"),
            *_to_endpoints(settings),
        ],
    }


def _too_large(limit: int) -> Config:
    """Return the route that rejects a body with a Content-Length above the limit, unread.

    Bodies without Content-Length (chunked) are limited by the facade: Envoy could only limit them
    by buffering the whole body.
    """
    header = {"name": "content-length", "range_match": {"start": limit + 1, "end": _MAX_INT64}}
    return {"match": {"prefix": "/", "headers": [header]}, "direct_response": {"status": 413}}


def _forbidden(*, admin_api: bool) -> list[Config]:
    """Return routes that reject operators' endpoints which other routes would match."""
    details = {"name": "verbose", "present_match": True}
    matches: list[Config] = [{"path": "/readyz", "query_parameters": [details]}]
    if not admin_api:
        matches.append(_regex(_ADMIN_SERVICES))
    return [{"match": match, "direct_response": {"status": 404}} for match in matches]


def _to_services(settings: Settings) -> list[Config]:
    route: Config = {
        "cluster": SERVICES,
        "timeout": "0s",
        # The caller's deadline applies without a maximum.
        "max_stream_duration": {"grpc_timeout_header_max": "0s"},
        "idle_timeout": seconds(idle_timeout_s(settings)),
    }
    unauthenticated = typed(
        "extensions.filters.http.buffer.v3.BufferPerRoute",
        buffer={"max_request_bytes": MAX_UNAUTHENTICATED_MESSAGE},
    )
    return [
        {"match": {"prefix": "/gateway.", "grpc": {}}, "route": route},
        # No key is needed here, so the request is buffered, which limits its size.
        {
            "match": {"prefix": "/grpc.health.v1.", "grpc": {}},
            "route": route,
            "typed_per_filter_config": {"envoy.filters.http.buffer": unauthenticated},
        },
        {"match": {"prefix": "/grpc.reflection.", "grpc": {}}, "route": route},
    ]


def _to_endpoints(settings: Settings) -> list[Config]:
    patterns = [_ENDPOINTS, *([_ADMIN_ENDPOINTS] if settings.envoy.admin_api else [])]
    idle_timeout = seconds(idle_timeout_s(settings))
    return [_to_facades(pattern, timeout="0s", idle_timeout=idle_timeout) for pattern in patterns]


def _to_facades(pattern: str, **timeouts: str) -> Config:
    return {"match": _regex(pattern), "route": {"cluster": FACADES, **timeouts}}


def _regex(pattern: str) -> Config:
    return {"safe_regex": {"regex": pattern}}
