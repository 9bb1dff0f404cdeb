"""JSON schemas of objects that are written without a wire type, for the OpenAPI document."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final

from pydantic import BaseModel

JsonObject = dict[str, Any]

OBJECT: Final[JsonObject] = {"type": "object"}
STRING: Final[JsonObject] = {"type": "string"}
NAME: Final[JsonObject] = {"type": "string", "minLength": 1}
INTEGER: Final[JsonObject] = {"type": "integer"}
COUNT: Final[JsonObject] = {"type": "integer", "minimum": 0}
BOOLEAN: Final[JsonObject] = {"type": "boolean"}
OPTIONAL_STRING: Final[JsonObject] = {"type": ["string", "null"]}
UNIX_SECONDS: Final[JsonObject] = {"type": "integer", "description": "Unix seconds."}
DATE_TIME: Final[JsonObject] = {"type": "string", "format": "date-time"}


@dataclass(frozen=True, slots=True, eq=False)
class NamedSchema:
    """A schema with a name of its own in the OpenAPI document.

    Attributes:
        name: the name.
        source: the schema, or the model that has it.
    """

    name: str
    source: JsonObject | type[BaseModel]

    @property
    def ref(self) -> JsonObject:
        """The reference to it."""
        return {"$ref": f"#/components/schemas/{self.name}"}

    def json_schema(self) -> JsonObject:
        """Return the schema."""
        return self.source if isinstance(self.source, dict) else self.source.model_json_schema()


def array(items: JsonObject) -> JsonObject:
    """Return the schema of an array."""
    return {"type": "array", "items": items}


def open_object(properties: JsonObject, *, optional: Collection[str] = ()) -> JsonObject:
    """Return the schema of an object, which may have more properties than those named."""
    required = [name for name in properties if name not in optional]
    return {"type": "object", "required": required, "properties": properties}


def closed_object(properties: JsonObject) -> JsonObject:
    """Return the schema of an object with exactly these properties."""
    return {**open_object(properties), "additionalProperties": False}


def described(schema: JsonObject, description: str) -> JsonObject:
    """Return a schema with a description."""
    return {**schema, "description": description}
