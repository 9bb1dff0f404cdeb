"""JSON Schemas in the forms that providers accept. Pure.

Callers write schemas for one provider, MCP servers for none. A constraint that a target rejects is
stated in the description of the schema that it belongs to, as the SDKs of OpenAI and Anthropic do.
The functions do not modify their arguments, and their time is linear in the size of a schema, which
is nested at most as deeply as a request.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

from services.inference.providers.opaque_json import write_body

Schema = dict[str, Any]

_UNIONS = ("anyOf", "oneOf", "allOf")
# Keywords at the root of a function's parameters that providers reject.
_ROOT_WORDS = frozenset((*_UNIONS, "not", "$ref"))
# Those that are stated in the description of the root.
_STATED: tuple[str, ...] = ("anyOf", "oneOf", "not")
# Keywords that define no parameters.
_OF_NO_ARGUMENTS = frozenset({"$schema", "type", "properties", "required"})
# Keywords whose value is a schema, a list of schemas, or an object of schemas.
_SCHEMAS = frozenset(("items", "additionalProperties", "not", "contains", "propertyNames"))
_LISTS = frozenset((*_UNIONS, "prefixItems"))
_MAPS = frozenset(("properties", "$defs", "definitions", "patternProperties"))
_PROPERTIES_STEP = "/properties/"
# Maximum references followed from one schema to the next; more form a circle.
_MAX_REFERENCES = 64

# The keywords of Anthropic's structured outputs, and the values of `format`.
_OF_ANSWERS = frozenset(
    {
        *("type", "properties", "required", "items", "anyOf", "allOf", "enum", "const"),
        *("$ref", "$defs", "definitions", "title", "description", "default"),
        "additionalProperties",
    }
)
_FORMATS = frozenset(
    {
        *("date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6"),
        "uuid",
    }
)


# The keywords of Gemini's JSON Schemas, and the values of `format`.
_OF_GEMINI = frozenset(
    {
        *("$ref", "$defs", "$anchor", "type", "title", "description", "enum", "items"),
        *("prefixItems", "minItems", "maxItems", "minimum", "maximum", "anyOf", "oneOf"),
        *("properties", "additionalProperties", "required", "propertyOrdering", "definitions"),
        *("default", "nullable"),
    }
)
_FORMATS_OF_GEMINI = frozenset({"date-time", "date", "time", "enum", "int32", "int64", "double"})
_TO_DEFINITIONS = "#/definitions/"
# Keywords that say nothing about values.
_WITHOUT_MEANING = frozenset({"$schema", "$id", "$comment", "id"})


class OpenObjectError(Exception):
    """Error raised for a map: an object whose members have any names.

    Attributes:
        path: JSON pointer of its schema.
    """

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path


def has_plain_root(schema: Mapping[str, Any]) -> bool:
    """Return whether a function's parameters are an object schema without alternatives."""
    return schema.get("type") == "object" and _ROOT_WORDS.isdisjoint(schema)


def has_no_arguments(schema: Mapping[str, Any]) -> bool:
    """Return whether a function's parameters are an object without properties."""
    return not schema.get("properties") and all(
        name in _OF_NO_ARGUMENTS or (name == "additionalProperties" and value is False)
        for name, value in schema.items()
    )


def object_schema(schema: Mapping[str, Any]) -> Schema:
    """Return a function's parameters as an object schema without alternatives at its root.

    The properties of all alternatives become properties of the root. Those that every alternative
    requires are required, and the alternatives are stated in the description.
    """
    if has_plain_root(schema):
        return dict(schema)
    root = _resolved(schema, schema)
    fitted = {name: value for name, value in root.items() if name not in _ROOT_WORDS}
    fitted["type"] = "object"
    alternatives = _Alternatives(schema)
    alternatives.add(root)
    required = list(filter(_is_name, root.get("required") or ()))
    for word in _UNIONS:
        parts = root.get(word)
        if isinstance(parts, list) and parts:
            required += alternatives.add_all(parts, joins=word == "allOf")
    if properties := alternatives.properties():
        fitted["properties"] = properties
    if required:
        fitted["required"] = list(dict.fromkeys(required))
    return _described(fitted, {word: root[word] for word in _STATED if word in root})


