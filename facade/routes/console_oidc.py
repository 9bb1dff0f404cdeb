"""Sign-in to the console at an OpenID Connect issuer: the two redirects of the browser."""

import logging
import re

import grpc

from facade.endpoint import EndpointSpec
from facade.http.exchange import Exchange
from facade.http.responses import Response, WholeResponse
from facade.routes.console_sessions import cookie_of, metadata
from facade.sessions import cookie, cookie_line, host_prefix
from gateway.accounts.v1 import sessions_pb2
from gateway.errors.v1 import errors_pb2
from services.common.errors import GatewayError, from_rpc_error

_COOKIE = "gateway_sign_in"
_ATTEMPT = re.compile(r"[A-Za-z0-9_=.-]{1,4096}", re.ASCII)
_ATTEMPT_S = 600
_PATH = "/console/oidc"
# What the page says, by the reason of the failure; the log has the message.
_FAILURES = {
    errors_pb2.REASON_PERMISSION_DENIED: "denied",
    errors_pb2.REASON_INVALID_API_KEY: "denied",
    errors_pb2.REASON_INVALID_REQUEST: "failed",
    errors_pb2.REASON_UNAVAILABLE: "unavailable",
    errors_pb2.REASON_RATE_LIMITED: "unavailable",
    errors_pb2.REASON_NOT_FOUND: "absent",
}

log = logging.getLogger(__name__)


async def _start(exchange: Exchange) -> Response:
    """Send the browser to the issuer; a cookie keeps the attempt."""
    request = sessions_pb2.BeginOidcSignInRequest(return_to=exchange.query.get("to", "")[:1024])
    try:
        begun = await exchange.context.sessions.BeginOidcSignIn(
            request, metadata=metadata(exchange)
        )
    except grpc.aio.AioRpcError as error:
        return _failed(exchange, from_rpc_error(error))
    return _redirect(
        begun.authorization_url, {"Set-Cookie": attempt_cookie(exchange, begun.attempt)}
    )


async def _callback(exchange: Exchange) -> Response:
    """Begin a session by the issuer's answer, and send the browser back to the console."""
    query = exchange.query
    request = sessions_pb2.FinishOidcSignInRequest(
        attempt=cookie(exchange.headers, _cookie_name(exchange), _ATTEMPT),
        state=query.get("state", "")[:1024],
        code="" if "error" in query else query.get("code", "")[:8192],
        issuer=query.get("iss", "")[:1024],
    )
    try:
        finished = await exchange.context.sessions.FinishOidcSignIn(
            request, metadata=metadata(exchange)
        )
    except grpc.aio.AioRpcError as error:
        return _failed(exchange, from_rpc_error(error))
    # Two fields: names of fields have no case, keys of a mapping do.
    cookies = {
        "Set-Cookie": cookie_of(exchange, finished.token),
        "set-cookie": _cookie_line(exchange, "", 0),
    }
    return _redirect(finished.return_to, cookies)


def attempt_cookie(exchange: Exchange, attempt: str) -> str:
    """Return the value of `Set-Cookie` that keeps an attempt."""
    # The issuer sends the browser back from another site, for which `Strict` withholds a cookie.
    return _cookie_line(exchange, attempt, _ATTEMPT_S)


def _failed(exchange: Exchange, error: GatewayError) -> Response:
    """Send the browser to the page of the sign-in, which says what failed."""
    log.warning("sign-in at the issuer failed", extra={"error": error.message})
    failure = _FAILURES.get(error.reason, "failed")
    return _redirect(f"/console#sign-in={failure}", {"Set-Cookie": _cookie_line(exchange, "", 0)})


def _cookie_line(exchange: Exchange, value: str, max_age_s: int) -> str:
    is_secure = exchange.context.settings.console.is_secure
    return cookie_line(_cookie_name(exchange), value, max_age_s, is_secure, same_site="Lax")


def _cookie_name(exchange: Exchange) -> str:
    return host_prefix(exchange.context.settings.console.is_secure) + _COOKIE


def _redirect(address: str, headers: dict[str, str]) -> Response:
    return WholeResponse(
        status=303,
        headers={
            "Location": address,
            "Cache-Control": "no-store",
            "Referrer-Policy": "no-referrer",
            **headers,
        },
    )


ENDPOINTS = (
    EndpointSpec(method="GET", path=f"{_PATH}/start", handler=_start),
    EndpointSpec(method="GET", path=f"{_PATH}/callback", handler=_callback),
)
