"""Unknown fields of responses, kept as JSON for providers of the dialect."""

from collections.abc import Iterable, Mapping, Set
from typing import Any

import orjson

from facade.dialects.validation import to_opaque
from gateway.conversation.v1.conversation_pb2 import DIALECT_RESPONSES, Block, Message, Opaque
from gateway.inference.v1.inference_pb2 import Tool


def keep_unknown_fields(
    holder: Block | Message | Tool,
    fields: Mapping[str, Any],
    known_fields: Set[str],
    path: str,
    covered: Iterable[str] = (),
) -> None:
    """Keep the fields of an object that have no canonical name, if there are any.

    Args:
        holder: its `extra` is set.
        fields: the object; nulls are dropped.
        known_fields: names of fields with a canonical name.
        path: path of the object.
        covered: names of fields that providers of other dialects do not report as dropped.

    Raises:
        GatewayError: invalid, as `to_json`.
    """
    if fields.keys() <= known_fields:
        return
    extra = {
        name: value
        for name, value in fields.items()
        if name not in known_fields and value is not None
    }
    if extra:
        holder.extra.CopyFrom(to_opaque(DIALECT_RESPONSES, extra, path))
        holder.extra.covered_paths.extend(name for name in covered if name in extra)


def native_fields(extra: Opaque) -> dict[str, Any]:
    """Return the fields of an opaque object; none if it is of another dialect."""
    if extra.dialect != DIALECT_RESPONSES or not extra.json:
        return {}
    fields: dict[str, Any] = orjson.loads(extra.json)
    return fields
