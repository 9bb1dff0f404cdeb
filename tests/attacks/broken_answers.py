"""Answers of providers that are wrong in one place or one order, made from valid ones. Pure.

`cases` makes all of them for one kind of provider: each value at each place of each event, events
that are missing, repeated or out of order, and streams that end too early or go on after their end.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from tests.attacks.structure import Path, at, changed, changes, places, raw, write
from tests.services.inference.providers import anthropic_answers, gemini_answers
from tests.services.inference.providers.chat_answers import CHUNKS, COMPLETION
from tests.services.inference.providers.openai_responses import responses_answers

Kind = Literal["openai", "anthropic", "gemini", "native"]
Json = Mapping[str, Any]

STREAMS: Mapping[Kind, Sequence[Json]] = {
    "openai": CHUNKS,
    "anthropic": anthropic_answers.STREAM,
    "gemini": gemini_answers.CHUNKS,
    "native": responses_answers.EVENTS,
}
WHOLES: Mapping[Kind, Json] = {
    "openai": COMPLETION,
    "anthropic": anthropic_answers.WHOLE,
    "gemini": gemini_answers.WHOLE,
    "native": responses_answers.SAMPLE,
}
KINDS: Sequence[Kind] = tuple(STREAMS)
# A stream is complete once this event has come: those after it are usage, or an end mark.
_LAST = {"openai": 11, "anthropic": -2, "gemini": -1, "native": -1}
_INDICES = ("index", "output_index", "content_index", "summary_index", "annotation_index")
_GAMES = (-1, 0, 1, 2, 3, 7, 100, 9_999, 10_000, 2**31 - 1, 2**31, 2**32, 2**63, 2**64, 10**30)
_HEAD = b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: "


class Case(NamedTuple):
    """An answer to serve.

    Attributes:
        kind: of the provider.
        what: what is wrong with it, for people.
        is_stream: whether it is a stream of events.
        pieces: what is sent, each piece in one write.
        is_cut: whether the answer's end is missing.
        texts: the texts of the events that are as they should be, in order.
    """

    kind: Kind
    what: str
    is_stream: bool
    pieces: Sequence[bytes]
    is_cut: bool = False
    texts: Sequence[str] = ()


def cases(kind: Kind) -> Iterator[Case]:
    """Return every wrong answer of a kind of provider."""
    yield from _of_values(kind)
    yield from _of_order(kind)
    yield from _of_splits(kind)
    yield from _of_wholes(kind)


def valid(kind: Kind, *, is_stream: bool) -> Case:
    """Return the answer that the wrong ones are made from."""
    if not is_stream:
        return _whole(kind, "valid", write(WHOLES[kind]))
    sent = [_event(kind, event) for event in STREAMS[kind]]
    return _stream(kind, "valid", sent, texts=_texts(kind))


def text_of(kind: Kind, event: Json) -> str:
    """Return the text that an event adds to the answer's own."""
    match kind:
        case "openai":
            deltas = [choice["delta"].get("content") for choice in event["choices"]]
            return "".join(text for text in deltas if isinstance(text, str))
        case "anthropic":
            return str(event.get("delta", {}).get("text", ""))
        case "gemini":
            parts = event["candidates"][0]["content"]["parts"]
            return "".join(part.get("text", "") for part in parts if not part.get("thought"))
        case "native":
            return event["delta"] if event["type"] == "response.output_text.delta" else ""


def _of_values(kind: Kind) -> Iterator[Case]:
    events = STREAMS[kind]
    sent = [_event(kind, event) for event in events]
    for number, event in enumerate(events):
        texts = _texts(kind, without=number)
        for what, other in _changed(event):
            wrong = [*sent[:number], _event(kind, other), *sent[number + 1 :]]
            yield _stream(kind, f"event {number} {what}", wrong, texts=texts)


def _changed(event: Json) -> Iterator[tuple[str, Any]]:
    yield from changes(event)
    for path in places(event):
        if path and path[-1] in _INDICES:
            for value in _GAMES:
                yield f"{path}: {value}", changed(event, path, value)
        if isinstance(at(event, path), str):
            # JSON that orjson and msgspec read differently, or not at all.
            for value in ('"\\ud800"', '"\\ud83d\\ude00\\udc00"', '"\xff"', '"\\u0000"'):
                yield f"{path}: {value}", changed(event, path, raw(value))


