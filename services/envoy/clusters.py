"""Clusters: the hosts of facades and of gRPC services, and TLS to them."""

import ipaddress
from typing import Any

from services.common.settings import Settings, SettingsError

# The values of one section of the template.
Section = dict[str, Any]

# Wildcard addresses of listeners, and the addresses for connecting to them.
_LOOPBACKS = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}


def clusters(settings: Settings) -> list[Section]:
    """Return the values of the clusters: that of facades, and that of services for gRPC callers.

    Raises:
        SettingsError: `[envoy]` lacks a certificate that the facades or services require.
    """
    server, envoy = settings.server, settings.envoy
    own_facade = f"{server.host}:{server.port}"
    facades = _cluster("facades", envoy.facades or [own_facade])
    if server.tls_certificate:
        _check_tls(settings, "server.tls_certificate", shows_certificate=bool(server.tls_client_ca))
        facades |= _tls(settings, "http/1.1")
    own_services = [server.grpc] if server.grpc else []
    services = _cluster("services", envoy.grpc or own_services)
    if not services["hosts"]:
        return [facades]
    if settings.grpc.certificate:
        _check_tls(settings, "grpc.certificate", shows_certificate=True)
        services |= _tls(settings, "h2")
    return [facades, services]


def _cluster(name: str, addresses: list[str]) -> Section:
    hosts = [_host(address) for address in addresses]
    needs_dns = any(host["san_type"] == "DNS" for host in hosts)
    return {
        "name": name,
        "is_facades": name == "facades",
        "is_services": name == "services",
        "hosts": hosts,
        "needs_dns": needs_dns,
        "discovery": "STRICT_DNS" if needs_dns else "STATIC",
        "upstream_ca": "",
    }


def _tls(settings: Settings, protocol: str) -> Section:
    return {
        "upstream_ca": settings.envoy.upstream_ca,
        "certificate": settings.envoy.upstream_certificate,
        "private_key": settings.envoy.upstream_private_key,
        "protocol": protocol,
    }


def _check_tls(settings: Settings, reason: str, *, shows_certificate: bool) -> None:
    if not settings.envoy.upstream_ca:
        raise SettingsError(f"envoy.upstream_ca: is required if {reason} is set")
    if shows_certificate and not settings.envoy.upstream_certificate:
        raise SettingsError(
            f"envoy.upstream_certificate: is required if {reason} is set: callers must show a "
            "certificate"
        )


def _host(address: str) -> Section:
    host, _, port = address.rpartition(":")
    host = host.strip("[]")
    host = _LOOPBACKS.get(host, host)
    return {
        "host": host,
        "port": int(port),
        "san_type": "IP_ADDRESS" if _is_ip(host) else "DNS",
    }


def _is_ip(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
