"""OpenAI's cache breakpoints as `cache_control`, the form of the canonical request. Pure.

OpenAI's lifetimes are minimums: each becomes the shortest one of Anthropic's that is no shorter, or
else the longest. Without a lifetime, the provider's default applies.

Sources: OpenAI's "Prompt caching" (`prompt_cache_breakpoint`, `prompt_cache_options`), Anthropic's
"Prompt caching" (`cache_control`).
"""

from collections.abc import Iterable

from gateway.conversation.v1.conversation_pb2 import Message
from gateway.inference.v1.inference_pb2 import GenerateRequest

BREAKPOINT = "prompt_cache_breakpoint"
OPTIONS = "prompt_cache_options"
# Paths of the options that a `cache_control` stands for.
COVERED_OPTIONS = (f"{OPTIONS}.mode", f"{OPTIONS}.ttl")
_DEFAULT = b'{"type":"ephemeral"}'
# Of at least 30 minutes.
_LONG = b'{"type":"ephemeral","ttl":"1h"}'


def mark_of(breakpoint: object) -> bytes:
    """Return the `cache_control` for a part's breakpoint; b"" for none."""
    match breakpoint:
        case {"mode": "explicit", **others}:
            return _LONG if others.get("ttl") else _DEFAULT
    return b""


def set_options(request: GenerateRequest, options: object) -> None:
    """Apply the `prompt_cache_options` of a request: without `explicit`, its end is marked too."""
    if isinstance(options, dict) and options.get("mode") != "explicit":
        request.cache_control = request.cache_control or mark_of({**options, "mode": "explicit"})


def set_lifetimes(messages: Iterable[Message], options: object) -> None:
    """Apply the lifetime of the `prompt_cache_options` to breakpoints without their own."""
    if not (isinstance(options, dict) and options.get("ttl")):
        return
    for message in messages:
        for block in message.blocks:
            if block.cache_control == _DEFAULT:
                block.cache_control = _LONG
