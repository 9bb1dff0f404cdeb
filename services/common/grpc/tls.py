"""Mutual TLS between gRPC callers and services."""

import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import cast

import grpc

from services.common.settings import Grpc

log = logging.getLogger(__name__)


def server_credentials(settings: Grpc) -> grpc.ServerCredentials | None:
    """Return the server's TLS credentials, or None without TLS.

    The server requires client certificates. After a certificate file has been replaced, new
    connections use the new one.

    Raises:
        OSError: a file cannot be read.
    """
    if not settings.certificate:
        return None
    files = _CertificateFiles(settings)
    # gRPC's type hints do not mention that the function may return None.
    fetch = cast(Callable[[], grpc.ServerCertificateConfiguration], files.read_if_replaced)
    return grpc.dynamic_ssl_server_credentials(files.read(), fetch, True)


class _CertificateFiles:
    """The files of a server's certificate, which may be replaced while the server runs."""

    def __init__(self, settings: Grpc) -> None:
        self._settings = settings
        self._written_ns: list[int] = []

    def read(self) -> grpc.ServerCertificateConfiguration:
        """Return the certificate.

        Raises:
            OSError: a file cannot be read.
        """
        self._written_ns = self._times()
        key, certificate, authority = _read(self._settings)
        return grpc.ssl_server_certificate_configuration([(key, certificate)], authority)

    def read_if_replaced(self) -> grpc.ServerCertificateConfiguration | None:
        """Return the certificate if a file was replaced, or None to keep the current one.

        gRPC calls it for each new connection.
        """
        try:
            return None if self._times() == self._written_ns else self.read()
        except OSError as error:
            log.error("gRPC certificate could not be reloaded", extra={"error": str(error)})
            return None

    def _times(self) -> list[int]:
        return [os.stat(file).st_mtime_ns for file in _files(self._settings)]


def channel_credentials(settings: Grpc) -> grpc.ChannelCredentials | None:
    """Return the TLS credentials of the gateway's own calls to services, or None without TLS.

    Raises:
        OSError: a file cannot be read.
    """
    if not settings.certificate:
        return None
    key, certificate, authority = _read(settings)
    return grpc.ssl_channel_credentials(authority, key, certificate)


def _read(settings: Grpc) -> tuple[bytes, bytes, bytes]:
    key, certificate, authority = (Path(file).read_bytes() for file in _files(settings))
    return key, certificate, authority


def _files(settings: Grpc) -> tuple[str, str, str]:
    return settings.private_key, settings.certificate, settings.client_ca
