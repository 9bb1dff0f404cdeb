"""Texts on which a regular expression may take long: repetitions of its own parts."""

import re
import re._constants as sre
import re._parser as parser
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

from tests.patterns.steps import character_test

MANY = 200  # repetitions from which a bounded repeat counts as a loop
_ENDS = ("", "\x01")
_CANDIDATES = [*"a0 _-.:,;/?\n\"'`<(=\\*#AZz91\t&\r\x01", "é", "中", "\ufffe"]
_FEW = 6


def has_loop(pattern: re.Pattern[Any]) -> bool:
    """Return whether an expression has a repeat; without one, it takes linear time."""
    return bool(list(_loops(*_parsed(pattern), "")))


def texts(pattern: re.Pattern[Any], length: int) -> Iterator[str | bytes]:
    """Yield texts of about a length."""
    for prefix, pump in dict.fromkeys(_attacks(*_parsed(pattern))):
        for end in _ENDS:
            text = prefix + pump * max(1, length // len(pump)) + end
            if isinstance(pattern.pattern, str):
                yield text
            elif all(ord(one) < 256 for one in text):
                yield text.encode("latin-1")


def _parsed(pattern: re.Pattern[Any]) -> tuple[Any, int]:
    tree = parser.parse(pattern.pattern, pattern.flags & ~re.UNICODE)
    return tree, tree.state.flags


def _attacks(tree: Any, flags: int) -> Iterator[tuple[str, str]]:
    """Yield beginnings and what is to be repeated behind them."""
    characters: list[str] = []
    for prefix, bodies in _loops(tree, flags, ""):
        for body in filter(None, bodies):
            characters += body
            yield prefix, body
            yield "", body
            yield "", prefix + body
        characters += prefix[-2:]
        if prefix:
            yield "", prefix
            yield "", prefix[-1]
    for one in list(dict.fromkeys([*_shared(tree, flags), *characters]))[:_FEW]:
        yield "", one
        for prefix, _ in _loops(tree, flags, ""):
            yield prefix, one
    if whole := _sample(tree, flags):
        yield "", whole
        yield "", whole[:-1] or whole


def _shared(tree: Any, flags: int) -> Sequence[str]:
    """Return some characters that two parts of one repeat match: either may take them."""
    shared = []
    for operation, argument in tree:
        for inner, inner_flags in _inner(operation, argument, flags):
            shared += _shared(inner, inner_flags)
            if operation in (sre.MAX_REPEAT, sre.MIN_REPEAT):
                matches = [character_test(*node, inner_flags) for node in _singles(inner)]
                shared += [one for one in _CANDIDATES if sum(match(one) for match in matches) > 1]
    return shared


def _singles(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the nodes of single characters in a tree, but for what it looks at around it."""
    for operation, argument in tree:
        if operation in (sre.LITERAL, sre.NOT_LITERAL, sre.ANY, sre.IN):
            yield operation, argument
        elif operation not in (sre.ASSERT, sre.ASSERT_NOT):
            for inner, _ in _inner(operation, argument, 0):
                yield from _singles(inner)


def _loops(tree: Any, flags: int, prefix: str) -> Iterator[tuple[str, list[str]]]:
    """Yield for each repeat a text that matches what is before it, and some that it repeats."""
    for operation, argument in tree:
        if operation in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
            if argument[1] >= MANY:
                yield prefix, _bodies(argument[2], flags)
        for inner, inner_flags in _inner(operation, argument, flags):
            yield from _loops(inner, inner_flags, prefix)
        prefix += _sample([(operation, argument)], flags)


def _bodies(tree: Any, flags: int) -> list[str]:
    if len(tree) == 1 and tree[0][0] in (sre.LITERAL, sre.NOT_LITERAL, sre.ANY, sre.IN):
        return [*_members(*_hashable(*tree[0]), flags)]
    return [_sample(tree, flags)]


def _inner(operation: Any, argument: Any, flags: int) -> Sequence[tuple[Any, int]]:
    match operation:
        case sre.SUBPATTERN:
            return [(argument[3], (flags | argument[1]) & ~argument[2])]
        case sre.BRANCH:
            return [(branch, flags) for branch in argument[1]]
        case sre.MAX_REPEAT | sre.MIN_REPEAT | sre.POSSESSIVE_REPEAT:
            return [(argument[2], flags)]
        case sre.ATOMIC_GROUP:
            return [(argument, flags)]
        case sre.ASSERT | sre.ASSERT_NOT:
            return [(argument[1], flags)]
    return []


def _hashable(operation: Any, argument: Any) -> tuple[Any, Any]:
    """Return a node of single characters with its alternatives in a tuple."""
    return operation, tuple(argument) if operation is sre.IN else argument


# A node is sampled for each text in which it stands.
@lru_cache(maxsize=1_024)
def _members(operation: Any, argument: Any, flags: int) -> Sequence[str]:
    """Return some characters that a node matches."""
    if operation is sre.LITERAL:
        return [chr(argument)]
    test = character_test(operation, argument, flags)
    listed = []
    for item, held in argument if operation is sre.IN else ():
        if item is sre.LITERAL:
            listed.append(chr(held))
        elif item is sre.RANGE:
            listed.append(chr(held[0]))
    return [one for one in dict.fromkeys([*_CANDIDATES, *listed]) if test(one)][:3]


def _sample(tree: Any, flags: int) -> str:
    """Return a short text that a tree matches, except for what it looks at around it."""
    text = ""
    for operation, argument in tree:
        match operation:
            case sre.LITERAL | sre.NOT_LITERAL | sre.ANY | sre.IN:
                text += next(iter(_members(*_hashable(operation, argument), flags)), "")
            case sre.MAX_REPEAT | sre.MIN_REPEAT | sre.POSSESSIVE_REPEAT:
                text += _sample(argument[2], flags) * min(argument[0], MANY)
            case sre.BRANCH:
                text += _sample(argument[1][0], flags)
            case sre.SUBPATTERN:
                text += _sample(argument[3], flags)
            case sre.ATOMIC_GROUP:
                text += _sample(argument, flags)
    return text
