"""Metrics of the certificates that a process presents."""

from prometheus_client import CollectorRegistry

from services.common.process.metrics import Gauge
from services.common.settings import Settings


class CertificateMetrics:
    """The time at which each certificate of the settings expires."""

    def __init__(self, settings: Settings, registry: CollectorRegistry) -> None:
        files = {
            "server.tls_certificate": settings.server.tls_certificate,
            "grpc.certificate": settings.grpc.certificate,
        }
        self._files = {name: path for name, path in files.items() if path}
        self._expiry = Gauge(
            "gateway_certificate_expiry_seconds",
            "Unix time at which a certificate expires, by its setting.",
            ("certificate",),
            multiprocess_mode="livemin",
            registry=registry,
        )
        self.read()

    def read(self) -> None:
        """Read the certificates again; one that cannot be read keeps its time."""
        for name, path in self._files.items():
            # Imported here, as most gateways leave TLS to a proxy: it takes 3 MB.
            import ssl

            try:
                # The library reads files with it too: nothing public reads a certificate that no
                # peer has presented.
                decoded = ssl._ssl._test_decode_cert(path)  # type: ignore[attr-defined]
            except (OSError, AttributeError):  # a later Python may lack it
                continue
            self._expiry.labels(name).set(ssl.cert_time_to_seconds(decoded["notAfter"]))
