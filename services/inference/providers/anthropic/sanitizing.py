"""Valid replacements for ids and schemas that Anthropic would reject. Pure.

They are not applied to requests of Anthropic's own dialect.
"""

import re
from collections.abc import Mapping
from typing import Any

from services.inference.providers.conversation_writer import digest_of
from services.inference.providers.schemas import names_of_properties
from services.inference.stream.property_names import PropertyNames

_ID = re.compile(r"[a-zA-Z0-9_-]{1,256}", re.ASCII)
# Anthropic rejects personal data here, such as e-mail addresses and names.
_END_USER = re.compile(r"[a-zA-Z0-9_.:|/-]{1,256}", re.ASCII)
_DIGEST_LENGTH = 32

_PROPERTY = re.compile(r"[a-zA-Z0-9_.-]{1,64}", re.ASCII)
_INVALID = re.compile(r"[^a-zA-Z0-9_.-]", re.ASCII)
_MAX_PROPERTY = 64
_SHORT_DIGEST = 12

JSON_ALONE = "Answer with one JSON object and nothing else: no words around it, no code fence."


def tool_use_id(call_id: str) -> str:
    """Return the id of a tool call, or a hash if it has invalid characters.

    A call and its result have the same id, and so the same hash.
    """
    return call_id if _ID.fullmatch(call_id) else f"call_{digest_of(call_id, _DIGEST_LENGTH)}"


def property_names(schema: Mapping[str, Any]) -> PropertyNames | None:
    """Return valid names for the properties that Anthropic rejects; None if it rejects none.

    A valid name ends in a hash, so that two names never become one.
    """
    outer, inner = (
        {name: _property(name) for name in names if not _PROPERTY.fullmatch(name)}
        for names in names_of_properties(schema)
    )
    return PropertyNames(outer, inner) if outer or inner else None


def _property(name: str) -> str:
    readable = _INVALID.sub("_", name)[: _MAX_PROPERTY - _SHORT_DIGEST - 1]
    return f"{readable}_{digest_of(name, _SHORT_DIGEST)}"


def end_user(user: str) -> str:
    """Return an opaque id of the end user: the caller's own, or a hash of it."""
    return user if _END_USER.fullmatch(user) else f"user_{digest_of(user, _DIGEST_LENGTH)}"
