"""Fast parsing of stream events that differ only in one string. Pure.

Nearly all events of a stream are the same bytes around a short text. Once one event has been
parsed, events with the same bytes around another text are recognised and not parsed. The text stays
escaped, as the inside of a JSON string, and can be copied into other JSON.

This is correct because the quotes around the text delimit one JSON string, whatever valid string is
between them, so two such events differ only in that string. And `extract_delta`, the function that
returns the text of an event, is tested for each template: with another string in place of the text
it must return that string.
"""

import re
from collections.abc import Callable, Sequence
from io import BytesIO
from operator import itemgetter
from typing import Any

import orjson

from gateway.inference.v1.inference_pb2 import Event
from services.inference.providers.sse import read_event

# Returns the string that an event adds, or None if the event does anything else. An event with
# another non-empty string in its place must add that string and do nothing else.
ExtractDelta = Callable[[Any], str | None]

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
# Several strings, joined by a separator that none of them contains.
_BREAK = b"\n"
_MANY_LETTERS = re.compile(rb"%b(?:\n%b)*+" % (STRING, STRING), re.VERBOSE)
# Characters that need no escape in a string, and the separator.
_PLAIN = bytes(set(range(0x20, 0x7F)) - set(b'"\\')) + _BREAK
_PADDING = re.compile(rb"[0-9A-Za-z+/=_-]*+")
_NUMBER = re.compile(rb"(?:0|[1-9][0-9]{0,14})(?=,)")
# The smallest numbers as JSON.
_NUMBERS = [b"%d" % number for number in range(1024)]
# Replaces the string of an event that does not contain it, to test `extract_delta`.
_OTHER, _OTHER_STRING = "?", b'"?"'
# Fewer events than this are faster to match one by one.
_FEW = 4
# Maximum templates learnt in a row without a match; learning stops then.
_PATIENCE = 8


