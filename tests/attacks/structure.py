"""JSON bodies of a wrong structure or size, made from valid ones. Pure, and reproducible.

`corpus` makes all single changes of a body: each place with every kind of wrong value.
`Fuzzer` draws changes at random, of any size, from a seed.
"""

import json
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote

from tests.attacks.valid import ErrorFormat, Request

# A string in a body that stands for JSON text that `json` does not write.
_RAW = "@raw:"
_END = "@end"
_WRITTEN_RAW = re.compile(f'"{_RAW}([0-9a-f]*){_END}"')

Path = tuple[str | int, ...]


class Attempt(NamedTuple):
    """A request to send.

    Attributes:
        method: of HTTP.
        path: with its query, percent-encoded.
        api_format: format of the endpoint's errors.
        body: what is sent, or None.
        what: the change that was made, for people.
    """

    method: str
    path: str
    api_format: ErrorFormat
    body: bytes | None
    what: str


def raw(text: str) -> str:
    """Return a string that is written as `text` in a body, whatever that is."""
    return f"{_RAW}{text.encode().hex()}{_END}"


def write(body: object) -> bytes:
    """Write a body with its raw texts."""
    written = _WRITTEN_RAW.sub(lambda match: bytes.fromhex(match[1]).decode(), json.dumps(body))
    return written.encode()


SCALARS: Sequence[object] = (
    *(None, True, False, "", "x", [], {}, [None], [[]], {"a": 1}, {"type": "text"}),
    *(0, -1, 1, 0.5, 2**31, 2**32, 2**53 + 1, 2**63, 2**64, -(2**63) - 1, 1e308),
    *map(
        raw, ("1e400", "-0", "-0.0", "NaN", "-Infinity", "9" * 400, "9" * 5000, "0." + "0" * 5000)
    ),
    *("\0", "\ud800", "\udc00x", "\U0001f600", "\u202e", "a" * 257, "\n", "#string", "null"),
)
KEYS = ("", "x", "#string", "\ud800", "\0", "a" * 300, "type", "__proto__")


def corpus(request: Request) -> Iterator[Attempt]:
    """Return a request with each single change."""
    for what, body in changes(request.body):
        yield Attempt("POST", request.path, request.api_format, write(body), what)
    for what, sent in _broken(json.dumps(request.body).encode()):
        yield Attempt("POST", request.path, request.api_format, sent, what)


