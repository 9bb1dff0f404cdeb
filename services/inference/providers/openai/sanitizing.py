"""Valid replacements for names and ids that OpenAI's dialect would reject. Pure.

Each result depends only on its input, so that the turns of a conversation agree with each other.
"""

import re

from services.inference.providers.conversation_writer import digest_of

_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}", re.ASCII)
_UNSAFE = re.compile(r"[^a-zA-Z0-9_-]", re.ASCII)
_MAX_TOOL_NAME = 64
_DIGEST_LENGTH = 16

# Maximum characters of an end user's id that OpenAI accepts.
MAX_USER = 64


def tool_name(name: str) -> str:
    """Return a tool's name, or a similar valid one that ends with a hash of it."""
    if _TOOL_NAME.fullmatch(name):
        return name
    kept = _UNSAFE.sub("_", name)[: _MAX_TOOL_NAME - _DIGEST_LENGTH - 1]
    return f"{kept}_{digest_of(name, _DIGEST_LENGTH)}"


def tool_call_id(call_id: str, length: int) -> str:
    """Return the id of a tool call, or a hash of `length` letters and digits.

    A call and its result have the same id, and so the same hash.
    """
    if len(call_id) == length and call_id.isascii() and call_id.isalnum():
        return call_id
    return digest_of(call_id, _DIGEST_LENGTH)[:length]


def end_user(user: str) -> str:
    """Return the id of an end user, or a hash if it is too long."""
    return user if len(user) <= MAX_USER else f"user_{digest_of(user, _DIGEST_LENGTH)}"
