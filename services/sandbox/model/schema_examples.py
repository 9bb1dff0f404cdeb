"""Smallest values that match a JSON Schema.

Supports types, `enum`, `const`, `$ref` within the schema, `allOf`, `anyOf`, `oneOf` (the first
branch that can be filled), `required`, bounds of numbers, lengths and counts, `uniqueItems`,
`prefixItems` and the common formats. Ignores `pattern`, `not`, `if` and dependencies between
properties.
"""

import math
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

_MAX_DEPTH = 64
_MAX_STEPS = 20_000
_MAX_LENGTH = 100_000

_FORMATS = {
    "date-time": "2001-02-03T04:05:06Z",
    "date": "2001-02-03",
    "time": "04:05:06Z",
    "duration": "P1D",
    "email": "sandbox@example.com",
    "idn-email": "sandbox@example.com",
    "hostname": "sandbox.example.com",
    "idn-hostname": "sandbox.example.com",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "uri": "https://example.com/sandbox",
    "uri-reference": "https://example.com/sandbox",
    "iri": "https://example.com/sandbox",
    "iri-reference": "https://example.com/sandbox",
    "uuid": "00000000-0000-4000-8000-000000000000",
    "json-pointer": "/sandbox",
    "regex": "sandbox",
}

_ADDRESSES = ("uri", "iri")
_ADDRESS = re.compile(r"https?://[^\s\"<>]+")

