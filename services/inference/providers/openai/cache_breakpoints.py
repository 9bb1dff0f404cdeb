"""Breakpoints of OpenAI's prompt cache, for marks of a caller of another dialect. Pure.

Models from GPT-5.6 on have them; others cache by themselves. Anthropic's lifetimes of five minutes
and of an hour become those of 30 minutes, the default, and of 12 hours.
"""

import re

from services.inference.providers.opaque_json import Json

BREAKPOINT = "prompt_cache_breakpoint"
OPTIONS = "prompt_cache_options"
# Without it, one of four breakpoints is that of the end, which no mark asks for.
EXPLICIT: Json = {"mode": "explicit"}
_MODEL = re.compile(r"(?:.*[/.])?gpt-(\d+)(?:\.(\d+))?(?![\d.])")
_SINCE = (5, 6)
_LONG = b'"1h"'


def has_breakpoints(model: str) -> bool:
    """Return whether a model has them, by the provider's name of it."""
    version = _MODEL.match(model)
    return version is not None and (int(version[1]), int(version[2] or 0)) >= _SINCE


def breakpoint_of(mark: bytes) -> Json:
    """Return the breakpoint for a `cache_control`."""
    return {**EXPLICIT, "ttl": "12h"} if _LONG in mark else dict(EXPLICIT)


def marked(part: Json, *, is_long: bool) -> Json:
    """Return a part with a breakpoint at its end."""
    return {**part, BREAKPOINT: breakpoint_of(_LONG if is_long else b"")}
