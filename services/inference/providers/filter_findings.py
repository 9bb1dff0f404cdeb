"""Findings of a content filter in a prompt, for the caller. Pure.

Azure's `innererror` has a code and, by category, flags and severities. Texts are left out: nobody
knows what a server writes in them.
"""

from collections.abc import Callable, Mapping
from typing import Any

import orjson

_MAX_DEPTH = 3
_MAX_BYTES = 4 << 10


def render_findings(found: Mapping[str, Any], is_word: Callable[[str], bool]) -> bytes:
    """Return the flags, numbers and single words of an object as JSON; b"" if it is too large."""
    findings = orjson.dumps(_without_texts(found, is_word, 0))
    return findings if len(findings) <= _MAX_BYTES else b""


def _without_texts(found: Mapping[str, Any], is_word: Callable[[str], bool], depth: int) -> Any:
    kept: dict[str, Any] = {}
    for name, value in found.items():
        if not is_word(name):
            continue
        if isinstance(value, dict) and depth < _MAX_DEPTH:
            kept[name] = _without_texts(value, is_word, depth + 1)
        elif isinstance(value, int) or (isinstance(value, str) and is_word(value)):
            kept[name] = value
    return kept
