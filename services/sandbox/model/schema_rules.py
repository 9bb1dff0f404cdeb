"""The keywords of all schemas that apply to one value, as one set of rules.

A value of `{"$ref": …, "allOf": […], "minimum": 3}` has to match several schemas at once. They are
collected here; branches of `anyOf` and `oneOf` are only listed. A schema that has been collected is
not collected again, and one that contains itself is an error.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Self

from services.sandbox.model.schema_budget import MAX_DEPTH, Budget, NoExampleError

# Keywords whose value replaces that of the schema before.
_REPLACED = frozenset({"prefixItems", "multipleOf", "format", "pattern", "uniqueItems"})
# Keywords of which the largest or the smallest value applies.
_LOWEST = frozenset(
    {"minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties", "minContains"}
)
_HIGHEST = frozenset({"maximum", "exclusiveMaximum", "maxLength"})
_NUMERIC = _LOWEST | _HIGHEST | {"multipleOf"}
# A format at the end of a description, for providers that do not take it as a keyword.
_STATED_FORMAT = re.compile(r'"format":"([a-z-]{1,32})"')
_STATED_CHARACTERS = 200


class Choice(NamedTuple):
    """Alternative schemas, of which the value has to match one.

    Attributes:
        branches: the schemas.
        within: identities of the schemas that contain the alternatives.
    """

    branches: Sequence[Any]
    within: frozenset[int]


class Rules:
    """What one value has to match.

    Attributes:
        words: keywords with their combined values: `type` has a sequence of types, `enum` the
            values by their identity in JSON, `properties` all schemas of each property, `required`
            names as keys; `items`, `contains` and `additionalProperties` have all of their schemas.
        choices: alternatives, of which each needs a branch.
    """

    def __init__(self, resolve: Callable[[Any], Any], budget: Budget) -> None:
        """Create empty rules.

        Args:
            resolve: returns the schema that a `$ref` names.
            budget: what may be spent on them.
        """
        self.words: dict[str, Any] = {}
        self.choices: list[Choice] = []
        self._collected: set[int] = set()
        self._resolve = resolve
        self._budget = budget

    def copy(self) -> Self:
        """Return rules to which a branch can be added."""
        mappings = {word: value for word, value in self.words.items() if isinstance(value, dict)}
        self._budget.take_steps(
            1 + len(self._collected) + len(self.choices) + sum(map(len, mappings.values()))
        )
        copied = type(self)(self._resolve, self._budget)
        copied.words = {**self.words, **{word: dict(value) for word, value in mappings.items()}}
        copied.choices = list(self.choices)
        copied._collected = set(self._collected)
        return copied

    def add(self, schema: Any, within: frozenset[int] = frozenset()) -> None:
        """Add a schema, with those that it refers to.

        Args:
            schema: the schema; anything but False and objects allows everything.
            within: identities of the schemas that contain it, and apply to the same value.

        Raises:
            NoExampleError: no value matches the rules, or the schema contains itself.
        """
        self._budget.take_steps()
        if schema is False:
            raise NoExampleError("the schema allows nothing")
        if not isinstance(schema, Mapping):
            return
        if id(schema) in within:
            raise NoExampleError("the references of the schema never end")
        if id(schema) in self._collected:
            return
        if len(within) >= MAX_DEPTH:
            raise NoExampleError("the schema is too deep")
        self._collected.add(id(schema))
        self._budget.take_steps(len(schema) + len(within))
        within = within | {id(schema)}
        if "$ref" in schema:
            self.add(self._resolve(schema["$ref"]), within)
        for word, value in schema.items():
            if word in _NUMERIC and not isinstance(value, int | float):
                raise TypeError(f"{word} must be a number")
            self._add_word(word, value, within)
        for part in schema.get("allOf", ()):
            self.add(part, within)

    def _add_word(self, word: str, value: Any, within: frozenset[int]) -> None:
        match word:
            case "properties":
                self._add_properties(value or {})
            case "required":
                self._add_required(value or ())
            case "items" | "contains" | "additionalProperties":
                self.words[word] = self._appended(self.words.get(word, ()), value)
            case "anyOf" | "oneOf":
                self.choices.append(Choice(value, within))
            case "enum":
                self._add_enum(value)
            case "const":
                self._add_enum([value])
            case "type":
                self._add_types(value)
            case "description" if isinstance(value, str):
                self._add_stated_format(value)
            case _ if word in _LOWEST:
                self.words[word] = max(self.words.get(word, value), value)
            case _ if word in _HIGHEST:
                self.words[word] = min(self.words.get(word, value), value)
            case _ if word in _REPLACED:
                self.words[word] = value

    def _add_properties(self, properties: Mapping[str, Any]) -> None:
        self._budget.take_steps(len(properties))
        self._budget.read(properties)
        collected = self.words.setdefault("properties", {})
        for name, schema in properties.items():
            collected[name] = self._appended(collected.get(name, ()), schema)

    def _add_required(self, names: Sequence[str]) -> None:
        self._budget.take_steps(len(names))
        if not all(isinstance(name, str) for name in names):
            raise TypeError("names must be strings")
        self._budget.read(names)
        self.words.setdefault("required", {}).update(dict.fromkeys(names))

    def _add_enum(self, values: Sequence[Any]) -> None:
        allowed = {self._identity(value): value for value in values}
        if "enum" in self.words:
            allowed = {key: one for key, one in self.words["enum"].items() if key in allowed}
        if not allowed:
            raise NoExampleError("no value of an enum fits")
        self.words["enum"] = allowed

    def _add_stated_format(self, description: str) -> None:
        stated = _STATED_FORMAT.search(description[-_STATED_CHARACTERS:])
        if stated is not None:
            self.words.setdefault("format", stated[1])

    def _add_types(self, value: Any) -> None:
        kinds = (value,) if isinstance(value, str) else value
        if not isinstance(kinds, list | tuple) or not kinds:
            return
        self._budget.take_steps(len(kinds))
        self._budget.read(kinds)
        if "type" in self.words:
            kinds = _common_types(self.words["type"], kinds)
        if not kinds:
            raise NoExampleError("no type is allowed by all schemas")
        self.words["type"] = tuple(dict.fromkeys(kinds))

    def _appended(self, schemas: tuple[Any, ...], schema: Any) -> tuple[Any, ...]:
        self._budget.take_steps(len(schemas))
        return (*schemas, schema)

    def _identity(self, value: Any) -> Any:
        """Return a hashable value that is equal for equal JSON: 1 is 1.0, and not true."""
        self._budget.take_steps()
        if isinstance(value, str):
            self._budget.read([value])
        if isinstance(value, bool):
            return "boolean", value
        if isinstance(value, list):
            # The first element's hash differs between processes: callers cannot choose values whose
            # hashes are equal.
            return "array", *map(self._identity, value)
        if isinstance(value, Mapping):
            self._budget.read(value)
            return frozenset((name, self._identity(inner)) for name, inner in value.items())
        return value


def _common_types(ones: Iterable[str], others: Iterable[str]) -> list[str]:
    """Return the types that both allow; every integer is a number."""
    ones, others = dict.fromkeys(ones), frozenset(others)
    both = [kind for kind in ones if kind in others]
    if "integer" not in both and (
        ("integer" in ones and "number" in others) or ("number" in ones and "integer" in others)
    ):
        both.append("integer")
    return both
