"""Requests that are not plain: each finds its endpoint, and passes the checks before it."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Protocol

from aiohttp import hdrs

from facade.admin_authentication import authenticate_administrator
from facade.credentials import KeyKind, rules_for, rules_of_route
from facade.http.exchange import Exchange
from facade.http.responses import Response, WholeResponse
from facade.http.router import Match, Router
from facade.http_errors import (
    HttpExchangeError,
    encoded_path,
    method_not_allowed,
    not_served,
    unknown_path,
)
from facade.request_context import authenticate, request_context
from facade.unknown_paths import hint
from facade.unserved import instead_of
from services.common.errors import GatewayError, invalid

# Names are in the spelling of the error message.
_CREDENTIALS = ("Authorization", "x-api-key", "x-goog-api-key")


class Serve(Protocol):
    """Serves a request with a handler: `request_context`, or what adds to it."""

    def __call__(
        self,
        exchange: Exchange,
        handler: Callable[[Exchange], Awaitable[Response]],
        *,
        needs_key: bool = False,
    ) -> Awaitable[Response]:
        """Return the response; see `request_context`."""


class OperationsDispatcher:
    """Serves the requests of the operators' listener, which need no key.

    Args:
        router: finds the endpoints.
        serve: serves each request.
    """

    def __init__(self, router: Router, serve: Serve = request_context) -> None:
        self._router = router
        self._serve = serve

    async def respond(self, exchange: Exchange) -> Response:
        """Return the response to a request; raises as `request_context`."""
        match = _find(self._router, exchange)
        return await self._serve(exchange, partial(self._handle, match))

    async def _handle(self, match: Match, exchange: Exchange) -> Response:
        _reject_encoded(match, exchange)
        if match.endpoint is None:
            raise _no_endpoint(match, exchange)
        return await match.endpoint(exchange)


class Dispatcher(OperationsDispatcher):
    """Serves the requests of the public listener."""

    async def _handle(self, match: Match, exchange: Exchange) -> Response:
        _reject_encoded(match, exchange)
        preflight = _preflight(exchange)
        if preflight is not None:
            return preflight
        _check_head(exchange)
        rules = rules_of_route(match.path) if match.path else rules_for(exchange.path)
        if rules.key is KeyKind.ADMIN:
            # Also before a 405 response, which lists the methods of a path.
            if match.is_known:
                await authenticate_administrator(exchange)
        elif match.endpoint is not None and rules.key is KeyKind.CALLER:
            await authenticate(exchange, rules)
        if match.endpoint is None:
            if instead := instead_of(exchange.method, exchange.path):
                raise not_served(exchange.method, exchange.path, instead)
            raise _no_endpoint(match, exchange, hint(self._router, exchange))
        return await match.endpoint(exchange)


def _find(router: Router, exchange: Exchange) -> Match:
    """Find the endpoint of a request, and note its route and the variables in its path."""
    assert exchange.url is not None, "it is not plain"
    match = router.find(exchange.method, exchange.url)
    if match.endpoint is not None and not match.is_encoded:
        exchange.route = match.path
        exchange.path_values = match.values
    return match


def _reject_encoded(match: Match, exchange: Exchange) -> None:
    if match.is_encoded:
        assert exchange.url is not None, "it is not plain"
        raise encoded_path(exchange.method, exchange.url.raw_path)


def _no_endpoint(match: Match, exchange: Exchange, advice: str = "") -> GatewayError:
    """Return the error for a path that is unknown, or that does not allow the method."""
    if match.allowed:
        return method_not_allowed(exchange.method, exchange.path, match.allowed)
    return unknown_path(exchange.method, exchange.path, advice)


def _preflight(exchange: Exchange) -> Response | None:
    """Return the response to a CORS preflight (the Fetch standard, section 3.3), else None.

    A preflight carries no key and is answered for any path, so that the page can read the response
    to the request itself, even a 404.
    """
    cors = exchange.context.cors
    headers = exchange.headers
    if (
        cors is None
        or exchange.method != hdrs.METH_OPTIONS
        or hdrs.ACCESS_CONTROL_REQUEST_METHOD not in headers
    ):
        return None
    names = headers.get(hdrs.ACCESS_CONTROL_REQUEST_HEADERS, "")
    allowed = cors.preflight(headers.get(hdrs.ORIGIN, ""), names)
    return None if allowed is None else WholeResponse(headers=allowed, status=204)


def _check_head(exchange: Exchange) -> None:
    """Reject a head that the gateway does not support; plain requests need no such check.

    Raises:
        GatewayError: 400 for a repeated credential and for a transfer coding other than chunked,
            415 for a body that is encoded, 417 for an expectation other than 100-continue.
    """
    headers = exchange.headers
    for name in _CREDENTIALS:
        if len(exchange.header_lines(name)) > 1:
            raise invalid(name, f"{name}: duplicate header; send it once")
    if hdrs.CONTENT_ENCODING in headers:
        _check_content_encoding(exchange.header_lines(hdrs.CONTENT_ENCODING))
    if hdrs.TRANSFER_ENCODING in headers:
        _check_transfer_encoding(headers[hdrs.TRANSFER_ENCODING])
    if exchange.expect not in (None, "100-continue"):
        raise HttpExchangeError(417, "expectation_failed", "Expect: must be 100-continue", "Expect")


def _check_content_encoding(lines: list[str]) -> None:
    codings = {coding.strip().lower() for line in lines for coding in line.split(",")}
    if codings - {"", "identity"}:
        raise HttpExchangeError(
            415,
            "unsupported_content_encoding",
            "Content-Encoding: must be identity; send the body uncompressed and omit the header",
            "Content-Encoding",
        )


def _check_transfer_encoding(codings: str) -> None:
    if codings.strip().lower() != "chunked":
        raise HttpExchangeError(
            400,
            "unsupported_transfer_encoding",
            "Transfer-Encoding: must be chunked",
            "Transfer-Encoding",
        )
