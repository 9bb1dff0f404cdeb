"""TLS of the HTTP listener: the server certificate and client certificates."""

from typing import TYPE_CHECKING

from services.common.settings import Server

if TYPE_CHECKING:
    from ssl import SSLContext


def server_context(settings: Server) -> "SSLContext | None":
    """Return the TLS context of the listener, for TLS 1.2 or newer; None without TLS.

    With `server.tls_client_ca` the handshake fails for a client without a certificate of that CA.

    Raises:
        OSError: a file cannot be read, or holds no certificate or key.
    """
    if not settings.tls_certificate:
        return None
    # Imported here, as most gateways leave TLS to a proxy: it takes 3 MB.
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    if settings.tls_client_ca:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(settings.tls_client_ca)
    load_certificate(context, settings)
    return context


def load_certificate(context: "SSLContext", settings: Server) -> None:
    """Read the certificate and its key; handshakes from now on use them.

    Raises:
        OSError: a file cannot be read, or the two do not match.
    """
    context.load_cert_chain(settings.tls_certificate, settings.tls_key)