_KEYWORDS_OF_TYPES = {
    "object": ("properties", "required", "additionalProperties", "minProperties"),
    "array": ("items", "prefixItems", "minItems", "contains"),
    "string": ("minLength", "maxLength", "pattern", "format"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
}


class NoExampleError(Exception):
    """Error raised if no value is found: the schema allows none, or is too complex."""


def schema_example(schema: Mapping[str, Any], text: str) -> Any:
    """Return a JSON value that matches `schema`; the result is deterministic.

    Strings without constraints become `text`, and URLs the first URL in it.

    Raises:
        NoExampleError: no value was found.
    """
    try:
        return _Search(schema, text).fill(schema, 0, 0)
    except (TypeError, ValueError, AttributeError, ArithmeticError, RecursionError) as error:
        # The schema has not been validated: keywords of wrong types cause these errors.
        raise NoExampleError("the schema is malformed") from error


class _Search:
    def __init__(self, root: Mapping[str, Any], text: str) -> None:
        self._root = root
        self._text = text or "sandbox"
        self._steps = 0

    def fill(self, schema: Any, depth: int, nth: int) -> Any:
        """Return a value; `nth` makes the values of an array differ from each other."""
        self._steps += 1
        if depth > _MAX_DEPTH or self._steps > _MAX_STEPS:
            raise NoExampleError("the schema is too deep or too large")
        if schema is False:
            raise NoExampleError("the schema allows nothing")
        if not isinstance(schema, Mapping):
            return self._string({}, nth)
        if "$ref" in schema:
            target = self._resolve(schema["$ref"])
            rest = {key: value for key, value in schema.items() if key != "$ref"}
            return self.fill(_merge(target, rest) if rest else target, depth + 1, nth)
        if "allOf" in schema:
            merged: Any = {key: value for key, value in schema.items() if key != "allOf"}
            for part in schema["allOf"]:
                merged = _merge(merged, self._flat(part, depth))
            return self.fill(merged, depth + 1, nth)
        for word in ("anyOf", "oneOf"):
            if word in schema:
                rest = {key: value for key, value in schema.items() if key != word}
                branches = [_merge(rest, self._flat(part, depth)) for part in schema[word]]
                return self._first(branches, depth, nth)
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return self._choice(schema, nth)
        kinds = _kinds(schema)
        if len(kinds) > 1:
            return self._first([{**schema, "type": kind} for kind in kinds], depth, nth)
        return self._of_kind(kinds[0], schema, depth, nth)

    def _of_kind(self, kind: str, schema: Mapping[str, Any], depth: int, nth: int) -> Any:
        match kind:
            case "object":
                return self._object(schema, depth, nth)
            case "array":
                return self._array(schema, depth, nth)
            case "integer" | "number":
                return _number(schema, kind == "integer", nth)
            case "boolean":
                return nth % 2 == 1
            case "null":
                return None
            case "string":
                return self._string(schema, nth)
        raise NoExampleError(f"there is no type {kind!r}")

    def _first(self, schemas: list[Any], depth: int, nth: int) -> Any:
        for schema in schemas:
            try:
                return self.fill(schema, depth + 1, nth)
            except NoExampleError:
                if self._steps > _MAX_STEPS:
                    raise
        raise NoExampleError("no branch of the schema can be filled")

    def _flat(self, schema: Any, depth: int) -> Any:
        """Resolve references at the top, so that the schema can be merged."""
        for _ in range(_MAX_DEPTH - min(depth, _MAX_DEPTH)):
            if not (isinstance(schema, Mapping) and "$ref" in schema):
                return schema
            rest = {key: value for key, value in schema.items() if key != "$ref"}
            schema = _merge(self._resolve(schema["$ref"]), rest)
        raise NoExampleError("the references of the schema never end")

    def _resolve(self, reference: Any) -> Any:
        if not isinstance(reference, str) or not reference.startswith("#"):
            raise NoExampleError("a $ref must point into the schema itself")
        node: Any = self._root
        for step in unquote(reference[1:]).split("/")[1:]:
            key = step.replace("~1", "/").replace("~0", "~")
            if isinstance(node, list) and key.isdigit() and int(key) < len(node):
                node = node[int(key)]
            elif isinstance(node, Mapping) and key in node:
                node = node[key]
            else:
                raise NoExampleError(f"there is nothing at {reference!r}")
        return node

    def _choice(self, schema: Mapping[str, Any], nth: int) -> Any:
        kinds = _kinds(schema) if "type" in schema else []
        fitting = [
            value
            for value in schema["enum"]
            if not kinds or any(_is(kind, value) for kind in kinds)
        ]
        if not fitting:
            raise NoExampleError("no value of an enum fits")
        return fitting[nth % len(fitting)]

    def _object(self, schema: Mapping[str, Any], depth: int, nth: int) -> dict[str, Any]:
        properties = schema.get("properties") or {}
        others = schema.get("additionalProperties", True)
        names = list(dict.fromkeys(schema.get("required") or ()))
        least = _count(schema, "minProperties")
        names += [name for name in properties if name not in names][: max(0, least - len(names))]
        if others is not False:
            names += [f"sandbox{number}" for number in range(len(names), least)]
        if len(names) < least:
            raise NoExampleError("an object cannot have as many properties as it must")
        return {name: self.fill(properties.get(name, others), depth + 1, nth) for name in names}

    def _array(self, schema: Mapping[str, Any], depth: int, nth: int) -> list[Any]:
        first = schema.get("prefixItems") or []
        rest = _merge(schema.get("items", True), schema.get("contains", True))
        least = _count(schema, "minItems")
        if "contains" in schema:
            least = max(least, _count(schema, "minContains", 1))
        unique = schema.get("uniqueItems") is True
        return [
            self.fill(
                first[index] if index < len(first) else rest, depth + 1, index if unique else nth
            )
            for index in range(least)
        ]

    def _string(self, schema: Mapping[str, Any], nth: int) -> str:
        least, most = _count(schema, "minLength"), schema.get("maxLength", _MAX_LENGTH)
        form = schema.get("format", "")
        address = _ADDRESS.search(self._text) if form in _ADDRESSES else None
        text = address[0] if address else _FORMATS.get(form, self._text)
        mark = str(nth) if nth else ""
        text = text[: max(0, int(most) - len(mark))] + mark
        return text[: int(most)].ljust(least, ".")


def _kinds(schema: Mapping[str, Any]) -> list[str]:
    """Return the types that a schema allows: declared, or inferred from its keywords."""
    kinds = schema.get("type")
    if isinstance(kinds, str):
        return [kinds]
    if isinstance(kinds, list) and kinds:
        return kinds
    return [
        next(
            (
                kind
                for kind, words in _KEYWORDS_OF_TYPES.items()
                if any(word in schema for word in words)
            ),
            "string",
        )
    ]


def _is(kind: str, value: Any) -> bool:
    match kind:
        case "integer" | "number":
            if not isinstance(value, int | float) or isinstance(value, bool):
                return False
            return kind == "number" or float(value).is_integer()
        case "object":
            return isinstance(value, Mapping)
    kinds: dict[str, type] = {"string": str, "boolean": bool, "array": list, "null": type(None)}
    return kind in kinds and isinstance(value, kinds[kind])


def _count(schema: Mapping[str, Any], word: str, default: int = 0) -> int:
    count = int(schema.get(word, default))
    if count > _MAX_LENGTH:
        raise NoExampleError(f"{word} is larger than {_MAX_LENGTH}")
    return count


def _number(schema: Mapping[str, Any], whole: bool, nth: int) -> int | float:
    """Return the `nth` number from the lower bound upwards, from the upper one down, or from 0."""
    step: int | float = schema.get("multipleOf", 1)
    if whole and step < 1:
        step = 1
    low: float = max(schema.get("minimum", -math.inf), schema.get("exclusiveMinimum", -math.inf))
    high: float = min(schema.get("maximum", math.inf), schema.get("exclusiveMaximum", math.inf))
    if low > -math.inf:
        count = math.ceil(low / step) + nth
        candidates = [count * step, (count + 1) * step]
    elif high < math.inf:
        count = math.floor(high / step) - nth
        candidates = [count * step, (count - 1) * step]
    else:
        candidates = [nth * step]
    if not whole and "multipleOf" not in schema:
        candidates += [low, high, (low + high) / 2]
    for value in candidates:
        above = value > low or (value == low and low != schema.get("exclusiveMinimum"))
        below = value < high or (value == high and high != schema.get("exclusiveMaximum"))
        if above and below and math.isfinite(value):
            return int(value) if whole else value
    raise NoExampleError("no number is within the bounds")


def _merge(one: Any, other: Any) -> Any:
    """Return a schema that requires what both schemas require."""
    if one is False or other is False:
        return False
    if not isinstance(one, Mapping):
        return other
    if not isinstance(other, Mapping):
        return one
    merged = dict(one)
    for word, value in other.items():
        merged[word] = _both(word, merged[word], value) if word in merged else value
    return merged


def _both(word: str, one: Any, other: Any) -> Any:
    match word:
        case "properties":
            return {**one, **other} | {
                name: _merge(one[name], other[name]) for name in one if name in other
            }
        case "required":
            return [*one, *other]
        case "enum":
            return [value for value in one if value in other]
        case "type":
            ones = [one] if isinstance(one, str) else one
            others = [other] if isinstance(other, str) else other
            both = [kind for kind in ones if kind in others]
            if not both and {"integer", "number"} <= {*ones, *others}:
                return "integer"
            return both or ["none that both allow"]
        case "minimum" | "exclusiveMinimum" | "minLength" | "minItems" | "minProperties":
            return max(one, other)
        case "maximum" | "exclusiveMaximum" | "maxLength" | "maxItems":
            return min(one, other)
        case "items" | "additionalProperties":
            return _merge(one, other)
        case "allOf":
            return [*one, *other]
        case "anyOf" | "oneOf":
            return [_merge(a, b) for a in one for b in other][:_MAX_DEPTH]
    return other
