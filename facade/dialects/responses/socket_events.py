"""Messages of a WebSocket with responses: OpenAI's WebSocket mode. Pure.

A client's message is the body of `POST /v1/responses` with members of its own: `type`, `stream_id`
and `generate`. The gateway's messages are the events of a stream, with the members `stream_id`, if
the request had one, and `headers` in the first event of each response, for what HTTP has in its
head.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import orjson
from msgspec import Raw
from msgspec.json import encode

from facade.dialects.openai.errors import error_object
from facade.dialects.verbatim import fields_of
from services.common.errors import GatewayError, invalid
from services.common.text.texts import cut, quoted

_CREATE: Final = "response.create"
STEER: Final = "response.steer"
_MAX_STREAM_ID: Final = 128
_SHOWN_TYPE: Final = 64
# The end of an event, the beginning of its data, and of a comment with a header of the gateway.
_BLANK, _DATA, _HEADER = b"\n\n", b"data: ", b": x-gateway-"
# The event before `response.failed`, which has the error, too. On a socket, an event of this type
# has another form, and is the only one of its request.
_ERROR: Final = b"event: error\n"
# Headers of an error that its event repeats.
_OF_ERRORS: Final = frozenset({"retry-after", "x-request-id", "x-should-retry"})


class SocketRequest(NamedTuple):
    """A request for a response.

    Attributes:
        body: the body of the same request over HTTP, for a stream.
        stream_id: the stream of the socket that it belongs to, if any.
        generates: whether output is generated; otherwise its conversation is only kept.
    """

    body: bytes
    stream_id: str | None
    generates: bool


class UnreadError(Exception):
    """Error raised for a client's message that is no request.

    Attributes:
        failure: the error to send.
        stream_id: the stream of the message, if it has one.
        steered: the message, if it steers a response.
    """

    def __init__(
        self, failure: GatewayError, stream_id: str | None, steered: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(failure.message)
        self.failure = failure
        self.stream_id = stream_id
        self.steered = steered


def read_message(message: bytes) -> SocketRequest:
    """Return the request in a client's message.

    Raises:
        UnreadError: it is none, or has an invalid member of its own.
    """
    fields = fields_of(message)
    if fields is None:
        raise UnreadError(invalid("", "the message must be a JSON object in UTF-8"), None)
    stream_id = _value(fields, "stream_id")
    if stream_id is not None and not (
        isinstance(stream_id, str)
        and 1 <= len(stream_id) <= _MAX_STREAM_ID
        and stream_id.isprintable()
    ):
        failure = invalid(
            "stream_id", f"stream_id: must be 1 to {_MAX_STREAM_ID} printable characters"
        )
        failure.upstream_code = "invalid_stream_id"
        raise UnreadError(failure, None)
    try:
        return _request(message, fields, stream_id)
    except GatewayError as error:
        steered = orjson.loads(message) if _value(fields, "type") == STEER else None
        raise UnreadError(error, stream_id, steered) from None


def _request(message: bytes, fields: dict[str, Raw], stream_id: str | None) -> SocketRequest:
    kind = _value(fields, "type")
    if kind != _CREATE:
        shown = quoted(cut(kind, _SHOWN_TYPE)) if isinstance(kind, str) else "that"
        raise invalid("type", f"type: must be {_CREATE}, not {shown}")
    generates = _value(fields, "generate")
    if generates not in (None, True, False):
        raise invalid("generate", "generate: must be true or false")
    if _value(fields, "background"):
        raise invalid(
            "background", "background: not supported over a WebSocket; use POST /v1/responses"
        )
    for name in ("type", "stream_id", "generate", "background"):
        fields.pop(name, None)
    fields["stream"] = Raw(b"true")
    return SocketRequest(encode(fields), stream_id, generates is not False)


def _value(fields: Mapping[str, Raw], name: str) -> Any:
    """Return the value of a member, which is null if it is absent or not valid JSON."""
    try:
        return orjson.loads(bytes(fields[name])) if name in fields else None
    except orjson.JSONDecodeError:
        return None


def messages_of(events: bytes, stream_id: str | None, headers: dict[str, str]) -> Iterator[bytes]:
    """Yield the messages of server-sent events, but for the event `error`.

    Args:
        events: whole events, each with one line of data, and comments.
        stream_id: the stream of their request.
        headers: headers that have not been sent; the first event has them, and they are removed.
    """
    for event in events.split(_BLANK):
        begin = event.find(_DATA)
        if event.startswith(_ERROR):
            continue
        if begin >= 0:
            yield _with_members(event[begin + len(_DATA) :], stream_id, headers)
        elif event.startswith(_HEADER):
            name, _, value = event[2:].decode().partition(": ")
            headers[name] = value


def _with_members(event: bytes, stream_id: str | None, headers: dict[str, str]) -> bytes:
    members: dict[str, Any] = {}
    if stream_id is not None:
        members["stream_id"] = stream_id
    if headers:
        members["headers"] = headers
    if not members:
        return event
    written = orjson.dumps(members)
    headers.clear()
    return b"%b,%b" % (event[: event.rindex(b"}")], written[1:])


def error_message(
    status: int, body: bytes, headers: Mapping[str, str], stream_id: str | None
) -> bytes:
    """Return the message of a request that failed before its stream began.

    Args:
        status: the HTTP status.
        body: the body of the response over HTTP.
        headers: its headers.
        stream_id: the stream of the request.
    """
    error = orjson.loads(body)["error"]
    repeated = {name.lower(): value for name, value in headers.items()}
    shown = {name: value for name, value in repeated.items() if name in _OF_ERRORS}
    return _error(status, {**error, "headers": shown} if shown else error, stream_id)


def failure_message(error: GatewayError, stream_id: str | None) -> bytes:
    """Return the message of an error that belongs to no request."""
    return _error(error.http_status, error_object(error), stream_id)


def _error(status: int, error: Mapping[str, Any], stream_id: str | None) -> bytes:
    event: dict[str, Any] = {"type": "error", "status": status, "error": error}
    if stream_id is not None:
        event["stream_id"] = stream_id
    return orjson.dumps(event)


def steer_failed(steered: Mapping[str, Any]) -> bytes:
    """Return the answer to a message that steers a response, which no provider can do here."""
    error = {
        "type": "invalid_request_error",
        "code": "steering_not_supported",
        "message": "The gateway does not steer responses; send the input with the next "
        "response.create.",
    }
    steer = {name: steered.get(name) for name in ("previous_response_id", "input")}
    event = {"type": "response.steer.failed", "sequence_number": 0, "error": error, "steer": steer}
    return orjson.dumps(event)
