"""Output formats of chat completions and responses."""

from collections.abc import Mapping
from typing import Any

from facade.dialects.validation import to_json
from gateway.inference.v1.inference_pb2 import OutputFormat

FORMATS = {
    "text": OutputFormat.KIND_TEXT,
    "json_object": OutputFormat.KIND_JSON_OBJECT,
    "json_schema": OutputFormat.KIND_JSON_SCHEMA,
}


_SCHEMA = "json_schema"


def has_schema(form: Mapping[str, Any], described: Mapping[str, Any] | None) -> bool:
    """Return whether a format is complete: `json_schema` without a schema is any JSON object.

    Args:
        form: the format.
        described: the object with the schema.
    """
    return form["type"] != _SCHEMA or "schema" in (described or ())


def set_format(target: OutputFormat, kind: str, described: Mapping[str, Any], path: str) -> None:
    """Set the output format of an answer.

    Args:
        target: modified in place.
        kind: a key of `FORMATS`.
        described: for `json_schema`, the object with `name` and, usually, `schema`.
        path: path of that object.

    Raises:
        GatewayError: invalid, as `to_json`.
    """
    target.kind = FORMATS[kind]
    if kind != _SCHEMA:
        return
    if "schema" not in described:
        target.kind = OutputFormat.KIND_JSON_OBJECT
        return
    target.name = described["name"]
    target.schema = to_json(described["schema"], f"{path}.schema")
    target.description = described.get("description") or ""
    if (strict := described.get("strict")) is not None:
        target.strict = strict
