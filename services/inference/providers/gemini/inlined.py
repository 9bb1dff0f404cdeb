"""Cuts the answers out of a batch of Google's, which holds them all, as it is received."""

import re
from typing import Final

from services.common.http import TooLargeError

_KEY: Final = b"inlinedResponses"
_STRUCTURE: Final = re.compile(rb'["{}\[\]]')
_STRING_END: Final = re.compile(rb'["\\]')


class AnswerCutter:
    """Splits JSON into the objects of each array named `inlinedResponses`, and the rest.

    Args:
        max_bytes: maximum bytes of an object, and of the rest.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._depth = 0
        self._array_depth = 0  # that of the items of the array; 0 outside
        self._is_string = self._is_escaped = self._is_item = False
        self._name = b""  # the beginning of the last string outside items
        self._item: list[bytes] = []
        self._rest: list[bytes] = []
        self._sizes = {False: 0, True: 0}

    @property
    def rest(self) -> bytes:
        """The JSON received until now, in which these arrays are empty."""
        return b"".join(self._rest)

    def feed(self, piece: bytes) -> list[bytes]:
        """Return the objects that end in the next piece.

        Raises:
            TooLargeError: an object or the rest is too large.
        """
        items: list[bytes] = []
        start = position = 0
        while position < len(piece):
            if self._is_string:
                position = self._skip_string(piece, position)
                continue
            mark = _STRUCTURE.search(piece, position)
            if mark is None:
                break
            position = mark.end()
            start = self._on_mark(piece, start, mark.start(), items)
        self._keep(piece[start:])
        return items

    def _skip_string(self, piece: bytes, position: int) -> int:
        """Return the position after a string, or that of the end of the piece."""
        if self._is_escaped:
            self._is_escaped = False
            return position + 1
        end = _STRING_END.search(piece, position)
        stop = len(piece) if end is None else end.start()
        if not self._is_item and len(self._name) <= len(_KEY):
            self._name += piece[position : min(stop, position + len(_KEY) + 1)]
        if end is None:
            return stop
        self._is_escaped = end[0] == b"\\"
        self._is_string = self._is_escaped
        return end.end()

    def _on_mark(self, piece: bytes, start: int, place: int, items: list[bytes]) -> int:
        """Note a quote or a bracket; return where what is not kept yet begins."""
        mark = piece[place : place + 1]
        if mark == b'"':
            self._is_string = True
            self._name = self._name if self._is_item else b""
        elif mark in b"{[":
            self._depth += 1
            if not self._array_depth:
                if mark == b"[" and self._name == _KEY:
                    self._keep(piece[start : place + 1])
                    self._array_depth = self._depth
            elif self._depth == self._array_depth + 1:
                self._is_item = True
                return place
        else:
            self._depth -= 1
            if self._is_item and self._depth == self._array_depth:
                self._keep(piece[start : place + 1])
                items.append(b"".join(self._item))
                self._item.clear()
                self._sizes[True] = 0
                self._is_item = False
            elif self._array_depth and self._depth < self._array_depth:
                self._array_depth = 0
                return place
        return start

    def _keep(self, part: bytes) -> None:
        """Add a part to the object or to the rest that it belongs to.

        Raises:
            TooLargeError: that is too large.
        """
        if self._array_depth and not self._is_item:
            return  # what stands between objects
        self._sizes[self._is_item] += len(part)
        if self._sizes[self._is_item] > self._max_bytes:
            raise TooLargeError
        (self._item if self._is_item else self._rest).append(part)
