"""Fast parsing of stream events that differ only in one string. Pure.

Nearly all events of a stream are the same bytes around a short text. Once one event has been
parsed, events with the same bytes around another text are recognised and not parsed. The text stays
escaped, as the inside of a JSON string, and can be copied into other JSON.

This is correct because the quotes around the text delimit one JSON string, whatever valid string
stands between them, so two such events differ only in that string. And `said`, which returns the
text of an event, was tested to return this string, by replacing it with another one.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any

import orjson

from gateway.inference.v1.inference_pb2 import Event
from services.inference.providers.sse import BLANK, read_event

# Returns the only string that an event's JSON adds, or None if the event does anything else. An
# event with another non-empty string in its place must add that one and do nothing else.
Said = Callable[[Any], str | None]

# The inside of a JSON string (RFC 8259, section 7) in well-formed UTF-8 (RFC 3629, section 4), with
# paired surrogates, so that it is valid by itself.
STRING = rb"""(?:
      [ !\x23-\x5b\x5d-\x7f]++
    | \\ (?: ["\\/bfnrt]
           | u (?: [0-9A-Ca-cEFef][0-9A-Fa-f] | [Dd][0-7] ) [0-9A-Fa-f]{2}
           | u[Dd][89ABab][0-9A-Fa-f]{2} \\u[Dd][C-Fc-f][0-9A-Fa-f]{2} )
    | [\xc2-\xdf][\x80-\xbf]
    | \xe0[\xa0-\xbf][\x80-\xbf]
    | [\xe1-\xec\xee\xef][\x80-\xbf]{2}
    | \xed[\x80-\x9f][\x80-\xbf]
    | \xf0[\x90-\xbf][\x80-\xbf]{2}
    | [\xf1-\xf3][\x80-\xbf]{3}
    | \xf4[\x80-\x8f][\x80-\xbf]{2}
    )++"""
_LETTERS = re.compile(STRING, re.VERBOSE)
# Several strings, joined by a separator that occurs in none of them.
_BREAK = b"\n"
_MANY_LETTERS = re.compile(rb"%b(?:\n%b)*+" % (STRING, STRING), re.VERBOSE)
_PADDING = re.compile(rb"[0-9A-Za-z+/=_-]*+")
# Replaces a string to test its effect.
_OTHER = "?"
# Templates learnt in a row without a match before learning stops.
_PATIENCE = 8


class DeltaTemplates:
    """Recognises repeated events of one stream.

    Args:
        said: returns the text of an event.
        padding: name of a meaningless member at the end of the JSON, with another string in each
            event; "" if the provider has none.
    """

    def __init__(self, said: Said, padding: str = "") -> None:
        self._said = said
        self._padding = b',"%b":"' % padding.encode() if padding else b""
        self._head = self._tail = self._end = b""
        self._example: tuple[bytes, str] | None = None
        self._unfit = 0

    def forget(self) -> None:
        """Forget the templates: the state that they depend on may have changed."""
        self._head, self._example = b"", None

    def learn(self, event: bytes, text: str) -> None:
        """Learn the template of an event, if its bytes allow it.

        Args:
            event: its text up to the next event, as returned by `SseSplitter`.
            text: its text, which must be the last output of the event.
        """
        # It is looked at when there is another one, for this one has to go out first.
        self._example = event, text

    def repeats(self, text: bytes, at: int) -> tuple[list[bytes], int]:
        """Return the texts of matching events from `at` on, and the end of the last one.

        Each text is the non-empty inside of a JSON string.
        """
        if self._example is not None:
            example, self._example = self._example, None
            self._look_at(*example, text, at)
        pieces, at = self._one_by_one(text, at) if self._end else self._at_once(text, at)
        if pieces:
            self._unfit = 0
        return pieces, at

    def _at_once(self, text: bytes, at: int) -> tuple[list[bytes], int]:
        """Match events from `at` on by splitting at the bytes between their texts."""
        head, tail = self._head, self._tail
        if not head or not text.startswith(head, at):
            return [], at
        if text.find(BLANK, at) + len(BLANK) == len(text):
            return self._one_by_one(text, at)  # there is one event
        # Split at a short separator: CPython 3.11 prepares the search for a long separator anew
        # after each match, which takes longer than the search.
        events = text[at:].split(BLANK)
        last = tail.removesuffix(BLANK)
        between = slice(len(head), -len(last))
        while events and not (events[-1].startswith(head) and events[-1].endswith(last)):
            events.pop()
        pieces = [event[between] for event in events]
        known = b"%b%b%b" % (head, (tail + head).join(pieces), tail)
        letters = _BREAK.join(pieces)
        if (
            text.startswith(known, at)
            and _MANY_LETTERS.fullmatch(letters)
            # A separator within a string would not be a valid string.
            and letters.count(_BREAK) == len(pieces) - 1
        ):
            return pieces, at + len(known)
        # Another event is among them.
        return self._one_by_one(text, at)

    def _one_by_one(self, text: bytes, at: int) -> tuple[list[bytes], int]:
        """Match events from `at` on one by one."""
        head, tail, end = self._head, self._tail, self._end
        pieces: list[bytes] = []
        while head and text.startswith(head, at):
            begin = at + len(head)
            letters = _LETTERS.match(text, begin)
            if letters is None:
                break
            stop = letters.end()
            if not text.startswith(tail, stop):
                break
            after = stop + len(tail)
            if end:
                after = _after_padding(text, after)
                if not text.startswith(end, after):
                    break
                after += len(end)
            pieces.append(text[begin:stop])
            at = after
        return pieces, at

    def _look_at(self, event: bytes, said: str, text: bytes, at: int) -> None:
        """Learn the template of an event, unless the next one, at `at`, begins with others."""
        if self._unfit >= _PATIENCE:
            return  # every event has its own id, or other events lie between any two
        self._unfit += 1
        letters = said.encode()
        begin = event.rfind(b'"%b"' % letters) + 1
        if not (begin and text.startswith(event[:begin], at)):
            return
        if said == _OTHER or self._read(event) != said:
            return
        head, tail, end = event[:begin], event[begin + len(letters) :], b""
        if self._padding and self._padding in tail:
            padded = tail.rindex(self._padding) + len(self._padding)
            tail, end = tail[:padded], tail[_after_padding(tail, padded) :]
        if self._read(head + _OTHER.encode() + tail + end) == _OTHER:
            self._head, self._tail, self._end = head, tail, end

    def _read(self, event: bytes) -> str | None:
        sent, _ = read_event(event, 0)
        if sent is None:
            return None
        try:
            return self._said(orjson.loads(sent.data))
        except orjson.JSONDecodeError:
            return None


def delta_of(choice: int, block: int, kind: str, pieces: Sequence[bytes]) -> Event:
    """Return one delta event of a kind, such as `text`, from consecutive pieces."""
    event = Event(choice=choice, block=block)
    setattr(event, kind, orjson.loads(b'"%b"' % b"".join(pieces)))
    if len(pieces) > 1:
        event.pieces.extend(pieces)
    return event


def _after_padding(text: bytes, at: int) -> int:
    match = _PADDING.match(text, at)
    assert match is not None, "it matches anything"
    return match.end()
