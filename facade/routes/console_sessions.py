"""Sessions of the console: sign-in with a one-time code or a key, and sign-out.

The code is in the fragment of a link that the gateway printed, which browsers do not send, and in
the body of a request; neither codes, keys nor tokens are logged. A body is JSON, which pages of
other origins cannot send, so none of them can sign a browser in.
"""

from typing import Annotated, Any

import grpc
import orjson
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from facade.bodies import PieceReader
from facade.dialects import validation
from facade.dialects.json_schemas import (
    BOOLEAN,
    OPTIONAL_STRING,
    STRING,
    UNIX_SECONDS,
    JsonObject,
    array,
    open_object,
)
from facade.endpoint import Answer, Body, EndpointSpec
from facade.http.exchange import Exchange
from facade.http.responses import JsonResponse, Response
from facade.http_errors import HttpExchangeError
from facade.routes.generation import check_json
from facade.sessions import csrf_token, session_cookie, session_token, set_cookie
from gateway.accounts.v1 import sessions_pb2
from gateway.accounts.v1.sessions_pb2 import Role, Session
from gateway.errors.v1 import errors_pb2
from services.common.client_address import FORWARDED_KEY, TrustedProxies
from services.common.errors import from_rpc_error, invalid, invalid_api_key
from services.common.grpc.authentication import call_metadata
from services.common.grpc.channels import REQUEST_ID_KEY, Metadata

# Maximum size of a body, in bytes.
_MAX_BODY = 1024
UNCACHED = {"Cache-Control": "no-store"}


class SignInBody(BaseModel):
    """The body of a sign-in."""

    model_config = ConfigDict(extra="forbid", strict=True)

    code: Annotated[
        str | None,
        Field(description="One-time code of a printed link. Valid once, within 10 minutes."),
    ] = None
    key: Annotated[str | None, Field(description="API key, in place of a code.")] = None


class UnlockBody(BaseModel):
    """The body of a request that unlocks administration."""

    model_config = ConfigDict(extra="forbid", strict=True)

    key: Annotated[str, Field(description="Admin key.")]


def or_null(schema: JsonObject) -> JsonObject:
    """Return a schema that also allows null."""
    return {"anyOf": [schema, {"type": "null"}]}


_SIGN_IN = TypeAdapter(SignInBody)
_UNLOCK = TypeAdapter(UnlockBody)
SESSION = open_object(
    {
        "user_id": STRING,
        "user": STRING,
        "team": OPTIONAL_STRING,
        "role": {"type": "string", "enum": ["viewer", "user", "team_admin", "admin"]},
        "admin_scopes": array(STRING),
        "may_unlock": BOOLEAN,
        "ends_at": UNIX_SECONDS,
        "csrf_token": STRING,
    }
)
ISSUER = or_null(open_object({"name": STRING}))
_STATE = open_object({"session": or_null(SESSION), "oidc": ISSUER})
EXAMPLE: JsonObject = {
    "session": {
        "user_id": "user_01",
        "user": "ada",
        "team": None,
        "role": "user",
        "admin_scopes": [],
        "may_unlock": True,
        "ends_at": 1764806400,
        "csrf_token": "0" * 64,
    },
    "oidc": None,
}


async def _sign_in(exchange: Exchange) -> Response:
    """Begin a session by a one-time code or an API key."""
    check_json(exchange)
    body = validation.read(_SIGN_IN, await short_body(exchange))
    if (body.code is None) == (body.key is None):
        raise invalid("code", "code, key: exactly one is required")
    request = sessions_pb2.CreateSessionRequest()
    if body.code is not None:
        request.code = body.code
    else:
        request.key = body.key or ""
    try:
        begun = await exchange.context.sessions.CreateSession(request, metadata=metadata(exchange))
    except grpc.aio.AioRpcError as error:
        raise from_rpc_error(error) from None
    return session_response(exchange, begun.token, begun.session)


async def _get(exchange: Exchange) -> Response:
    """Return the session of the cookie and the token that requests need; the cookie suffices."""
    context = exchange.context
    token = session_cookie(exchange.headers, context.settings.console.is_secure)
    if not token:
        return _state(exchange, None)
    try:
        found = await context.sessions.GetSession(
            sessions_pb2.GetSessionRequest(), metadata=metadata(exchange, token)
        )
    except grpc.aio.AioRpcError as error:
        failure = from_rpc_error(error)
        if failure.reason == errors_pb2.REASON_INVALID_API_KEY:
            return _state(exchange, None)
        raise failure from None
    return _state(exchange, _render(found.session, token))


async def _unlock(exchange: Exchange) -> Response:
    """Open to the session what an admin key opens."""
    check_json(exchange)
    token = _token(exchange)
    body = validation.read(_UNLOCK, await short_body(exchange))
    try:
        unlocked = await exchange.context.sessions.UnlockAdministration(
            sessions_pb2.UnlockAdministrationRequest(admin_key=body.key),
            metadata=metadata(exchange, token),
        )
    except grpc.aio.AioRpcError as error:
        raise from_rpc_error(error) from None
    return session_response(exchange, unlocked.token, unlocked.session)


