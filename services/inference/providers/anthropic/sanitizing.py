"""Valid replacements for ids and schemas that Anthropic would reject. Pure.

They are not applied to requests of Anthropic's own dialect.
"""

import re

from services.inference.providers.conversation_writer import digest_of

_ID = re.compile(r"[a-zA-Z0-9_-]{1,256}", re.ASCII)
# Anthropic rejects personal data here, such as e-mail addresses and names.
_END_USER = re.compile(r"[a-zA-Z0-9_.:|/-]{1,256}", re.ASCII)
_DIGEST_LENGTH = 32

JSON_ALONE = "Answer with one JSON object and nothing else: no words around it, no code fence."


def tool_use_id(given: str) -> str:
    """Return the id of a tool call, or a hash if it has invalid characters.

    A call and its result have the same id, and so the same hash.
    """
    return given if _ID.fullmatch(given) else f"call_{digest_of(given, _DIGEST_LENGTH)}"


def end_user(given: str) -> str:
    """Return an opaque id of the end user: the caller's own, or a hash of it."""
    return given if _END_USER.fullmatch(given) else f"user_{digest_of(given, _DIGEST_LENGTH)}"
