"""Forms that Anthropic takes of ids, texts and schemas that it would refuse as written. Pure.

Nothing here is for callers who speak Anthropic's own dialect: theirs goes as it is.
"""

import re
from typing import Any

from services.inference.providers.conversation_writer import digest_of

Json = dict[str, Any]

_ID = re.compile(r"[a-zA-Z0-9_-]{1,256}", re.ASCII)
# An e-mail address, or a name, is personal data, which Anthropic refuses here.
_END_USER = re.compile(r"[a-zA-Z0-9_.:|/-]{1,256}", re.ASCII)
_DIGEST_LENGTH = 32

JSON_ALONE = "Answer with one JSON object and nothing else: no words around it, no code fence."


def tool_use_id(given: str) -> str:
    """Return the id of a tool call, or a hash of one with other characters.

    A call and its result have the same id, and so the same hash.
    """
    return given if _ID.fullmatch(given) else f"call_{digest_of(given, _DIGEST_LENGTH)}"


def end_user(given: str) -> str:
    """Return an opaque id of the end user: the caller's own, or a hash of it."""
    return given if _END_USER.fullmatch(given) else f"user_{digest_of(given, _DIGEST_LENGTH)}"


def closed_schema(schema: Any) -> Any:
    """Return a JSON Schema whose objects all say `additionalProperties: false`.

    Structured outputs take no other; other providers' take schemas that leave it out.
    """
    if isinstance(schema, list):
        return [closed_schema(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {name: closed_schema(part) for name, part in schema.items()}
    is_object = schema.get("type") == "object" or "properties" in schema
    if is_object and isinstance(schema.get("properties", {}), dict):
        closed.setdefault("additionalProperties", False)
    return closed
