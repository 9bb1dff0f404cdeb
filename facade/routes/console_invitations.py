"""Invitations as whoever opens their links reads and accepts them.

The token is in the fragment of the link, which browsers do not send, and in the bodies of these
requests; it is not logged. Only requests with a JSON body accept an invitation, which neither
scanners of mail nor pages of other origins send.
"""

from typing import Annotated

import grpc
import orjson
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from facade.dialects import validation
from facade.dialects.json_schemas import (
    OPTIONAL_STRING,
    STRING,
    UNIX_SECONDS,
    JsonObject,
    open_object,
)
from facade.endpoint import Answer, Body, EndpointSpec
from facade.http.exchange import Exchange
from facade.http.responses import JsonResponse, Response
from facade.routes.console_oidc import attempt_cookie
from facade.routes.console_sessions import (
    EXAMPLE,
    ISSUER,
    SESSION,
    UNCACHED,
    issuer_of,
    metadata,
    session_response,
    short_body,
)
from facade.routes.generation import check_json
from gateway.accounts.v1 import sessions_pb2
from gateway.accounts.v1.sessions_pb2 import Role
from services.common.errors import from_rpc_error

_TOKEN = f"gwinvite-{'A' * 43}"
_ROLE: JsonObject = {"type": "string", "enum": ["viewer", "user", "team_admin", "admin"]}


class InvitationBody(BaseModel):
    """The invitation that a link has."""

    model_config = ConfigDict(extra="forbid", strict=True)

    token: Annotated[str, Field(description="Token of the link: `gwinvite-…`.")]


class AcceptBody(InvitationBody):
    """An invitation to accept."""

    user: Annotated[
        str,
        Field(description="Name of the new user; required if the invitation has none."),
    ] = ""


_READ = TypeAdapter(InvitationBody)
_ACCEPT = TypeAdapter(AcceptBody)


async def _read(exchange: Exchange) -> Response:
    """Return what an invitation offers, which changes nothing."""
    check_json(exchange)
    body = validation.read(_READ, await short_body(exchange))
    try:
        invitation = await exchange.context.sessions.ReadInvitation(
            sessions_pb2.ReadInvitationRequest(token=body.token), metadata=metadata(exchange)
        )
    except grpc.aio.AioRpcError as error:
        raise from_rpc_error(error) from None
    answer = {
        "role": Role.Name(invitation.role).removeprefix("ROLE_").lower(),
        "user": invitation.user or None,
        "team": invitation.team or None,
        "invited_by": invitation.invited_by or None,
        "expires_at": invitation.expires_at_ms // 1000,
        "oidc": issuer_of(exchange),
    }
    return JsonResponse(orjson.dumps(answer), UNCACHED)


async def _accept(exchange: Exchange) -> Response:
    """Create the user of an invitation, and begin a session."""
    check_json(exchange)
    body = validation.read(_ACCEPT, await short_body(exchange))
    request = sessions_pb2.AcceptInvitationRequest(token=body.token, user=body.user)
    try:
        accepted = await exchange.context.sessions.AcceptInvitation(
            request, metadata=metadata(exchange)
        )
    except grpc.aio.AioRpcError as error:
        raise from_rpc_error(error) from None
    return session_response(exchange, accepted.token, accepted.session, key=accepted.key)


async def _begin(exchange: Exchange) -> Response:
    """Begin the sign-in at the issuer that accepts an invitation; a cookie keeps the attempt."""
    check_json(exchange)
    body = validation.read(_READ, await short_body(exchange))
    request = sessions_pb2.BeginOidcSignInRequest(invitation=body.token)
    try:
        begun = await exchange.context.sessions.BeginOidcSignIn(
            request, metadata=metadata(exchange)
        )
    except grpc.aio.AioRpcError as error:
        raise from_rpc_error(error) from None
    answer = orjson.dumps({"location": begun.authorization_url})
    cookie = {"Set-Cookie": attempt_cookie(exchange, begun.attempt)}
    return JsonResponse(answer, {**UNCACHED, **cookie})


_PATH = "/console/invitation"
ENDPOINTS = (
    EndpointSpec(
        method="POST",
        path=_PATH,
        handler=_read,
        operation_id="readInvitation",
        summary="Read an invitation; this does not accept it",
        body=Body(InvitationBody, example={"token": _TOKEN}),
        answer=Answer(
            "What the invitation offers",
            [
                open_object(
                    {
                        "role": _ROLE,
                        "user": OPTIONAL_STRING,
                        "team": OPTIONAL_STRING,
                        "invited_by": OPTIONAL_STRING,
                        "expires_at": UNIX_SECONDS,
                        "oidc": ISSUER,
                    }
                )
            ],
            examples={
                "": {
                    "role": "user",
                    "user": "ada@example.com",
                    "team": "research",
                    "invited_by": "grace",
                    "expires_at": 1764806400,
                    "oidc": None,
                }
            },
        ),
    ),
    EndpointSpec(
        method="POST",
        path=f"{_PATH}/accept",
        handler=_accept,
        operation_id="acceptInvitation",
        summary="Accept an invitation: get a user and a key, and sign in to the console",
        body=Body(AcceptBody, example={"token": _TOKEN, "user": "ada"}),
        answer=Answer(
            "The session, and the key of the user, which is returned only once",
            [open_object({"session": SESSION, "oidc": ISSUER, "key": STRING})],
            examples={"": {**EXAMPLE, "key": f"gw-{'A' * 43}"}},
        ),
    ),
    EndpointSpec(
        method="POST",
        path=f"{_PATH}/issuer",
        handler=_begin,
        operation_id="acceptInvitationAtIssuer",
        summary="Begin the sign-in at the issuer that accepts an invitation",
        body=Body(InvitationBody, example={"token": _TOKEN}),
        answer=Answer(
            "The address to which the browser goes",
            [open_object({"location": STRING})],
            examples={"": {"location": "https://login.example.com/authorize?state=…"}},
        ),
    ),
)
