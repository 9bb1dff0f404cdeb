"""Smallest values that match a JSON Schema.

Supports types, `enum`, `const`, `$ref` within the schema, `allOf`, `anyOf`, `oneOf` (the first
branch that can be filled), `required`, bounds of numbers, lengths and counts, `uniqueItems`,
`prefixItems` and the common formats, also those that a description states (`"format":"uri"`).
Ignores `pattern`, `not`, `if` and dependencies between properties.

Schemas come from callers: a search takes no more steps, and produces no more characters, than its
budget allows.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import unquote

from services.common.text.texts import parse_digits, quoted
from services.sandbox.model.schema_budget import (
    MAX_DEPTH,
    Budget,
    NoExampleError,
    TooComplexError,
)
from services.sandbox.model.schema_rules import Rules

_Option = TypeVar("_Option")

# Steps that a value takes, beside those of its schemas.
_STEPS_A_VALUE = 3
# Characters of a reference that are resolved in one step.
_CHARACTERS_A_STEP = 8
# Characters of brackets, quotes, and words of JSON.
_PUNCTUATION = 2
_WORD = 5

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


def schema_example(schema: Mapping[str, Any], text: str, budget: Budget | None = None) -> Any:
    """Return a JSON value that matches `schema`; the result is deterministic.

    Strings without constraints become `text`, and URLs the first URL in it.

    Args:
        schema: the schema, with all that it refers to.
        text: a text.
        budget: what the search may take; by default that of one request.

    Raises:
        NoExampleError: no value was found.
    """
    try:
        return _Search(schema, text, budget or Budget()).fill((schema,), 0, 0)
    except RecursionError as error:
        raise NoExampleError("the schema is too deep") from error
    except (TypeError, ValueError, AttributeError, LookupError, ArithmeticError) as error:
        # The schema has not been validated: keywords of wrong types cause these errors.
        raise NoExampleError("the schema is malformed") from error


class _Search:
    def __init__(self, root: Mapping[str, Any], text: str, budget: Budget) -> None:
        self._root = root
        self._text = text or "sandbox"
        self._budget = budget
        address = _ADDRESS.search(self._text)
        self._address = address[0] if address else ""

    def fill(self, schemas: Iterable[Any], depth: int, nth: int) -> Any:
        """Return a value that matches all schemas.

        `nth` makes the values of an array differ from each other.
        """
        if depth > MAX_DEPTH:
            raise NoExampleError("the schema is too deep")
        self._budget.take_steps(_STEPS_A_VALUE)
        rules = Rules(self._resolve, self._budget)
        for schema in schemas:
            rules.add(schema)
        return self._satisfy(rules, depth, nth)

    def _satisfy(self, rules: Rules, depth: int, nth: int) -> Any:
        """Return a value that matches the rules and a branch of each of their choices."""
        if rules.choices:
            return self._with_branch(rules, depth, nth)
        words = rules.words
        if "enum" in words:
            return self._choose(words, nth)
        kinds = _kinds(words)
        if len(kinds) == 1:
            return self._of_kind(kinds[0], words, depth, nth)
        return self._first(lambda kind: self._of_kind(kind, words, depth, nth), kinds)

    def _with_branch(self, rules: Rules, depth: int, nth: int) -> Any:
        if depth > MAX_DEPTH:
            raise NoExampleError("the schema is too deep")
        choice = rules.choices.pop(0)

        def attempt(branch: Any) -> Any:
            extended = rules.copy()
            extended.add(branch, choice.within)
            return self._satisfy(extended, depth + 1, nth)

        return self._first(attempt, choice.branches)

    def _first(self, attempt: Callable[[_Option], Any], options: Iterable[_Option]) -> Any:
        """Return the result for the first option with which a value is found."""
        for option in options:
            try:
                return attempt(option)
            except TooComplexError:
                raise
            except NoExampleError:
                continue
        raise NoExampleError("no branch of the schema can be filled")

    def _of_kind(self, kind: str, words: Mapping[str, Any], depth: int, nth: int) -> Any:
        match kind:
            case "object":
                return self._object(words, depth, nth)
            case "array":
                return self._array(words, depth, nth)
            case "integer" | "number":
                number = _number(words, kind == "integer", nth)
                self._budget.produce(len(str(number)))
                return number
            case "boolean":
                self._budget.produce(_WORD)
                return nth % 2 == 1
            case "null":
                self._budget.produce(_WORD)
                return None
            case "string":
                return self._string(words, nth)
        raise NoExampleError(f"there is no type {quoted(kind)}")

    def _resolve(self, reference: Any) -> Any:
        if not isinstance(reference, str) or not reference.startswith("#"):
            raise NoExampleError("a $ref must point into the schema itself")
        self._budget.take_steps(len(reference) // _CHARACTERS_A_STEP)
        node: Any = self._root
        for step in unquote(reference[1:]).split("/")[1:]:
            key = step.replace("~1", "/").replace("~0", "~")
            index = parse_digits(key)
            if isinstance(node, list) and index is not None and index < len(node):
                node = node[index]
            elif isinstance(node, Mapping) and key in node:
                node = node[key]
            else:
                raise NoExampleError(f"there is nothing at {quoted(reference)}")
        return node

    def _choose(self, words: Mapping[str, Any], nth: int) -> Any:
        """Return the `nth` value of the enum that has one of the types."""
        kinds = words.get("type", ())
        self._budget.take_steps(len(words["enum"]) * max(1, len(kinds)))
        fitting = [
            value
            for value in words["enum"].values()
            if not kinds or any(_is(kind, value) for kind in kinds)
        ]
        if not fitting:
            raise NoExampleError("no value of an enum fits")
        chosen = fitting[nth % len(fitting)]
        self._count_value(chosen)
        return chosen

    def _count_value(self, value: Any) -> None:
        """Count the characters of a value of the schema."""
        waiting = [value]
        while waiting:
            self._budget.take_steps()
            item = waiting.pop()
            self._budget.produce(_PUNCTUATION)
            if isinstance(item, Mapping):
                self._budget.take_steps(len(item))
                self._budget.produce(sum(map(len, item)) + 2 * _PUNCTUATION * len(item))
                waiting.extend(item.values())
            elif isinstance(item, list):
                self._budget.take_steps(len(item))
                waiting.extend(item)
            else:
                self._budget.produce(len(item) if isinstance(item, str) else len(str(item)))

    def _object(self, words: Mapping[str, Any], depth: int, nth: int) -> dict[str, Any]:
        properties = words.get("properties", {})
        others = words.get("additionalProperties", ())
        filled: dict[str, Any] = {}
        for name in self._names(words, is_closed=any(other is False for other in others)):
            self._budget.produce(len(name) + 2 * _PUNCTUATION)
            filled[name] = self.fill(properties.get(name, others), depth + 1, nth)
        self._budget.produce(_PUNCTUATION)
        return filled

    def _names(self, words: Mapping[str, Any], *, is_closed: bool) -> Sequence[str]:
        """Return the names of an object's properties: as few as it must have."""
        required = words.get("required", {})
        self._budget.take_steps(len(required))
        names = dict(required)
        least = int(words.get("minProperties", 0))
        for name in words.get("properties", ()):
            if len(names) >= least:
                break
            self._budget.take_steps()
            names[name] = None
        if len(names) < least and is_closed:
            raise NoExampleError("an object cannot have as many properties as it must")
        number = len(names)
        while len(names) < least:
            self._budget.take_steps()
            names[f"sandbox{number}"] = None
            number += 1
        return list(names)

    def _array(self, words: Mapping[str, Any], depth: int, nth: int) -> list[Any]:
        first = words.get("prefixItems") or []
        others = (*words.get("items", ()), *words.get("contains", ()))
        least = int(words.get("minItems", 0))
        if "contains" in words:
            least = max(least, int(words.get("minContains", 1)))
        is_unique = words.get("uniqueItems") is True
        filled: list[Any] = []
        self._budget.produce(_PUNCTUATION)
        for index in range(least):
            self._budget.produce(1)
            schemas = (first[index],) if index < len(first) else others
            filled.append(self.fill(schemas, depth + 1, index if is_unique else nth))
        return filled

    def _string(self, words: Mapping[str, Any], nth: int) -> str:
        least = int(words.get("minLength", 0))
        form = words.get("format", "")
        text = _FORMATS.get(form, self._text)
        if form in _ADDRESSES and self._address:
            text = self._address
        mark = str(nth) if nth else ""
        if "maxLength" in words:
            most = max(0, int(words["maxLength"]))
            text = (text[: max(0, most - len(mark))] + mark)[:most]
        else:
            text += mark
        self._budget.produce(_PUNCTUATION + max(len(text), least))
        return text.ljust(least, ".")


def _kinds(words: Mapping[str, Any]) -> Sequence[str]:
    """Return the types that the rules allow: declared, or inferred from their keywords."""
    if "type" in words:
        kinds: Sequence[str] = words["type"]
        return kinds
    for kind, keywords in _KEYWORDS_OF_TYPES.items():
        if any(word in words for word in keywords):
            return [kind]
    return ["string"]


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
