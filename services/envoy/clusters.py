"""Clusters: the hosts of facades and of gRPC services, their health, and TLS to them."""

from collections.abc import Sequence

from services.common.settings import Settings
from services.envoy import tls
from services.envoy.types import (
    ADMIN,
    CONNECTION_BUFFER,
    FACADES,
    HTTP2_WINDOWS,
    SERVICES,
    Config,
    address,
    typed,
)

# Wildcard addresses of listeners, and the addresses for connecting to them.
_LOOPBACKS = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}
_CONNECT_TIMEOUT = "2s"
# If a machine or its network fails, its connections are not closed: without these options, requests
# on them wait as long as an answer may take. A connection is lost after five seconds without a
# packet from the peer, whether it is idle (keepalive) or has unacknowledged data (TCP_USER_TIMEOUT
# of Linux, in ms).
_GONE_HOSTS: Config = {
    "upstream_connection_options": {
        "tcp_keepalive": {"keepalive_time": 2, "keepalive_interval": 1, "keepalive_probes": 3}
    },
    "upstream_bind_config": {
        "socket_options": [
            {
                "description": "TCP_USER_TIMEOUT",
                "level": 6,
                "name": 18,
                "int_value": 5000,
                "state": "STATE_PREBIND",
            }
        ]
    },
}
_HTTP_OPTIONS = "extensions.upstreams.http.v3.HttpProtocolOptions"

Host = tuple[str, int]


def facade_hosts(settings: Settings) -> list[Host]:
    """Return the addresses of the facades."""
    server = settings.server
    own = (_LOOPBACKS.get(server.host, server.host), server.port)
    return [_host(one) for one in settings.envoy.facades] or [own]


def grpc_hosts(settings: Settings) -> list[Host]:
    """Return the addresses for gRPC callers; empty if none is configured."""
    given = settings.envoy.grpc or [one for one in [settings.server.grpc] if one]
    return [(_LOOPBACKS.get(host, host), port) for host, port in map(_host, given)]


def clusters(settings: Settings) -> list[Config]:
    """Return all clusters.

    Raises:
        SettingsError: a certificate is missing.
    """
    facades, services = facade_hosts(settings), grpc_hosts(settings)
    found = [_facades(settings, facades)]
    if services:
        found.append(_services(settings, services))
    if settings.envoy.metrics_port:
        found.append(_admin(settings.envoy.admin_port))
    return found


def _facades(settings: Settings, hosts: Sequence[Host]) -> Config:
    # Half of the facade's idle timeout, so that Envoy closes idle connections first: a request on a
    # connection that the facade has just closed would be lost.
    idle_s = min(30.0, settings.limits.idle_connection_s / 2)
    return _balanced(
        FACADES,
        hosts,
        tls.towards_facades(settings, [host for host, _ in hosts]),
        {"http_health_check": {"path": "/readyz"}},
        typed(
            _HTTP_OPTIONS,
            common_http_protocol_options={"idle_timeout": f"{idle_s:g}s"},
            explicit_http_config={"http_protocol_options": {}},
        ),
        settings.envoy.max_connections,
    )


def _services(settings: Settings, hosts: Sequence[Host]) -> Config:
    return _balanced(
        SERVICES,
        hosts,
        tls.towards_services(settings, [host for host, _ in hosts]),
        {"grpc_health_check": {}},
        typed(
            _HTTP_OPTIONS,
            explicit_http_config={
                "http2_protocol_options": {
                    "max_concurrent_streams": settings.grpc.max_calls_per_connection,
                    **HTTP2_WINDOWS,
                    "connection_keepalive": {"interval": "30s", "timeout": "10s"},
                }
            },
        ),
        settings.envoy.max_connections,
    )


def _balanced(
    name: str,
    hosts: Sequence[Host],
    transport: Config | None,
    health_check: Config,
    protocol: Config,
    max_requests: int,
) -> Config:
    """Return a load-balanced cluster with health checks."""
    cluster: Config = {
        "name": name,
        "connect_timeout": _CONNECT_TIMEOUT,
        "per_connection_buffer_limit_bytes": CONNECTION_BUFFER,
        **_GONE_HOSTS,
        "lb_policy": "LEAST_REQUEST",
        "circuit_breakers": {
            "thresholds": [
                {
                    "max_connections": max_requests,
                    "max_pending_requests": max_requests,
                    "max_requests": max_requests,
                    "max_retries": 16,
                }
            ]
        },
        # Only errors between Envoy and a host count. A 502 or 503 of a facade usually reports an
        # error of a provider, and is no reason to use another host.
        "outlier_detection": {
            "split_external_local_origin_errors": True,
            "consecutive_local_origin_failure": 5,
            "enforcing_consecutive_local_origin_failure": 100,
            "enforcing_consecutive_5xx": 0,
            "enforcing_consecutive_gateway_failure": 0,
            "enforcing_success_rate": 0,
            "enforcing_local_origin_success_rate": 0,
            "interval": "2s",
            "base_ejection_time": "5s",
            "max_ejection_time": "60s",
            "max_ejection_percent": 50,
        },
        "health_checks": [
            {
                "timeout": "2s",
                "interval": "2s",
                "no_traffic_interval": "1s",
                "unhealthy_interval": "1s",
                "unhealthy_threshold": 2,
                "healthy_threshold": 1,
                **health_check,
            }
        ],
        "typed_extension_protocol_options": {
            "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": protocol
        },
        **_places(name, hosts),
    }
    if transport is not None:
        cluster["transport_socket"] = transport
    return cluster


def _admin(port: int) -> Config:
    """Return the cluster of Envoy's own admin interface, for its metrics."""
    hosts = [("127.0.0.1", port)]
    return {"name": ADMIN, "connect_timeout": _CONNECT_TIMEOUT, **_places(ADMIN, hosts)}


def _places(name: str, hosts: Sequence[Host]) -> Config:
    is_static = all(tls.is_ip(host) for host, _ in hosts)
    endpoints = [{"endpoint": {"address": address(host, port)}} for host, port in hosts]
    found: Config = {
        "type": "STATIC" if is_static else "STRICT_DNS",
        "load_assignment": {"cluster_name": name, "endpoints": [{"lb_endpoints": endpoints}]},
    }
    if not is_static:
        found["dns_lookup_family"] = "V4_PREFERRED"
    return found


def _host(address: str) -> Host:
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)