class DeltaTemplates:
    """Recognises repeated events of one stream.

    Args:
        extract_delta: returns the text of an event.
        padding: name of a meaningless member at the end of the JSON, with a different string in
            each event; "" if the provider sends none.
        counter: name of a member before the text that numbers the events of the stream; "" if the
            provider sends none. Only consecutively numbered events are recognised.

    Attributes:
        number: the number that the next event must have.
        has_learnt: whether `repeats` may recognise events; to be set to False when an event that
            it has not recognised is parsed, as that may change the state that templates depend on.
    """

    def __init__(self, extract_delta: ExtractDelta, padding: str = "", counter: str = "") -> None:
        self._extract_delta = extract_delta
        self._padding = b',"%b":"' % padding.encode() if padding else b""
        self._counter = b',"%b":' % counter.encode() if counter else b""
        # The bytes around the text; a number is between the two parts before it.
        self._head = self._rest = self._tail = self._end = b""
        self.number = 0
        self.has_learnt = False
        self._example: tuple[bytes, str] | None = None
        self._unfit = 0

    def learn(self, event: bytes, text: str) -> None:
        """Learn the template of an event, if its bytes allow it.

        Args:
            event: the text of the event up to the next one, as returned by `SseSplitter`.
            text: the string that it adds, which must be the last output of the event.
        """
        # Examined with the next event, because this one must be sent first.
        self._example = event, text
        self._head = b""
        self.has_learnt = True

    def repeats(self, text: bytes, at: int) -> tuple[list[bytes], int]:
        """Return the texts of matching events from `at` on, and the end of the last one.

        Each text is the non-empty inside of a JSON string.
        """
        if not self.has_learnt:
            return [], at
        if self._example is not None:
            example, self._example = self._example, None
            self._learn_template(*example, text, at)
        if not self._head:
            return [], at
        start = self._numbered_start() if self._counter else self._head
        if not text.startswith(start, at):
            return [], at
        if self._end or len(text) - at < _FEW * (len(start) + len(self._tail)):
            pieces, at = self._one_by_one(text, at, start)
        else:
            pieces, at = self._at_once(text, at, start)
        if pieces:
            self._unfit = 0
        return pieces, at

    def _numbered_start(self) -> bytes:
        """Return the bytes before the text of the next event, if events are numbered."""
        return b"%b%d%b" % (self._head, self.number, self._rest)

    def _at_once(self, text: bytes, at: int, start: bytes) -> tuple[list[bytes], int]:
        """Match events from `at` on by splitting them at the bytes between their texts."""
        tail = self._tail
        # Reading lines takes a sixth of the time of splitting at blank lines.
        stream = BytesIO(text)
        stream.seek(at)
        lines = stream.readlines()
        before = self._head + self._rest
        skipped = before.count(b"\n")
        last = tail[: tail.index(b"\n") + 1]
        first = before[before.rfind(b"\n") + 1 :]
        texts = lines[skipped :: skipped + tail.count(b"\n")]
        opening = self._head[self._head.rfind(b"\n") + 1 :]
        while texts and not (texts[-1].startswith(opening) and texts[-1].endswith(last)):
            texts.pop()
        begin, end = len(first), -len(last)
        pieces: list[bytes] = []
        known_at = at
        if self._counter:
            while len(pieces) < len(texts):
                # Numbers with the same count of digits.
                number = self.number + len(pieces)
                after = begin + len(b"%d" % number)
                alike = texts[len(pieces) : 10 ** (after - begin) - self.number]
                pieces += map(itemgetter(slice(after, end)), alike)
            parts = [b"", self._rest, b"", tail + self._head] * len(pieces)
            parts[0::4], parts[2::4] = self._numbers(len(pieces)), pieces
            parts[-1:] = [tail]
            known_at += len(self._head)  # part of the matched `start`
        else:
            pieces += map(itemgetter(slice(begin, end)), texts)
            parts = [self._head, (tail + self._head).join(pieces), tail]
        template = b"".join(parts)
        if text.startswith(template, known_at) and _are_strings(pieces):
            self.number += len(pieces)
            return pieces, known_at + len(template)
        # Another event is in between.
        return self._one_by_one(text, at, start)

    def _numbers(self, count: int) -> Sequence[bytes]:
        """Return `count` consecutive numbers, beginning with the next one."""
        stop = self.number + count
        if stop <= len(_NUMBERS):
            return _NUMBERS[self.number : stop]
        return [b"%d" % number for number in range(self.number, stop)]

    def _one_by_one(self, text: bytes, at: int, start: bytes) -> tuple[list[bytes], int]:
        """Match events from `at` on one by one; the first begins with `start`."""
        tail, end = self._tail, self._end
        pieces: list[bytes] = []
        while text.startswith(start, at):
            begin = at + len(start)
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
            if self._counter:
                self.number += 1
                start = self._numbered_start()
        return pieces, at

    def _learn_template(self, event: bytes, delta: str, text: bytes, at: int) -> None:
        """Learn the template of an event, unless the next one, at `at`, has another beginning."""
        if self._unfit >= _PATIENCE:
            return  # every event has its own id, or different events alternate
        self._unfit += 1
        letters = delta.encode()
        begin = event.rfind(b'"%b"' % letters) + 1
        if not begin:
            return
        head, after = event[:begin], b""
        if self._counter:
            if self._counter not in head:
                return
            counted = head.index(self._counter) + len(self._counter)
            number = _NUMBER.match(head, counted)
            if number is None:
                return
            head, after = head[:counted], head[number.end() :]
            self.number = int(number[0]) + 1
        self._head, self._rest = head, after
        start = self._numbered_start() if self._counter else head
        is_next = text.startswith(start, at)
        self._head = b""
        if not is_next or _OTHER_STRING in event:
            return
        tail, end = event[begin + len(letters) :], b""
        if self._padding and self._padding in tail:
            padded = tail.rindex(self._padding) + len(self._padding)
            tail, end = tail[:padded], tail[_after_padding(tail, padded) :]
        number_of_next = b"%d" % self.number if self._counter else b""
        if self._read(head + number_of_next + after + _OTHER.encode() + tail + end) == _OTHER:
            self._head, self._tail, self._end = head, tail, end

    def _read(self, event: bytes) -> str | None:
        sent, _ = read_event(event, 0)
        if sent is None:
            return None
        try:
            return self._extract_delta(orjson.loads(sent.data))
        except orjson.JSONDecodeError:
            return None


def delta_of(choice: int, block: int, kind: str, pieces: Sequence[bytes]) -> Event:
    """Return one delta event of a kind, such as `text`, from consecutive pieces."""
    event = Event()
    # Nearly all have index 0, and keyword arguments would double the time.
    if choice:
        event.choice = choice
    if block:
        event.block = block
    setattr(event, kind, orjson.loads(b'"%b"' % b"".join(pieces)))
    if len(pieces) > 1:
        event.pieces.extend(pieces)
    return event


def _are_strings(pieces: Sequence[bytes]) -> bool:
    """Return whether there are pieces, each of them the non-empty inside of a JSON string."""
    letters = _BREAK.join(pieces)
    # Pieces are parts of lines: all line breaks are separators.
    if not letters.translate(None, _PLAIN):
        return letters != b"" and all(pieces)
    # A string that contained a separator would not be valid.
    return _MANY_LETTERS.fullmatch(letters) is not None and letters.count(_BREAK) == len(pieces) - 1


def _after_padding(text: bytes, at: int) -> int:
    match = _PADDING.match(text, at)
    assert match is not None, "it matches anything"
    return match.end()
