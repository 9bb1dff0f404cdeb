"""Mutual TLS between gRPC callers and services."""

from pathlib import Path

import grpc

from services.common.settings import Grpc


def server_credentials(settings: Grpc) -> grpc.ServerCredentials | None:
    """Return what a server shows and wants to be shown; None where calls are not encrypted.

    Raises:
        OSError: a file cannot be read.
    """
    if not settings.certificate:
        return None
    key, certificate, authority = _read(settings)
    return grpc.ssl_server_credentials([(key, certificate)], authority, True)


def channel_credentials(settings: Grpc) -> grpc.ChannelCredentials | None:
    """Return what a process of the gateway shows to services; None where nothing is encrypted.

    Raises:
        OSError: a file cannot be read.
    """
    if not settings.certificate:
        return None
    key, certificate, authority = _read(settings)
    return grpc.ssl_channel_credentials(authority, key, certificate)


def _read(settings: Grpc) -> tuple[bytes, bytes, bytes]:
    key, certificate, authority = (
        Path(file).read_bytes()
        for file in (settings.private_key, settings.certificate, settings.client_ca)
    )
    return key, certificate, authority