def changes(body: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    for path in places(body):
        old = at(body, path)
        if path:
            yield f"{path}: left out", without(body, path)
        for value in SCALARS:
            if value != old or type(value) is not type(old):
                yield f"{path}: {value!r:.40}", changed(body, path, value)
        if isinstance(old, dict):
            for key in KEYS:
                yield f"{path}: {key!r:.40} added", changed(body, path, {**old, key: 1})
            for key, value in old.items():
                # The sorted order of the two is the one in which they are written.
                twice = {**old, raw(f"{json.dumps(key)}: 1, {json.dumps(key)}"): value}
                yield f"{path}: {key!r:.40} twice", changed(body, path, twice)
        if isinstance(old, list):
            yield f"{path}: 100 times", changed(body, path, old * 100)
            yield f"{path}: in a list", changed(body, path, [old])


def nested(request: Request, levels: int) -> Iterator[Attempt]:
    """Return a request with each of its values in turn nested so many levels deep."""
    deep = {
        "arrays": raw("[" * levels + "]" * levels),
        "objects": raw('{"a":' * levels + "1" + "}" * levels),
    }
    for path in places(request.body):
        for kind, value in deep.items():
            sent = write(changed(request.body, path, value))
            what = f"{path}: {levels} {kind}"
            yield Attempt("POST", request.path, request.api_format, sent, what)


def _broken(body: bytes) -> Iterator[tuple[str, bytes]]:
    """Return what is no JSON in UTF-8, or not what was meant."""
    text = body.decode()
    yield "nothing", b""
    yield "blanks", b" \r\n\t "
    yield "BOM", b"\xef\xbb\xbf" + body
    yield "UTF-16", text.encode("utf-16")
    yield "UTF-32", text.encode("utf-32")
    yield "invalid UTF-8", body.replace(b":", b':"\xff",', 1)
    yield "overlong UTF-8", body.replace(b'"', b'"\xc0\x80', 1)
    yield "surrogate in UTF-8", body.replace(b'"', b'"\xed\xa0\x80', 1)
    yield "trailing garbage", body + b"x"
    yield "trailing comma", body[:-1] + b",}"
    yield "two documents", body + body
    yield "a comment", b"/* */" + body
    yield "a control character", body.replace(b'"', b'"\n', 1)
    yield "a NUL", body.replace(b"{", b"{\0", 1)
    yield "a bad escape", body.replace(b'"', b'"\\x', 1)
    for depth in (10, 200, 100_000):
        yield f"{depth} deep lists", b"[" * depth + b"]" * depth
        deep = b'{"a":' * depth + b"1" + b"}" * depth
        yield f"{depth} deep objects", deep
        yield f"{depth} deep in a field", body[:-1] + b',"extra":' + deep + b"}"
    for eighth in range(1, 8):
        yield f"cut after {eighth}/8", body[: len(body) * eighth // 8]
    for literal in (b"null", b"true", b"1", b'"x"', b"[]", b"{}", b"[{}]"):
        yield literal.decode(), literal


def places(value: object, path: Path = ()) -> Iterator[Path]:
    """Return the path of a value and of everything in it."""
    yield path
    inner: Iterator[tuple[str | int, object]] = iter(())
    if isinstance(value, Mapping):
        inner = iter(value.items())
    elif isinstance(value, list):
        inner = iter(enumerate(value))
    for step, item in inner:
        yield from places(item, (*path, step))


def at(value: Any, path: Path) -> Any:
    """Return what stands at a path."""
    for step in path:
        value = value[step]
    return value


def changed(value: Any, path: Path, new: object) -> Any:
    """Return a value with something else at a path."""
    if not path:
        return new
    step, below = path[0], path[1:]
    copy = value.copy()
    copy[step] = changed(value[step], below, new)
    return copy


def without(value: Any, path: Path) -> Any:
    """Return a value without what stands at a path."""
    holder = at(value, path[:-1]).copy()
    del holder[path[-1]]
    return changed(value, path[:-1], holder)


def _is_plain(value: object) -> bool:
    return isinstance(value, str) and not value.startswith(_RAW)


class Fuzzer:
    """Draws requests at random; one seed gives the same ones in the same order.

    Args:
        seed: of the random numbers.
        requests: valid ones, to be changed.
        memory_id: a memory that is there.
        largest: bytes of a body, about.
    """

    def __init__(
        self, seed: int, requests: Sequence[Request], memory_id: str, largest: int
    ) -> None:
        self._random = random.Random(seed)
        self._requests = requests
        self._largest = largest
        self._lists: tuple[tuple[str, ErrorFormat], ...] = (
            ("/beta/v1/files", "B"),
            ("/beta/v1/models", "B"),
            ("/coding/v1/models", "B"),
            ("/beta/v1/memories", "B"),
            (f"/beta/v1/memories/{memory_id}/turns", "B"),
        )

    def draw(self) -> Attempt:
        """Return the next request."""
        if self._random.random() < 0.15:
            return self._without_body()
        request = self._random.choice(self._requests)
        body: Any = request.body
        changes = []
        for _ in range(self._random.choice((1, 1, 1, 2, 3))):
            path = self._random.choice(list(places(body)))
            new = self._value(at(body, path))
            body = changed(body, path, new)
            changes.append(f"{path}: {str(new)[:60]!r}")
        sent = write(body)
        if self._random.random() < 0.05:
            name, sent = self._random.choice(list(_broken(sent)))
            changes.append(name)
        return Attempt("POST", request.path, request.api_format, sent, "; ".join(changes))

    def _without_body(self) -> Attempt:
        path, api_format = self._random.choice(self._lists)
        if self._random.random() < 0.4:
            path += "/" + quote(self._text(), safe="", errors="surrogatepass")
        names = ("limit", "page", "after", "after_id", "before_id", "order", "purpose", "\0", "x")
        query = "&".join(
            f"{quote(self._random.choice(names))}={quote(self._text(), errors='surrogatepass')}"
            for _ in range(self._random.choice((0, 1, 2, 50)))
        )
        target = f"{path}?{query}" if query else path
        method = self._random.choice(("GET", "GET", "GET", "DELETE", "PUT"))
        return Attempt(method, target, api_format, None, "a query")

    def _text(self) -> str:
        return self._random.choice(
            (
                *("", "0", "1", "-1", "99999", "1e3", "\0", "\ud800", "%", "../..", "x" * 300),
                *("file-01ARZ3NDEKTSV4RRFFQ69G5FAV", "\u0661", "asc", "AAAA", "openai/gpt-4o"),
            )
        )

    def _size(self, unit: int) -> int:
        """Return a number of things of so many bytes; small ones are much more frequent."""
        most = max(2, self._largest // unit)
        return int(most ** self._random.random() ** 3)

    def _value(self, old: Any) -> Any:
        kinds: tuple[Callable[[Any], Any], ...] = (
            lambda _: self._random.choice(SCALARS),
            lambda _: "x" * self._size(1),
            lambda _: "\u4e2d\0" * self._size(6),
            lambda _: self._copies(self._random.choice(SCALARS)),
            lambda _: {f"k{n}": None for n in range(self._size(12))},
            lambda _: raw("[" * (n := self._size(2)) + "]" * n),
            lambda _: raw('{"a":' * (n := self._size(6)) + "1" + "}" * n),
            lambda _: raw("9" * self._size(1)),
            self._copies,
            lambda value: value * self._size(len(value) + 1) if _is_plain(value) else value,
            self._member,
        )
        return self._random.choice(kinds)(old)

    def _copies(self, value: Any) -> Any:
        return [value] * self._size(len(write(value)) + 2)

    def _member(self, old: Any) -> Any:
        if isinstance(old, dict):
            key = self._random.choice((*KEYS, "y" * self._size(1)))
            return {**old, key: self._random.choice(SCALARS)}
        if isinstance(old, list) and old:
            return old[:-1] * self._random.choice((0, 1, 2)) + [self._random.choice(SCALARS)]
        return {"type": old}