class _Alternatives:
    """The properties of several object schemas; each definition is read once."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._read_ids: set[int] = set()  # of nodes, which the root keeps alive
        self._schemas: dict[str, dict[bytes, Any]] = {}  # by name of the property and by JSON

    def add_all(self, parts: list[Any], *, joins: bool) -> Iterable[str]:
        """Add schemas; return the properties that all of them require.

        With `joins` all of them apply: return the properties that any of them requires.
        """
        names: set[str] | None = None
        for part in parts:
            added = self.add(part)
            if names is None:
                names = added
            else:
                names = names | added if joins else names & added
        return sorted(names or ())

    def add(self, schema: Any) -> set[str]:
        """Add the properties of a schema; return those that it requires."""
        required: set[str] = set()
        for node in _chain(schema, self._root):
            names = node.get("required")
            required.update(filter(_is_name, names if isinstance(names, list) else ()))
            if id(node) in self._read_ids:
                break
            self._read_ids.add(id(node))
            properties = node.get("properties")
            for name, part in properties.items() if isinstance(properties, dict) else ():
                self._schemas.setdefault(name, {}).setdefault(write_body(part), part)
        return required

    def properties(self) -> Schema:
        """Return the schema of each property; one with several schemas may match any of them."""
        return {name: _either(list(by_json.values())) for name, by_json in self._schemas.items()}


def function_schema(schema: Mapping[str, Any], *, lacks_items: bool) -> Schema:
    """Return a function's parameters as OpenAI accepts them.

    Args:
        schema: the parameters.
        lacks_items: whether there may be an array without `items`.
    """
    fitted = object_schema(schema)
    fitted.setdefault("properties", {})
    return with_items(fitted) if lacks_items else fitted


def may_be_strict(schema: Schema) -> bool:
    """Return whether OpenAI accepts a function's parameters in strict mode.

    Every object is closed there, and requires all of its properties.
    """
    for _, part in _parts(schema):
        properties, required = part.get("properties"), part.get("required")
        if part.get("type") != "object" and not isinstance(properties, dict):
            continue
        names = required if isinstance(required, list) else []
        if part.get("additionalProperties") is not False or set(properties or ()) - {
            *filter(_is_name, names)
        }:
            return False
    return True


def lacks_items(json: bytes) -> bool:
    """Return whether the JSON of schemas may have an array without `items`.

    A quick check: it compares how often both words occur.
    """
    return json.count(b'"array"') != json.count(b'"items"')


def with_items(schema: Schema) -> Schema:
    """Return a schema in which every array has `items`: OpenAI rejects others."""
    return _mapped(schema, _add_items)


def _add_items(schema: Schema) -> Schema:
    kinds = schema.get("type")
    is_array = kinds == "array" or (isinstance(kinds, list) and "array" in kinds)
    if is_array and "items" not in schema and "prefixItems" not in schema:
        schema["items"] = {}
    return schema


def for_gemini(schema: Schema) -> Schema:
    """Return a schema as Gemini accepts it.

    It takes no keyword beside `$ref`, so that the reference becomes the only alternative, and no
    empty `properties`. References lead to `$defs`. Keywords that it does not know are stated in
    descriptions.
    """
    if "$ref" in schema:
        schema = _resolved(schema, schema)
    fitted = _mapped(schema, _fit_gemini)
    if isinstance(older := fitted.pop("definitions", None), dict):
        newer = fitted.get("$defs")
        fitted["$defs"] = {**older, **(newer if isinstance(newer, dict) else {})}
    return fitted


def _fit_gemini(schema: Schema) -> Schema:
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference.startswith(_TO_DEFINITIONS):
        schema["$ref"] = f"#/$defs/{reference.removeprefix(_TO_DEFINITIONS)}"
    if "$ref" in schema and len(schema) > 1:
        schema["anyOf"] = [{"$ref": schema.pop("$ref")}]
    if schema.get("properties") == {}:
        del schema["properties"]
    if isinstance(const := schema.get("const"), str):
        schema.pop("const")
        schema.setdefault("enum", [const])
    parts = schema.get("allOf")
    if isinstance(parts, list) and len(parts) == 1 and "anyOf" not in schema:
        # As pydantic writes a reference with siblings.
        schema["anyOf"] = schema.pop("allOf")
    if schema.get("type") == "array" and not ("items" in schema or "prefixItems" in schema):
        schema["items"] = {}
    removed = {
        name: schema.pop(name)
        for name, value in tuple(schema.items())
        if name not in _OF_GEMINI and not (name == "format" and value in _FORMATS_OF_GEMINI)
    }
    for name in _WITHOUT_MEANING & removed.keys():
        del removed[name]
    return _described(schema, removed)


def names_of_properties(schema: Mapping[str, Any]) -> tuple[set[str], set[str]]:
    """Return the names of the properties of an object, and of all objects inside of it."""
    outer: set[str] = set()
    inner: set[str] = set()
    for path, part in _parts(schema):
        properties = part.get("properties")
        if isinstance(properties, dict):
            (inner if path else outer).update(properties)
    return outer, inner


def with_property_names(schema: Schema, names: Mapping[str, str]) -> Schema:
    """Return a schema with other names of properties, and of references to them.

    Args:
        schema: the schema.
        names: the new names, by the old ones.
    """

    def rename(part: Schema) -> Schema:
        properties, required = part.get("properties"), part.get("required")
        if isinstance(properties, dict):
            part["properties"] = {names.get(name, name): one for name, one in properties.items()}
        if isinstance(required, list):
            part["required"] = [names.get(name, name) for name in required if _is_name(name)]
        reference = part.get("$ref")
        if isinstance(reference, str) and _PROPERTIES_STEP in reference:
            part["$ref"] = "/".join(_renamed_steps(reference.split("/"), names))
        return part

    return _mapped(schema, rename)


def _renamed_steps(steps: list[str], names: Mapping[str, str]) -> Iterator[str]:
    """Yield the steps of a JSON pointer, with other names of properties."""
    before = ""
    for step in steps:
        name = _unescaped(step)
        yield names[name] if before == "properties" and name in names else step
        before = step


def without_keywords(schema: Schema, keywords: Collection[str]) -> Schema:
    """Return a schema without some keywords, which are stated in descriptions."""

    def state(part: Schema) -> Schema:
        removed = {name: part.pop(name) for name in keywords if name in part}
        return _described(part, removed)

    return _mapped(schema, state)


def for_answer(schema: Schema) -> Schema:
    """Return the schema of an answer as Anthropic's structured outputs accept it.

    All objects are closed, and keywords that are not supported are stated in descriptions.

    Raises:
        OpenObjectError: the schema contains a map, which would be closed to nothing.
    """
    for path, part in _parts(schema):
        more = part.get("additionalProperties")
        if isinstance(more, dict) or (more is True and not part.get("properties")):
            raise OpenObjectError(path)
    return _mapped(schema, _fit_answer)


def _fit_answer(schema: Schema) -> Schema:
    if "oneOf" in schema and "anyOf" not in schema:
        schema["anyOf"] = schema.pop("oneOf")
    removed = {
        name: schema.pop(name)
        for name, value in tuple(schema.items())
        if name not in _OF_ANSWERS
        and not (name == "format" and value in _FORMATS)
        and not (name == "minItems" and value in (0, 1))
    }
    removed.pop("$schema", None)
    if schema.get("type") == "object" or "properties" in schema:
        schema["additionalProperties"] = False
    return _described(schema, removed)


def _described(schema: Schema, removed: dict[str, Any]) -> Schema:
    """State removed keywords in the description of a schema."""
    if removed:
        words = write_body(removed).decode()
        description = schema.get("description")
        schema["description"] = (
            f"{description}\n\n{words}" if isinstance(description, str) and description else words
        )
    return schema


def _mapped(schema: Schema, change: Callable[[Schema], Schema]) -> Schema:
    """Return a copy of a schema with a change applied to it and then to the schemas in it."""
    root = {"": schema}
    # Not recursive: the schemas of gRPC callers may be nested more deeply than Python calls.
    waiting: list[tuple[Any, Any, Any]] = [(root, "", schema)]
    while waiting:
        holder, key, part = waiting.pop()
        if not isinstance(part, dict):
            continue
        changed = holder[key] = change(dict(part))
        for name, value in changed.items():
            if name in _SCHEMAS:
                waiting.append((changed, name, value))
            elif name in _LISTS and isinstance(value, list):
                changed[name] = parts = list(value)
                waiting += ((parts, index, inner) for index, inner in enumerate(value))
            elif name in _MAPS and isinstance(value, dict):
                changed[name] = named = dict(value)
                waiting += ((named, inner_name, inner) for inner_name, inner in value.items())
    return root[""]


def _parts(schema: Mapping[str, Any]) -> Iterator[tuple[str, Schema]]:
    """Yield a schema and all schemas in it, with their JSON pointers."""
    waiting: list[tuple[str, Any]] = [("", dict(schema))]
    while waiting:
        path, part = waiting.pop()
        if not isinstance(part, dict):
            continue
        yield path, part
        for name, value in part.items():
            if name in _SCHEMAS:
                waiting.append((f"{path}/{name}", value))
            elif name in _LISTS and isinstance(value, list):
                waiting += ((f"{path}/{name}/{index}", one) for index, one in enumerate(value))
            elif name in _MAPS and isinstance(value, dict):
                waiting += ((f"{path}/{name}/{key}", one) for key, one in value.items())


def _resolved(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Schema:
    """Return a schema with the definitions that its `$ref` leads to, its own keywords on top."""
    resolved: Schema = {}
    for node in _chain(schema, root):
        resolved = {**node, **resolved}
    resolved.pop("$ref", None)
    return resolved


def _target(reference: str, root: Mapping[str, Any]) -> Schema | None:
    """Return the definition in `root` that a reference names, None if it is none."""
    node: Any = root
    start, *steps = reference.split("/")
    if start != "#":
        return None
    for step in steps:
        node = node.get(_unescaped(step)) if isinstance(node, dict) else None
    return node if isinstance(node, dict) else None


def _unescaped(step: str) -> str:
    """Return the name in a step of a JSON pointer (RFC 6901)."""
    return step.replace("~1", "/").replace("~0", "~")


def _chain(schema: Any, root: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield a schema and the definitions that its reference leads to, one after the other."""
    for _ in range(_MAX_REFERENCES):
        if not isinstance(schema, Mapping):
            return
        yield schema
        reference = schema.get("$ref")
        schema = _target(reference, root) if isinstance(reference, str) else None


def _is_name(value: object) -> bool:
    return isinstance(value, str)


def _either(schemas: list[Any]) -> Any:
    return schemas[0] if len(schemas) == 1 else {"anyOf": schemas}
