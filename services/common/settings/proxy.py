"""The section of the settings for the Envoy proxy in front of the gateway."""

import re
from typing import Annotated, Self

from pydantic import Field, field_validator, model_validator

from services.common.settings.base import Section

_HOST_AND_PORT = re.compile(r"(?:\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+):[0-9]{1,5}")


class Envoy(Section):
    """Settings from which `gateway envoy config` generates a configuration, with other sections."""

    host: Annotated[str, Field(min_length=1)] = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = 10000
    admin_port: Annotated[int, Field(ge=0, le=65535)] = 9901
    metrics_host: Annotated[str, Field(min_length=1)] = "127.0.0.1"
    metrics_port: Annotated[int, Field(ge=0, le=65535)] = 0
    certificate: str = ""
    private_key: str = ""
    client_ca: str = ""
    facades: list[str] = Field(default_factory=list)
    grpc: list[str] = Field(default_factory=list)
    upstream_ca: str = ""
    upstream_certificate: str = ""
    upstream_private_key: str = ""
    trusted_proxies: Annotated[int, Field(ge=0)] = 0
    admin_api: bool = False
    max_connections: Annotated[int, Field(ge=1)] = 20_000

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
            given = [getattr(self, prefix + name) for name in ("certificate", "private_key")]
            if any(given) and not all(given):
                raise ValueError(
                    f"{prefix}certificate and {prefix}private_key must be set together"
                )
        if self.client_ca and not self.certificate:
            raise ValueError("client_ca: requires certificate and private_key")
        return self
