"""Hints in the errors of unknown paths: the endpoint that was probably meant, and the base URL."""

from yarl import URL

from facade.credentials import ApiFormat, credential_format
from facade.http.exchange import Exchange
from facade.http.router import Router
from facade.request_address import address_of

# Beyond these limits a path resembles no endpoint.
_MAX_PATH = 256
_MAX_SEGMENTS = 8
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
    address = address_of(exchange) or "this gateway's address"
    if credential_format(exchange.headers) is ApiFormat.ANTHROPIC:
        return f"The base_url of Anthropic's clients is {address}, without /v1"
    return f"The base_url of OpenAI's clients is {address}/v1"
