"""Requests that the gateway makes by itself for a caller, such as those of batches.

A request passes through the same functions as one that was received: the handler of its endpoint,
limits, fallback, usage, metrics, the access log and the request log. Only its connection is
missing.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Final, NamedTuple

from facade.context import Context
from facade.dispatch import Serve
from facade.endpoints import ENDPOINTS
from facade.failures import failed
from facade.http.exchange import Exchange
from facade.http.responses import Response, WholeResponse
from services.common.errors import internal
from services.common.process.byte_budget import Charge
from services.common.text.texts import parse_digits

_POST: Final = "POST"


class InternalResponse(NamedTuple):
    """The response to an internal request.

    Attributes:
        status: its HTTP status.
        body: its body.
        request_id: the id of the request.
        retry_after_s: the value of `Retry-After`; None without the header.
        tokens: input, output and cached tokens of the answer.
    """

    status: int
    body: bytes
    request_id: str
    retry_after_s: float | None
    tokens: tuple[int, int, int]


class InternalRequests:
    """Makes requests.

    Args:
        context: the dependencies of the handlers.
        serve: serves a request with its handler.
    """

    def __init__(self, context: Context, serve: Serve) -> None:
        self._context = context
        self._serve = serve
        self._handlers = {spec.path: spec.handler for spec in ENDPOINTS if spec.method == _POST}

    async def post(
        self, path: str, key: str, headers: Mapping[str, str], body: bytes
    ) -> InternalResponse:
        """Make a POST request with a JSON body, and return its response, whatever its status.

        Args:
            path: the path of the endpoint.
            key: the key of the caller, or one that stands for it.
            headers: headers, with names in lower case.
            body: the body.
        """
        connection = _NoConnection()
        sent = {**headers, "content-type": "application/json"}
        exchange = Exchange(self._context, connection, _POST, path, path, sent, body)
        exchange.checked.api_key = key
        response: Response
        try:
            response = await self._serve(exchange, self._handlers[path], needs_key=True)
        except ConnectionError:
            response = failed(exchange, internal())
        finally:
            connection.release()
        if not isinstance(response, WholeResponse):
            response = failed(exchange, internal())
        summary = exchange.answer_summary
        tokens = (0, 0, 0)
        if summary is not None:
            tokens = (summary.input_tokens, summary.output_tokens, summary.cache_read_tokens)
        return InternalResponse(
            response.status,
            response.body,
            exchange.request_id,
            _seconds(response.headers.get("Retry-After")),
            tokens,
        )


class _NoConnection:
    """A connection that nobody reads; see `ClientConnection`."""

    writing_paused = False
    peer_address = ""

    def __init__(self) -> None:
        self._charges: list[Charge] = []

    def write(self, data: bytes) -> None:
        """Discard data."""

    async def drain(self) -> None:
        """Return at once."""

    def authenticated(self) -> None:
        """Do nothing."""

    def hold(self, charge: Charge) -> None:
        """Hold a charge until `release`."""
        self._charges.append(charge)

    def holds(self, charge: Charge) -> bool:
        """Return whether a charge is held."""
        return charge in self._charges

    def release(self) -> None:
        """Release all charges."""
        for charge in self._charges:
            charge.release()
        self._charges.clear()


def _seconds(value: str | None) -> float | None:
    number = None if value is None else parse_digits(value)
    return None if number is None else float(number)


# Makes a request; `InternalRequests.post`.
Post = Callable[[str, str, Mapping[str, str], bytes], Awaitable[InternalResponse]]
