"""Decoding of the free text in the arguments of functions in place of custom tools."""

import re

import orjson

from services.inference.client_tools.custom import INPUT

# The arguments up to the text, and the positions in them at which white space is allowed.
_HEAD = '{"input":"'
_GAPS = frozenset({0, 1, _HEAD.index(":"), len(_HEAD) - 1})
_WHITE = " \t\r\n"
_SPECIAL = re.compile(r'["\\]')
_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_HIGH, _LOW = range(0xD800, 0xDC00), range(0xDC00, 0xE000)
_UNKNOWN = "\ufffd"


class InputDecoder:
    """Incremental decoder of the text in the arguments `{"input": "…"}`.

    Arguments that begin otherwise are buffered until they end. If they are an object with an
    `input`, that is the text; arguments without an object are the text themselves.
    """

    __slots__ = ("_has_ended", "_head", "_held", "_high", "_is_text", "_rest")

    def __init__(self) -> None:
        self._head = 0  # characters of `_HEAD` that have arrived
        self._held: list[str] = []  # the arguments, until the text begins
        self._is_text = False  # whether the text has begun
        self._has_ended = False
        self._rest = ""  # the beginning of an escape
        self._high = 0  # the first half of a surrogate pair

    def feed(self, json: str) -> str:
        """Decode a piece of the arguments; return the text in it."""
        if self._is_text:
            return self._decode(json)
        self._held.append(json)
        for place, char in enumerate(json):
            if self._head < 0:
                break
            if char == _HEAD[self._head]:
                self._head += 1
                if self._head == len(_HEAD):
                    self._is_text = True
                    self._held.clear()
                    return self._decode(json[place + 1 :])
            elif not (char in _WHITE and self._head in _GAPS):
                self._head = -1
        return ""

    def end(self) -> str:
        """Return the rest of the text at the end of the arguments."""
        if self._is_text:
            return self._lone()
        return _text_of("".join(self._held))

    def _decode(self, json: str) -> str:
        if self._has_ended:
            return ""
        json, self._rest = self._rest + json, ""
        pieces: list[str] = []
        place = 0
        while escape := _SPECIAL.search(json, place):
            start = escape.start()
            self._plain(json[place:start], pieces)
            if json[start] == '"':
                self._has_ended = True
                pieces.append(self._lone())
                return "".join(pieces)
            length = 6 if json[start + 1 : start + 2] == "u" else 2
            if len(json) < start + length:
                self._rest = json[start:]
                return "".join(pieces)
            self._escape(json[start + 1 : start + length], pieces)
            place = start + length
        self._plain(json[place:], pieces)
        return "".join(pieces)

    def _plain(self, text: str, pieces: list[str]) -> None:
        if text:
            pieces += (self._lone(), text)

    def _escape(self, escape: str, pieces: list[str]) -> None:
        if len(escape) == 1:
            self._plain(_ESCAPES.get(escape, escape), pieces)
            return
        try:
            code = int(escape[1:], 16)
        except ValueError:
            code = ord(_UNKNOWN)
        if self._high and code in _LOW:
            pieces.append(chr(0x10000 + ((self._high - 0xD800) << 10) + (code - 0xDC00)))
            self._high = 0
            return
        pieces.append(self._lone())
        if code in _HIGH:
            self._high = code
        else:
            pieces.append(_UNKNOWN if code in _LOW else chr(code))

    def _lone(self) -> str:
        """Return U+FFFD for a high surrogate whose low surrogate has not arrived, else ""."""
        high, self._high = self._high, 0
        return _UNKNOWN if high else ""


def _text_of(arguments: str) -> str:
    try:
        parsed = orjson.loads(arguments)
    except orjson.JSONDecodeError:
        return arguments
    if isinstance(parsed, dict) and not parsed:
        return ""
    text = parsed.get(INPUT) if isinstance(parsed, dict) else parsed
    return text if isinstance(text, str) else arguments
