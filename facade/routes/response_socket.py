"""GET /beta/v1/responses: a WebSocket on which responses are requested."""

from functools import partial
from typing import Final

from facade.context import Context
from facade.endpoint import Answer, EndpointSpec
from facade.http.exchange import Exchange
from facade.http.responses import Respond, Response, SwitchedResponse
from facade.http.websocket import WebSocket
from facade.http.websocket_frames import VERSION, accept_of
from facade.http_errors import HttpExchangeError
from facade.response_socket import ResponseSocket
from facade.socket_exchange import RecentResponses, SocketHandshake
from services.common.errors import GatewayError, invalid

_KEY: Final = "sec-websocket-key"
_VERSION: Final = "sec-websocket-version"


async def connect(exchange: Exchange) -> Response:
    """Open a WebSocket.

    Raises:
        GatewayError: 426, the request opens none, or of another version; invalid, it has no key;
            rate_limited, the user has as many open as allowed.
    """
    if exchange.headers.get("upgrade", "").lower() != "websocket":
        raise _upgrade_required("GET opens a WebSocket; to create a response, send POST", {})
    if exchange.headers.get(_VERSION) != VERSION:
        raise _upgrade_required(
            f"Sec-WebSocket-Version: must be {VERSION}", {"Sec-WebSocket-Version": VERSION}
        )
    accept = accept_of(exchange.headers.get(_KEY, ""))
    if accept is None:
        raise invalid(_KEY, "Sec-WebSocket-Key: must be 16 bytes in base64")
    assert exchange.caller is not None, "it has been authenticated"
    context, user_id = exchange.context, exchange.caller.user_id
    context.sockets.check(user_id)
    handshake = SocketHandshake.of(exchange)
    recent = RecentResponses(exchange.charge())
    return SwitchedResponse(accept, partial(_serve, context, user_id, handshake, recent))


async def _serve(
    context: Context,
    user_id: str,
    handshake: SocketHandshake,
    recent: RecentResponses,
    socket: WebSocket,
    respond: Respond,
) -> None:
    with context.sockets.counted(user_id):
        await ResponseSocket(context, socket, handshake, respond, recent).serve()


def _upgrade_required(message: str, headers: dict[str, str]) -> GatewayError:
    error = HttpExchangeError(426, "upgrade_required", message)
    error.headers = {"Upgrade": "websocket", **headers}
    return error


ENDPOINTS = (
    EndpointSpec(
        method="GET",
        path="/beta/v1/responses",
        handler=connect,
        operation_id="connectResponses",
        summary="Open a WebSocket for responses",
        answer=Answer("The WebSocket is open", ()),
        answer_status=101,
    ),
)