def _of_order(kind: Kind) -> Iterator[Case]:
    events = STREAMS[kind]
    sent = [_event(kind, event) for event in events]
    last = _LAST[kind] % len(events)
    for number in range(len(sent)):
        texts = _texts(kind, without=number)
        others = [*sent[:number], *sent[number + 1 :]]
        moved = {
            "is missing": others,
            "comes first": [sent[number], *others],
            "comes last": [*others, sent[number]],
            "comes twice": [*sent[:number], sent[number], *sent[number:]],
            "comes again at the end": [*sent, sent[number]],
            "comes 3,000 times": [*sent[:number], sent[number] * 3000, *sent[number + 1 :]],
        }
        for what, wrong in moved.items():
            # A first end may leave no room for the others. [DONE] stands in for a missing reason.
            yield _stream(
                kind,
                f"event {number} {what}",
                wrong,
                is_cut=what == "is missing" and number == last and kind != "openai",
                texts=() if number == last else texts,
            )
        if number <= last:
            for what, cut in {
                "is the last": sent[:number],
                "is cut in the middle": [*sent[:number], sent[number][: len(sent[number]) // 2]],
                "lacks its blank line": [*sent[:number], sent[number][:-2]],
            }.items():
                is_cut = number < last or what != "lacks its blank line"
                yield _stream(kind, f"event {number} {what}", cut, ends=False, is_cut=is_cut)
    yield _stream(kind, "comes twice", [*sent, _end(kind), *sent], texts=_texts(kind))
    yield _stream(kind, "has two ends", [*sent, _end(kind), sent[last]], texts=_texts(kind))
    yield _stream(kind, "comes backwards", sent[::-1])
    yield _stream(kind, "is its end only", sent[last:])
    yield _stream(kind, "has nothing but its mark", [])
    yield _stream(kind, "has junk after it", [*sent, _end(kind), b"\0\xff{" * 5000, b"\n\n"])


def _of_splits(kind: Kind) -> Iterator[Case]:
    case = valid(kind, is_stream=True)
    whole = b"".join(case.pieces[1:])
    for size in (1, 2, 3, 7, 61):
        split = [whole[start : start + size] for start in range(0, len(whole), size)]
        chunked = b"transfer-encoding: chunked\r\n\r\n"
        head = case.pieces[0].removesuffix(b"\r\n\r\n") + b"\r\n" + chunked
        framed = [b"%x\r\n%b\r\n" % (len(piece), piece) for piece in split]
        yield case._replace(what=f"in pieces of {size} bytes", pieces=[head, *framed, b"0\r\n\r\n"])
    for end in ("\r\n", "\r"):
        other = whole.replace(b"\n", end.encode())
        yield case._replace(what=f"lines end in {end!r}", pieces=[case.pieces[0], other])


def _of_wholes(kind: Kind) -> Iterator[Case]:
    for what, other in _changed(WHOLES[kind]):
        yield _whole(kind, what, write(other))
    body = write(WHOLES[kind])
    for end in range(0, len(body), 97):
        yield _whole(kind, f"cut after {end} bytes", body[:end], is_cut=True)


def _texts(kind: Kind, without: int = -1) -> Sequence[str]:
    events = [event for number, event in enumerate(STREAMS[kind]) if number != without]
    if without >= 0 and STREAMS[kind][without].get("type") == "content_block_start":
        return ()  # what its deltas are is unknown
    return [text for event in events if (text := text_of(kind, event))]


def _stream(
    kind: Kind,
    what: str,
    events: Sequence[bytes],
    *,
    ends: bool = True,
    is_cut: bool = False,
    texts: Sequence[str] = (),
) -> Case:
    pieces = [_HEAD + b"text/event-stream\r\n\r\n", *events, _end(kind) if ends else b""]
    return Case(kind, what, True, pieces, is_cut, texts)


def _whole(kind: Kind, what: str, body: bytes, *, is_cut: bool = False) -> Case:
    return Case(kind, what, False, [_HEAD + b"application/json\r\n\r\n", body], is_cut)


def _event(kind: Kind, event: object) -> bytes:
    name = event.get("type") if isinstance(event, Mapping) else None
    line = b""
    if kind in ("anthropic", "native") and isinstance(name, str) and name.isprintable():
        line = b"event: %b\n" % name.encode(errors="replace")
    return b"%bdata: %b\n\n" % (line, write(event))


def _end(kind: Kind) -> bytes:
    return b"data: [DONE]\n\n" if kind == "openai" else b""


__all__ = ["KINDS", "Case", "Kind", "Path", "cases", "text_of", "valid"]
