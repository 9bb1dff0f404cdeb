"""Hints in the errors of unknown paths: the endpoint that was probably meant, and the base URL."""

import re

from yarl import URL

from facade.credentials import ApiFormat, credential_format
from facade.http.exchange import Exchange
from facade.http.router import Router

# Beyond these limits a path resembles no endpoint.
_MAX_PATH = 256
_MAX_SEGMENTS = 8
_HOST = re.compile(r"(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?", re.ASCII)
_MAX_HOST = 255
# Endpoints whose paths clients append to a base URL.
_OF_CLIENTS = ("/beta/v1/", "/coding/v1/")


def hint(router: Router, exchange: Exchange) -> str:
    """Return what to change in a request for an unknown path, or "" if that is not known.

    Clients append the path of an endpoint to their base URL: whatever precedes it is wrong.
    """
    path = _endpoint_in(router, exchange.method, exchange.path)
    if not path:
        return ""
    return f"did you mean {exchange.method} {path}? {_base_url(exchange)}"


def _endpoint_in(router: Router, method: str, path: str) -> str:
    """Return the longest end of a path that is the path of an endpoint, or ""."""
    segments = [segment for segment in path.split("/") if segment]
    if len(path) > _MAX_PATH or len(segments) > _MAX_SEGMENTS:
        return ""
    for start in range(len(segments)):
        end = "/" + "/".join(segments[start:])
        for candidate in dict.fromkeys((end, end.lower())):
            match = router.find(method, URL.build(path=candidate))
            if match.endpoint is not None and match.path.startswith(_OF_CLIENTS):
                return candidate
    return ""


def _base_url(exchange: Exchange) -> str:
    """Return a sentence with the base URL for the client of a request."""
    address = _address(exchange)
    if credential_format(exchange.headers) is ApiFormat.ANTHROPIC:
        return f"The base_url of Anthropic's clients is {address}, without /v1"
    return f"The base_url of OpenAI's clients is {address}/v1"


def _address(exchange: Exchange) -> str:
    """Return the address of this gateway as the client of a request knows it."""
    host = exchange.headers.get("host", "")
    if len(host) > _MAX_HOST or not _HOST.fullmatch(host):
        return "this gateway's address"
    scheme = exchange.headers.get("x-forwarded-proto", "")
    if scheme not in ("http", "https"):
        scheme = "https" if exchange.context.settings.server.tls_certificate else "http"
    return f"{scheme}://{host}"
