"""Functions in the JSON of OpenAI's and Anthropic's dialects. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from gateway.conversation.v1.conversation_pb2 import Dialect, Opaque
from gateway.inference.v1.inference_pb2 import Tool
from services.common.errors import invalid

Fields = Mapping[str, Any]

_READ = frozenset({"type", "name", "description", "strict"})


def tools_in(holder: Fields, path: str) -> Iterator[tuple[str, Fields]]:
    """Yield the tools in a namespace or an item, each with its path.

    Raises:
        GatewayError: invalid.
    """
    tools = holder.get("tools")
    if not isinstance(tools, list):
        raise invalid(f"{path}.tools", f"{path}.tools: must be a list of tools")
    for index, fields in enumerate(tools):
        where = f"{path}.tools[{index}]"
        if not isinstance(fields, dict):
            raise invalid(where, f"{where}: must be an object")
        yield where, fields


def object_in(opaque: Opaque) -> Fields:
    """Return an opaque object; empty for other JSON, which the provider's adapter refuses."""
    try:
        fields = orjson.loads(opaque.json)
    except orjson.JSONDecodeError:
        return {}
    return fields if isinstance(fields, dict) else {}


def name_in(fields: Fields, path: str) -> str:
    """Return the name of a tool.

    Raises:
        GatewayError: invalid.
    """
    name = fields.get("name")
    if not (isinstance(name, str) and name):
        raise invalid(f"{path}.name", f"{path}.name: must be the name of the tool")
    return name


def function_of(
    fields: Fields, name: str, path: str, dialect: Dialect.ValueType, schema: str = "parameters"
) -> Tool:
    """Return a function; its flags are kept, to be reported as dropped.

    Args:
        fields: the function.
        name: its name at the provider.
        path: its path.
        dialect: its dialect.
        schema: the field with the schema of its arguments.

    Raises:
        GatewayError: invalid, for a schema that is no object.
    """
    description, parameters = fields.get("description"), fields.get(schema)
    function = Tool(name=name, description=description if isinstance(description, str) else "")
    if parameters is not None:
        if not isinstance(parameters, dict):
            raise invalid(f"{path}.{schema}", f"{path}.{schema}: must be a JSON Schema")
        function.input_schema = orjson.dumps(parameters)
    if isinstance(strict := fields.get("strict"), bool):
        function.strict = strict
    flags = {
        name: value
        for name, value in fields.items()
        if name not in _READ and name != schema and value is not None
    }
    if flags:
        function.extra.dialect, function.extra.json = dialect, orjson.dumps(flags)
    return function
