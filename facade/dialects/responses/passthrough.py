"""Passthrough of responses of providers of this dialect.

The gateway sets the id of the response, the members about storage, and the sequence numbers of
events.
"""

import re

import orjson

from facade.dialects.responses.state import UNKEPT, Echo
from facade.dialects.responses.writer import EventWriter

_TYPE = re.compile(rb'\{"type":"([a-z_.]+)"')
# The beginning of an event with its sequence number where OpenAI writes it, up to the end of the id
# of its response object, if that follows.
_HEAD = re.compile(
    rb'\{"type":"([a-z_.]+)","sequence_number":(\d{1,15}),(?:"response":\{"id":"([^"]*))?'
)
# Between the lines of a server-sent event, and at its end.
_DATA, _BLANK = b"\ndata: ", b"\n\n"
# The beginning of a server-sent event with a whole item, up to its data.
_ITEM_LINE = b"event: response.output_item.done\ndata: "
# Before the response object of an event, which is its last member.
_RESPONSE = b'"response":'
# Not found inside a string, where the quotes would be escaped.
_NUMBER = re.compile(rb'"sequence_number"\s*:\s*\d+')
# The beginning of a response object, up to its id: the usual one, and with any white space.
_USUALLY = b'{"id":"'
_BEGINNING = re.compile(rb'\s*\{\s*"id"\s*:\s*"')
_QUOTE = b'"'
# As integers, which are found in a sixth of the time of bytes objects.
_LF, _CR = b"\n\r"
# Events with a response object; the last ones end the answer.
_CREATIONS = (b"response.created", b"response.queued")
_BEGINNINGS = (*_CREATIONS, b"response.in_progress")
_ENDS = (b"response.completed", b"response.incomplete", b"response.failed")
_WITH_RESPONSE = frozenset((*_BEGINNINGS, *_ENDS))
_ITEM_DONE = b"response.output_item.done"


def passthrough_response(body: bytes, response_id: str, echo: Echo) -> bytes:
    """Return a provider's response object with the gateway's id and state.

    Args:
        body: the object as JSON, with the state of a response that is not stored.
        response_id: the gateway's id.
        echo: has the state.
    """
    begin = 0
    if body.startswith(_USUALLY):
        begin = len(_USUALLY)
    elif beginning := _BEGINNING.match(body):
        begin = beginning.end()
    if not begin or echo.state != UNKEPT:
        state = orjson.loads(b"{%b}" % echo.state)
        return orjson.dumps({**orjson.loads(body), "id": response_id, **state})
    return b"".join((_USUALLY, response_id.encode(), body[body.index(_QUOTE, begin) :]))


class PassthroughEvents:
    """Writes a provider's events unchanged, except for the gateway's id and state.

    The event that ends the answer is held, as the response may have to be stored before it.

    Attributes:
        response: the response object, once the event that ends the answer has arrived.
    """

    def __init__(
        self, writer: EventWriter, response_id: str, echo: Echo, *, is_queued: bool = False
    ) -> None:
        """Create a writer of events that continues the sequence numbers of `writer`.

        If the response `is_queued`, the event of its creation has been written already.
        """
        self._is_queued = is_queued
        self._end: tuple[bytes, bytes, re.Match[bytes] | None] | None = None
        self._writer = writer
        self._id = response_id
        self._echo = echo
        self._items: list[bytes] = []  # events with complete items
        self.response = b""

    def write(self, event: bytes) -> None:
        """Write an event of the provider, a JSON object.

        If it has a response object, that is usually its last member; see `passthrough_response`.
        """
        if _LF in event or _CR in event:
            # Line breaks are white space here, as JSON strings escape them.
            event = event.replace(b"\r", b" ").replace(b"\n", b" ")
        head = _HEAD.match(event)
        begin = head or _TYPE.match(event)
        kind = begin[1] if begin else str(orjson.loads(event).get("type")).encode()
        if self._is_queued and kind in _CREATIONS:
            return
        if kind in _WITH_RESPONSE:
            if head is not None and head[3] is not None and self._echo.state is UNKEPT:
                # The usual case, with the same result as `passthrough_response`.
                parts = event[: head.start(3)], self._id.encode(), event[head.end(3) :]
                event = b"".join(parts)
                if kind in _ENDS:
                    self.response = event[_end_of(head) + len(_RESPONSE) : -1]
            else:
                at = _end_of(head) if head else begin.end() if begin else 0
                event = self._with_response(kind, event, at)
        elif kind == _ITEM_DONE:
            self._items.append(event)
        if kind in _ENDS:
            self._end = kind, event, head
        else:
            self._write(kind, event, head)

    def write_run(self, text: bytes, count: int, number: int) -> None:
        """Write events of the provider that are server-sent events already.

        Args:
            text: the events.
            count: the number of events; only the last one may have a whole item.
            number: sequence number of the first event; the others have the next ones.
        """
        writer = self._writer
        if number == writer.number:
            writer.number += count
            writer.out.append(text)
            # Each has two lines; single characters are found many times faster.
            begin = text.rfind(b"\n", 0, text.rfind(b"\n", 0, -len(_BLANK))) + 1
            if text.startswith(_ITEM_LINE, begin):
                self._items.append(text[begin + len(_ITEM_LINE) : -len(_BLANK)])
            return
        for event in text.split(_BLANK)[:-1]:
            self.write(event.partition(_DATA)[2])

    def write_end(self) -> None:
        """Write the event that ends the answer."""
        if self._end is not None:
            self._write(*self._end)

    def _write(self, kind: bytes, event: bytes, head: re.Match[bytes] | None) -> None:
        number = self._writer.number
        self._writer.number = number + 1
        numbered = _numbered(event, head, number)
        self._writer.out.append(b"event: %b\ndata: %b\n\n" % (kind, numbered))

    def items(self) -> list[bytes]:
        """Return the complete items as JSON."""
        return [orjson.dumps(orjson.loads(event)["item"]) for event in self._items]

    def _with_response(self, kind: bytes, event: bytes, at: int) -> bytes:
        """Return an event with the gateway's response object; `at` is the end of its head."""
        if event.startswith(_RESPONSE, at):
            begin = at + len(_RESPONSE)
            response = passthrough_response(event[begin:-1], self._id, self._echo)
            written = b"%b%b}" % (event[:begin], response)
        else:
            fields = orjson.loads(event)
            response = orjson.dumps(fields["response"])
            response = passthrough_response(response, self._id, self._echo)
            written = orjson.dumps({**fields, "response": orjson.Fragment(response)})
        if kind in _ENDS:
            self.response = response
        return written


def _end_of(head: re.Match[bytes]) -> int:
    """Return the end of a head, before the response object if there is one."""
    return head.end(2) + 1


def _numbered(event: bytes, head: re.Match[bytes] | None, number: int) -> bytes:
    """Return an event with a sequence number; `head` is the match of its beginning, if any."""
    if head is not None:
        if int(head[2]) == number:
            return event
        return b'{"type":"%b","sequence_number":%d,%b' % (head[1], number, event[_end_of(head) :])
    numbers = _NUMBER.findall(event)
    if len(numbers) == 1:
        return _NUMBER.sub(b'"sequence_number":%d' % number, event)
    return orjson.dumps({**orjson.loads(event), "sequence_number": number})
