"""The outcome of a part of a request: compares the provider's requests with it and without it."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

Json = dict[str, Any]
_INDEX = re.compile(r"\[\d*\]")


@dataclass(frozen=True)
class Sent:
    """One request through the gateway.

    Attributes:
        body: as the caller wrote it.
        status: of the answer.
        error: its message, and the field that it names.
        dropped: the paths in `x-gateway-dropped`.
        adapted: the paths in `x-gateway-adapted`.
        sent: the body that the provider was sent; None if nothing.
    """

    body: Any
    status: int
    error: str
    dropped: Sequence[str]
    adapted: Sequence[str]
    sent: Any


def outcome(names: Sequence[str], named: Sequence[str], with_part: Sent, without: Sent) -> str:
    """Return what became of a part.

    It is `refused`, `passes`, `to PATH`, `text`, `dropped`, or `nothing` if no difference is seen.

    Args:
        names: on the way to the part.
        named: names of which a refusal has one.
        with_part: the request with the part.
        without: the request that differs from it in this part alone.
    """
    if with_part.status >= 400:
        is_named = any(name in with_part.error for name in (*names, *named))
        return "refused" if is_named else f"refused without its name: {with_part.error}"
    if without.status >= 400:
        return f"refused without it: {without.error}"
    if any(names_part(path.rpartition(":")[0], names) for path in with_part.adapted):
        return "text"
    if changed := [*differences(without.sent, with_part.sent)]:
        others = [*values_at(without.body, names)]
        values = [*values_at(with_part.body, names)]
        values = [value for value in values if value not in others] or values
        arrived = [*values_at(with_part.sent, names)]
        if values and all(any(contains(one, value) for one in arrived) for value in values):
            return "passes"
        if not any(names in _places(plain(path)) for path in with_part.dropped):
            return f"to {common(changed)}"
    return "dropped" if any(names_part(path, names) for path in with_part.dropped) else "nothing"


def values_at(body: Any, names: Sequence[str]) -> Iterator[Any]:
    """Yield the values at a path of names, through all elements of lists."""
    if isinstance(body, list):
        for one in body:
            yield from values_at(one, names)
    elif not names:
        yield body
    elif isinstance(body, dict) and names[0] in body:
        yield from values_at(body[names[0]], names[1:])


def contains(arrived: Any, value: Any) -> bool:
    """Return whether a value arrived unchanged; an object may have gained fields."""
    if isinstance(arrived, dict) and isinstance(value, dict):
        return all(name in arrived and contains(arrived[name], value[name]) for name in value)
    return bool(arrived == value) and type(arrived) is type(value)


def common(places: Sequence[str]) -> str:
    """Return the longest path that all places begin with, or the names that they begin with.

    Of a schema the path ends before its properties.
    """
    split = [place.partition(".properties")[0].split(".") for place in places]
    shared = list(takewhile(lambda name: name, map(_shared, zip(*split, strict=False))))
    return ".".join(shared) or " and ".join(dict.fromkeys(parts[0] for parts in split))


def _shared(names: Sequence[str]) -> str:
    return names[0] if len(set(names)) == 1 else ""


def differences(old: Any, new: Any, place: str = "") -> Iterator[str]:
    """Yield the paths of what is not the same in two bodies, without indices."""
    if isinstance(old, dict) and isinstance(new, dict):
        for name in dict.fromkeys((*old, *new)):
            inner = f"{place}.{name}".removeprefix(".")
            if name not in old or name not in new:
                yield from _leaves({**old, **new}[name], inner)
            else:
                yield from differences(old[name], new[name], inner)
    elif isinstance(old, list) and isinstance(new, list):
        if len(old) != len(new):
            yield place
        else:
            for one, other in zip(old, new, strict=True):
                yield from differences(one, other, place)
    elif old != new or type(old) is not type(new):
        yield place


def _leaves(value: Any, place: str) -> Iterator[str]:
    if not isinstance(value, dict) or not value:
        yield place
    else:
        for name, one in value.items():
            yield from _leaves(one, f"{place}.{name}")


def names_part(path: str, names: Sequence[str]) -> bool:
    """Return whether a path in an answer names a part, or what holds it or is in it."""
    part = list(names)
    return any(own == part[: len(own)] or own[: len(part)] == part for own in _places(plain(path)))


def _places(own: list[str]) -> Iterator[list[str]]:
    """Yield where a dropped field may have been: its path names the block of a message."""
    yield own
    match own:
        case ["messages", "content", *inner]:
            yield ["system", *inner]
        case ["input", "content", *inner]:
            yield ["input", *inner]
            yield ["input", "output", *inner]
        case ["input", "summary"]:
            yield ["input"]  # an item of reasoning
        case ["tools", *inner]:
            yield ["tools", "tools", *inner]  # of a namespace, whose place its function takes


def plain(path: str) -> list[str]:
    """Return the names in a path, without indices."""
    return [name for name in _INDEX.sub("", path).split(".") if name]
