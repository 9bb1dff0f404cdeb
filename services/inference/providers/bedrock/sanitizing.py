"""Valid replacements for names and ids that Bedrock would reject. Pure.

The patterns are those of the service model of `bedrock-runtime`.
"""

import re
from collections.abc import Iterable
from urllib.parse import quote

from services.common.errors import model_not_found
from services.inference.providers.conversation_writer import digest_of

# Names of models, inference profiles, and ARNs.
_MODEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/-]{0,2047}", re.ASCII)
_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}", re.ASCII)
_NOT_OF_TOOL_NAMES = re.compile(r"[^a-zA-Z0-9_-]", re.ASCII)
_CALL_ID = re.compile(r"[a-zA-Z0-9_.:-]{1,64}", re.ASCII)
_MAX_NAME = 64
_DIGEST_LENGTH = 12
_ID_DIGEST_LENGTH = 32
# DocumentBlock.name: letters, digits, single white space, hyphens, parentheses, square brackets.
_NOT_OF_DOCUMENTS = re.compile(r"[^a-zA-Z0-9()\[\]-]+", re.ASCII)
_MAX_DOCUMENT_NAME = 150


def model_path(upstream: str) -> str:
    """Return the path of a model, with the escapes that AWS's clients send.

    Raises:
        GatewayError: model_not_found, if the name is malformed.
    """
    if not _MODEL.fullmatch(upstream):
        raise model_not_found(upstream)
    return f"/model/{quote(upstream, safe='')}"


def tool_name(name: str) -> str:
    """Return a tool name that Bedrock accepts, derived from the given one."""
    if _TOOL_NAME.fullmatch(name):
        return name
    readable = _NOT_OF_TOOL_NAMES.sub("_", name)[: _MAX_NAME - _DIGEST_LENGTH - 1]
    return f"{readable}_{digest_of(name, _DIGEST_LENGTH)}"


def given_names(names: Iterable[str]) -> dict[str, str]:
    """Return the original names of tools that `tool_name` renames, by the new name."""
    return {sent: name for name in names if (sent := tool_name(name)) != name}


def call_id(call_id: str) -> str:
    """Return the id of a tool call, or a hash if it has invalid characters or is too long."""
    return (
        call_id if _CALL_ID.fullmatch(call_id) else f"call_{digest_of(call_id, _ID_DIGEST_LENGTH)}"
    )


def document_name(name: str, place: int) -> str:
    """Return a document's name; two documents of a request must not have the same one.

    Args:
        name: the caller's name, or "".
        place: the number of documents before it in the request.
    """
    base = _NOT_OF_DOCUMENTS.sub(" ", name).strip()[:_MAX_DOCUMENT_NAME].strip() or "document"
    return f"{base} {place + 1}" if place else base
