"""Names of functions in place of tools in a namespace. Pure.

A tool in a namespace has two names, which calls repeat. Providers without namespaces get one name
that is made of both. It depends on nothing but the two names (and on the names of other tools only
if one of them is the same), so that the turns of a conversation agree with each other.

Source: OpenAI's reference of the tool `namespace`.
"""

import hashlib
import re
from collections.abc import Container

from gateway.conversation.v1.conversation_pb2 import DIALECT_RESPONSES, Block
from services.inference.client_tools.definitions import Fields, object_in

NAMESPACE = "namespace"
_MARK = b'"namespace"'
# Names that OpenAI, Anthropic and Gemini all accept.
_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}", re.ASCII)
_INVALID = re.compile(r"[^a-zA-Z0-9_-]", re.ASCII)
_MAX_NAME = 64
_DIGEST_LENGTH = 12
_SEPARATOR = "__"


def function_name(namespace: str, name: str, taken: Container[str]) -> str:
    """Return the name of the function in place of a tool in a namespace.

    It is both names, joined. If that would be invalid, ambiguous or taken, it ends in a hash.

    Args:
        namespace: the name of the namespace.
        name: the name of the tool in it.
        taken: the names of tools without a namespace.
    """
    joined = f"{namespace}{_SEPARATOR}{name}"
    # Two tools have the same joined name only if their names differ in where they are split.
    is_unambiguous = joined.rpartition(_SEPARATOR)[2] == name
    if is_unambiguous and _NAME.fullmatch(joined) and joined not in taken:
        return joined
    digest = hashlib.sha256(f"{namespace}\0{name}".encode()).hexdigest()[:_DIGEST_LENGTH]
    readable = _INVALID.sub("_", joined)
    if not _NAME.match(readable):
        readable = f"_{readable}"
    return f"{readable[: _MAX_NAME - _DIGEST_LENGTH - 1]}_{digest}"


def fields_in_namespace(block: Block) -> Fields:
    """Return the unknown fields of a call in a namespace; empty for other calls."""
    extra = block.extra
    if extra.dialect != DIALECT_RESPONSES or _MARK not in extra.json:
        return {}
    fields = object_in(extra)
    namespace = fields.get(NAMESPACE)
    return fields if isinstance(namespace, str) and namespace else {}
