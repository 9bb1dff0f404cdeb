"""TLS of Envoy: to callers, and to the gateway's machines."""

import ipaddress
from collections.abc import Sequence

from services.common.settings import Envoy, Settings, SettingsError
from services.envoy.types import Config, typed

_TLS = "extensions.transport_sockets.tls.v3"
_OLDEST = {"tls_minimum_protocol_version": "TLSv1_2"}


def towards_callers(settings: Envoy) -> Config | None:
    """Return the transport socket of the listener, or None without TLS."""
    if not settings.certificate:
        return None
    common: Config = {
        "tls_params": _OLDEST,
        "alpn_protocols": ["h2", "http/1.1"],
        "tls_certificates": [_certificate(settings.certificate, settings.private_key)],
    }
    if settings.client_ca:
        common["validation_context"] = {"trusted_ca": {"filename": settings.client_ca}}
    return _socket(
        typed(
            f"{_TLS}.DownstreamTlsContext",
            common_tls_context=common,
            require_client_certificate=bool(settings.client_ca),
        )
    )


def towards_facades(settings: Settings, hosts: Sequence[str]) -> Config | None:
    """Return the transport socket to facades on `hosts`, or None without TLS.

    Raises:
        SettingsError: `[envoy]` lacks a certificate that the facades require.
    """
    server = settings.server
    if not server.tls_certificate:
        return None
    return _towards(
        settings.envoy, hosts, "http/1.1", "server.tls_certificate", bool(server.tls_client_ca)
    )


def towards_services(settings: Settings, hosts: Sequence[str]) -> Config | None:
    """Return the transport socket to gRPC servers on `hosts`, or None without TLS.

    Raises:
        SettingsError: `[envoy]` lacks a certificate that the services require.
    """
    if not settings.grpc.certificate:
        return None
    return _towards(settings.envoy, hosts, "h2", "grpc.certificate", shows_certificate=True)


def _towards(
    settings: Envoy, hosts: Sequence[str], protocol: str, reason: str, shows_certificate: bool
) -> Config:
    if not settings.upstream_ca:
        raise SettingsError(f"envoy.upstream_ca: is required if {reason} is set")
    if shows_certificate and not settings.upstream_certificate:
        raise SettingsError(
            f"envoy.upstream_certificate: is required if {reason} is set: callers must show a "
            "certificate"
        )
    common: Config = {
        "tls_params": _OLDEST,
        "alpn_protocols": [protocol],
        "validation_context": {
            "trusted_ca": {"filename": settings.upstream_ca},
            # Without names, any certificate of the authority would be accepted, even Envoy's own.
            "match_typed_subject_alt_names": [_name(host) for host in hosts],
        },
    }
    if settings.upstream_certificate:
        common["tls_certificates"] = [
            _certificate(settings.upstream_certificate, settings.upstream_private_key)
        ]
    return _socket(typed(f"{_TLS}.UpstreamTlsContext", common_tls_context=common))


def _name(host: str) -> Config:
    kind = "IP_ADDRESS" if is_ip(host) else "DNS"
    return {"san_type": kind, "matcher": {"exact": host}}


def is_ip(host: str) -> bool:
    """Return whether a host is an IP address, not a name."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _certificate(certificate: str, private_key: str) -> Config:
    return {
        "certificate_chain": {"filename": certificate},
        "private_key": {"filename": private_key},
    }


def _socket(context: Config) -> Config:
    return {"name": "envoy.transport_sockets.tls", "typed_config": context}
