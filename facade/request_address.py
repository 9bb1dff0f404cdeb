"""The address of this gateway as the client of a request knows it."""

import re

from facade.http.exchange import Exchange

_HOST = re.compile(r"(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?", re.ASCII)
_MAX_HOST = 255


def address_of(exchange: Exchange) -> str:
    """Return the address, without a path; "" if the client sent no valid host."""
    host = exchange.headers.get("host", "")
    if len(host) > _MAX_HOST or not _HOST.fullmatch(host):
        return ""
    scheme = exchange.headers.get("x-forwarded-proto", "")
    if scheme not in ("http", "https"):
        scheme = "https" if exchange.context.settings.server.tls_certificate else "http"
    return f"{scheme}://{host}"
