"""Sign-in to the console with the one-time code of a link that the gateway printed.

The code is in the fragment of the link, which browsers do not send, and in the body of this
request; neither is logged.
"""

from typing import Annotated

import grpc
import orjson
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from facade.bodies import PieceReader
from facade.dialects import validation
from facade.dialects.json_schemas import STRING, open_object
from facade.endpoint import Answer, Body, EndpointSpec
from facade.http.exchange import Exchange
from facade.http.responses import JsonResponse, Response
from facade.http_errors import HttpExchangeError
from facade.routes.generation import check_json
from gateway.accounts.v1.accounts_pb2 import RedeemSignInCodeRequest
from services.common.errors import from_rpc_error
from services.common.grpc.channels import REQUEST_ID_KEY

# Maximum size of a body, in bytes.
_MAX_BODY = 1024


class SignInBody(BaseModel):
    """The body of a sign-in."""

    model_config = ConfigDict(extra="forbid", strict=True)

    code: Annotated[
        str, Field(description="One-time code of the printed link. Valid once, within 10 minutes.")
    ]


_BODY = TypeAdapter(SignInBody)


async def _sign_in(exchange: Exchange) -> Response:
    """Return the development key for a one-time code."""
    check_json(exchange)
    body = validation.read(_BODY, await _short_body(exchange))
    try:
        redeemed = await exchange.context.accounts.RedeemSignInCode(
            RedeemSignInCodeRequest(code=body.code),
            metadata=((REQUEST_ID_KEY, exchange.request_id),),
        )
    except grpc.aio.AioRpcError as error:
        raise from_rpc_error(error) from None
    return JsonResponse(orjson.dumps({"key": redeemed.key}), {"Cache-Control": "no-store"})


async def _short_body(exchange: Exchange) -> bytes:
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


ENDPOINTS = (
    EndpointSpec(
        method="POST",
        path="/console/sign-in",
        handler=_sign_in,
        operation_id="signInToConsole",
        summary="Exchange the one-time code of a console link for the development key",
        body=Body(SignInBody),
        answer=Answer("The key", [open_object({"key": STRING})]),
    ),
)