async def _sign_out(exchange: Exchange) -> Response:
    """End the session, if there is one, and remove its cookie even if it has ended already."""
    is_secure = exchange.context.settings.console.is_secure
    if not session_cookie(exchange.headers, is_secure):
        return _state(exchange, None)
    token = _token(exchange)
    try:
        await exchange.context.sessions.EndSession(
            sessions_pb2.EndSessionRequest(), metadata=metadata(exchange, token)
        )
    except grpc.aio.AioRpcError as error:
        failure = from_rpc_error(error)
        if failure.reason != errors_pb2.REASON_INVALID_API_KEY:
            raise failure from None
    return _state(exchange, None, {"Set-Cookie": set_cookie(exchange.headers, is_secure, "", 0)})


def metadata(exchange: Exchange, token: str = "") -> Metadata:
    """Return the metadata of a call, with the address of the caller for the audit log."""
    proxies = TrustedProxies(exchange.context.settings.server.trusted_proxies)
    peer, forwarded = exchange.connection.peer_address, exchange.joined_header(FORWARDED_KEY)
    address = proxies.client_address(peer, forwarded) if peer else ""
    carried = (
        call_metadata(token, exchange.request_id)
        if token
        else ((REQUEST_ID_KEY, exchange.request_id),)
    )
    return (*carried, (FORWARDED_KEY, address))


def cookie_of(exchange: Exchange, token: str) -> str:
    """Return the value of `Set-Cookie` with the token of a new session."""
    console = exchange.context.settings.console
    return set_cookie(exchange.headers, console.is_secure, token, int(console.session_ttl_s))


def _token(exchange: Exchange) -> str:
    """Return the token of the session that sends a request.

    Raises:
        GatewayError: invalid_api_key, when there is none, or a page of another origin sends it.
    """
    token = session_token(exchange.headers, exchange.context.settings.console.is_secure)
    if not token:
        raise invalid_api_key("send the cookie of the session, and its x-csrf-token")
    return token


def session_response(exchange: Exchange, token: str, session: Session, **further: str) -> Response:
    """Return the response that begins a session, with its cookie and further fields."""
    cookie = {"Set-Cookie": cookie_of(exchange, token)}
    return _state(exchange, _render(session, token), cookie, **further)


def _state(
    exchange: Exchange,
    session: dict[str, Any] | None,
    headers: dict[str, str] | None = None,
    **further: str,
) -> Response:
    state = {"session": session, "oidc": issuer_of(exchange), **further}
    return JsonResponse(orjson.dumps(state), {**UNCACHED, **(headers or {})})


def issuer_of(exchange: Exchange) -> dict[str, str] | None:
    """Return the name of the issuer at which people sign in, or None."""
    oidc = exchange.context.settings.console.oidc
    return {"name": oidc.name} if oidc.issuer else None


def _render(session: Session, token: str) -> dict[str, Any]:
    return {
        "user_id": session.user_id,
        "user": session.user,
        "team": session.team or None,
        "role": Role.Name(session.role).removeprefix("ROLE_").lower(),
        "admin_scopes": [*session.admin_scopes],
        "may_unlock": session.may_unlock,
        "ends_at": session.ends_at_ms // 1000,
        "csrf_token": csrf_token(token),
    }


async def short_body(exchange: Exchange) -> bytes:
    """Return a body of at most `_MAX_BODY` bytes.

    Raises:
        GatewayError: too_large; as `PieceReader.next`.
    """
    body = exchange.take_body(_MAX_BODY, "")
    if body is not None:
        return body
    reader = PieceReader(exchange)
    received = b""
    while piece := await reader.next():
        received += piece
        if len(received) > _MAX_BODY:
            raise HttpExchangeError(
                413, "too_large", f"the body is larger than {_MAX_BODY:,} bytes"
            )
    return received


_ANSWER = Answer("The session, and how people sign in", [_STATE], examples={"": EXAMPLE})
_PATH = "/console/session"
ENDPOINTS = (
    EndpointSpec(
        method="POST",
        path=_PATH,
        handler=_sign_in,
        operation_id="createConsoleSession",
        summary="Sign in to the console with a one-time code or an API key",
        body=Body(SignInBody, example={"code": "A" * 43}),
        answer=_ANSWER,
    ),
    EndpointSpec(
        method="GET",
        path=_PATH,
        handler=_get,
        operation_id="getConsoleSession",
        summary="Get the session of the console's cookie",
        answer=_ANSWER,
    ),
    EndpointSpec(
        method="DELETE",
        path=_PATH,
        handler=_sign_out,
        operation_id="endConsoleSession",
        summary="Sign out of the console",
        answer=_ANSWER,
    ),
    EndpointSpec(
        method="POST",
        path=f"{_PATH}/unlock",
        handler=_unlock,
        operation_id="unlockAdministration",
        summary="Let the session make the admin calls that an admin key permits",
        body=Body(UnlockBody, example={"key": f"gwadmin-{'A' * 43}"}),
        answer=_ANSWER,
    ),
)
