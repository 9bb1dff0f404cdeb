"""Schemas of OpenAPI 3.0, as Google's `Schema`, and the JSON schemas of the same values. Pure.

Source: ai.google.dev/api/caching#Schema.
"""

from collections.abc import Mapping
from typing import Any, Final

Json = dict[str, Any]

# Fields that JSON schemas lack.
_UNKNOWN: Final = frozenset({"nullable", "propertyOrdering"})
_COUNTS: Final = frozenset(
    {
        *("minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties"),
    }
)
_SCHEMAS: Final = frozenset({"items", "additionalProperties", "not"})
_LISTS: Final = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_MAPS: Final = frozenset({"properties", "defs", "$defs", "definitions"})
_UNSPECIFIED: Final = "TYPE_UNSPECIFIED"


def camel_name(name: str) -> str:
    """Return a name of `snake_case` in `camelCase`."""
    first, *others = name.split("_")
    return first + "".join(other.capitalize() for other in others)


def json_schema(schema: Mapping[str, Any]) -> Json:
    """Return the JSON schema of a schema of Google's.

    Types are in lower case, null is a type, and counts are numbers; what JSON schemas do not know
    is left out.
    """
    converted: Json = {}
    for given_name, value in schema.items():
        name = camel_name(given_name)
        if name in _UNKNOWN or value is None or value == _UNSPECIFIED:
            continue
        converted[name] = _converted(name, value)
    if schema.get("nullable"):
        _add_null(converted)
    return converted


def _converted(name: str, value: Any) -> Any:
    if name == "type":
        return _type(value)
    if name in _COUNTS and isinstance(value, str) and value.isdecimal():
        return int(value)
    if name in _SCHEMAS and isinstance(value, dict):
        return json_schema(value)
    if name in _LISTS and isinstance(value, list):
        return [json_schema(one) if isinstance(one, dict) else one for one in value]
    if name in _MAPS and isinstance(value, dict):
        return {
            key: json_schema(one) if isinstance(one, dict) else one for key, one in value.items()
        }
    return value


def _type(value: Any) -> Any:
    if isinstance(value, list):
        return [_type(one) for one in value]
    return value.lower() if isinstance(value, str) else value


def _add_null(schema: Json) -> None:
    kind = schema.get("type")
    if isinstance(kind, str) and kind != "null":
        schema["type"] = [kind, "null"]
    elif isinstance(schema.get("anyOf"), list):
        schema["anyOf"] = [*schema["anyOf"], {"type": "null"}]
    if isinstance(schema.get("enum"), list):
        schema["enum"] = [*schema["enum"], None]
