"""The section of the settings for the Envoy proxy in front of the gateway."""

import re
from typing import Annotated, Self

from pydantic import Field, field_validator, model_validator

from services.common.settings.base import Section, setting

_HOST_AND_PORT = re.compile(r"(?:\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+):[0-9]{1,5}")


class Envoy(Section):
    """Settings from which `gateway envoy config` generates a configuration, with other sections."""

    host: Annotated[str, Field(min_length=1)] = setting(
        "127.0.0.1", "address for callers, with HTTP and gRPC on one port"
    )
    port: Annotated[int, Field(ge=0, le=65535)] = setting(10000, "port for callers")
    admin_port: Annotated[int, Field(ge=0, le=65535)] = setting(
        9901, "port of its admin interface, on 127.0.0.1 only"
    )
    metrics_host: Annotated[str, Field(min_length=1)] = setting(
        "127.0.0.1", "address of its own /stats/prometheus and /ready"
    )
    metrics_port: Annotated[int, Field(ge=0, le=65535)] = setting(0, "0: disabled")
    certificate: str = setting("", "PEM file; with private_key, callers use TLS")
    private_key: str = setting("", "PEM file with the key of the certificate")
    client_ca: str = setting("", "PEM file; if set, callers must present a certificate of this CA")
    facades: list[str] = setting(
        [],
        'addresses of the gateway\'s machines, as ["10.0.0.1:8080"]; names are resolved '
        "repeatedly. Empty: server.host and server.port",
    )
    grpc: list[str] = setting(
        [], "addresses of the machines for gRPC callers, as in facades; empty: server.grpc, if set"
    )
    upstream_ca: str = setting(
        "", "PEM file; CA of the machines' certificates (server.tls_certificate, grpc.certificate)"
    )
    upstream_certificate: str = setting(
        "",
        "PEM file; the certificate that Envoy presents to the machines (server.tls_client_ca,"
        " grpc.client_ca)",
    )
    upstream_private_key: str = setting("", "PEM file with the key of upstream_certificate")
    trusted_proxies: Annotated[int, Field(ge=0)] = setting(
        0, "number of trusted proxies in front of Envoy, for x-forwarded-for"
    )
    admin_api: bool = setting(False, "true: callers can reach /admin/v1 and its gRPC services")
    max_connections: Annotated[int, Field(ge=1)] = setting(
        20_000, "connections of callers to one Envoy at a time", seen="the connection is closed"
    )

    @field_validator("facades", "grpc")
    @classmethod
    def _are_hosts_and_ports(cls, value: list[str]) -> list[str]:
        if not all(_HOST_AND_PORT.fullmatch(address) for address in value):
            raise ValueError(
                'must be a list of addresses with ports, for example ["10.0.0.1:8080"]'
            )
        return value

    @model_validator(mode="after")
    def _certificates_have_keys(self) -> Self:
        for prefix in ("", "upstream_"):
            files = [getattr(self, prefix + name) for name in ("certificate", "private_key")]
            if any(files) and not all(files):
                raise ValueError(
                    f"{prefix}certificate and {prefix}private_key must be set together"
                )
        if self.client_ca and not self.certificate:
            raise ValueError("client_ca: requires certificate and private_key")
        return self
