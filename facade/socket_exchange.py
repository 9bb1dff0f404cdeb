"""Requests for responses that arrive on a WebSocket, and the responses that its connection keeps.

Each request is served as one of HTTP is, by the same functions. The events of its stream become
messages of the socket.
"""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, Self

from yarl import URL

from facade.context import Context
from facade.dialects.responses.socket_events import SocketRequest, messages_of
from facade.http.exchange import CheckedHead, Exchange
from facade.http.held_charges import HeldCharges
from facade.http.websocket import WebSocket
from gateway.memory.v1.responses_pb2 import ResponseItem
from services.common.errors import GatewayError
from services.common.process.byte_budget import Charge

# Bytes of the conversations that a connection keeps.
_MOST_KEPT: Final = 16 << 20
# Headers of the handshake that are not those of its requests.
_OF_HANDSHAKE: Final = frozenset(
    {
        *("connection", "upgrade", "content-length", "content-type", "x-request-id", "origin"),
        *("traceparent", "tracestate"),
    }
)
_PREFIX: Final = "sec-websocket-"
_JSON: Final = "application/json"


class RecentResponses:
    """The last response of each stream of a socket, for requests that continue it.

    Responses that are stored are read from there instead.

    Args:
        charge: the bytes reserved for them, until `release`.
    """

    def __init__(self, charge: Charge) -> None:
        self._charge = charge
        # By stream: the id of the response, and its conversation; the latest is the last.
        self._last: OrderedDict[str, tuple[str, Sequence[ResponseItem]]] = OrderedDict()

    def items(self, response_id: str | None) -> Sequence[ResponseItem] | None:
        """Return the conversation up to the end of a response; None if it is not kept."""
        for kept_id, items in self._last.values():
            if kept_id == response_id:
                return items
        return None

    def keep(self, stream_id: str, response_id: str, items: Sequence[ResponseItem]) -> None:
        """Keep a response in place of the last one of its stream, if there is room for it."""
        self._remove(stream_id)
        size = _size(items)
        while self._last and self._charge.size + size > _MOST_KEPT:
            self._remove(next(iter(self._last)))
        if size > _MOST_KEPT:
            return
        try:
            self._charge.reserve(size)
        except GatewayError:
            return  # the client sends the conversation again
        self._last[stream_id] = response_id, items

    def release(self) -> None:
        """Forget all responses."""
        self._last.clear()
        self._charge.release()

    def _remove(self, stream_id: str) -> None:
        removed = self._last.pop(stream_id, None)
        if removed is not None:
            self._charge.release(_size(removed[1]))


def _size(items: Sequence[ResponseItem]) -> int:
    return sum([len(item.json) for item in items])


class SocketHandshake(NamedTuple):
    """The request that opened a socket: what its requests have in common.

    Attributes:
        url: the address of the endpoint.
        headers: the headers, with names in lower case.
        checked: the results of the checks of the head.
    """

    url: URL
    headers: Mapping[str, str]
    checked: CheckedHead

    @classmethod
    def of(cls, exchange: Exchange) -> Self:
        """Return the handshake of a socket."""
        names = {name.lower() for name in exchange.headers} - _OF_HANDSHAKE
        headers = {
            name: exchange.joined_header(name) for name in names if not name.startswith(_PREFIX)
        }
        return cls(URL(exchange.path), {**headers, "content-type": _JSON}, exchange.checked)


class SocketExchange(Exchange):
    """A request that arrived as a message of a socket, and its response.

    Attributes:
        recent: the responses that its connection keeps.
        stream_id: the stream of the socket that it belongs to; "" without one.
        generates: whether output is generated; otherwise its conversation is only kept.
    """

    def __init__(
        self,
        context: Context,
        connection: "MessageConnection",
        handshake: SocketHandshake,
        request: SocketRequest,
        recent: RecentResponses,
    ) -> None:
        """Create an exchange; see `Exchange` and the attributes."""
        super().__init__(
            context,
            connection,
            "POST",
            handshake.url.path,
            "unknown",
            dict(handshake.headers),
            request.body,
            checked=handshake.checked,
            url=handshake.url,
        )
        self.takes_headers = connection.take_headers
        self.recent = recent
        self.stream_id = request.stream_id or ""
        self.generates = request.generates


class MessageConnection(HeldCharges):
    """A connection that sends the events of one response as messages; see `ClientConnection`.

    Args:
        socket: the socket.
        stream_id: the stream of the socket that the request belongs to, if any.
    """

    def __init__(self, socket: WebSocket, stream_id: str | None) -> None:
        super().__init__()
        self._socket = socket
        self._stream_id = stream_id
        self._headers: dict[str, str] = {}

    def take_headers(self, headers: Mapping[str, str]) -> None:
        """Take the headers of a response that begins."""
        self._headers |= headers

    @property
    def writing_paused(self) -> bool:
        """Whether the client reads more slowly than data is written."""
        return self._socket.connection.writing_paused

    @property
    def peer_address(self) -> str:
        """The network address of the peer."""
        return self._socket.connection.peer_address

    def write(self, data: bytes) -> None:
        """Send events.

        Raises:
            ConnectionError: the client has left.
        """
        for message in messages_of(data, self._stream_id, self._headers):
            self._socket.send(message)

    async def drain(self) -> None:
        """Wait while the client does not read; raises as `write`."""
        await self._socket.drain()

    def authenticated(self) -> None:
        """Do nothing: the handshake had a valid key."""
