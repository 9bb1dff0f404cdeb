"""Marks for Anthropic's prompt cache that a caller of another dialect has set. Pure.

Anthropic accepts four of them, and none after another with a shorter lifetime; OpenAI uses the
latest ones of any number, in any order of lifetimes.
"""

from collections.abc import Iterator
from typing import Any

from services.inference.providers.opaque_json import Json

_MARK, _MOST = "cache_control", 4
_LIFETIME = "ttl"


def fit_marks(body: Json) -> bool:
    """Keep the latest marks of a body; return whether others were removed.

    A mark gets the lifetime of a later one, if that is longer.
    """
    marked = [holder for holder in _holders(body) if _MARK in holder]
    most = _MOST - (_MARK in body)
    for holder in marked[:-most]:
        del holder[_MARK]
    lifetime = body.get(_MARK, {}).get(_LIFETIME)
    for holder in reversed(marked[-most:]):
        lifetime = holder[_MARK].get(_LIFETIME) or lifetime
        if lifetime:
            holder[_MARK] = {**holder[_MARK], _LIFETIME: lifetime}
    return len(marked) > most


def _holders(body: Json) -> Iterator[Json]:
    """Yield what may be marked, in the order of the prompt."""
    yield from (tool for tool in body.get("tools") or () if isinstance(tool, dict))
    yield from _blocks(body.get("system"))
    for message in body["messages"]:
        yield from _blocks(message["content"])


def _blocks(content: Any) -> Iterator[Json]:
    for block in content if isinstance(content, list) else ():
        if isinstance(block, dict):
            yield from _blocks(block.get("content"))
            yield block
