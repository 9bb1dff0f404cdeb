"""Schemas whose examples would take more work, or be longer, than a request may cost."""

import json
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.sandbox.model.schema_budget import Budget, NoExampleError, TooComplexError
from services.sandbox.model.schema_examples import schema_example

STEPS, CHARACTERS = 1_000, 2_000
# Lines of Python that one step takes at most.
LINES_A_STEP = 30
MAX_LINES = STEPS * LINES_A_STEP
MAX_BYTES = 1 << 20
# Characters of JSON that a character of a text takes at most, as an escape.
ESCAPE = 6
LONG = "x" * 1_000_000


class TooManyLinesError(Exception):
    """Error raised by a search that takes more lines of Python than its budget allows."""


@contextmanager
def at_most_lines(most: int) -> Iterator[None]:
    """Raise an error once the code in this context has run more lines of Python."""
    left = most

    def trace(frame: FrameType, event: str, _: Any) -> Callable[..., Any] | None:
        nonlocal left
        if "/sandbox/model/schema_" not in frame.f_code.co_filename:
            return None
        left -= event == "line"
        if left < 0:
            raise TooManyLinesError
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)


def assert_bounded(schema: Any) -> Any:
    """Search with a small budget; return the example, None if there is none."""
    budget = Budget(STEPS, CHARACTERS)
    try:
        with at_most_lines(MAX_LINES):
            example = schema_example(schema, "a text\0", budget)
    except NoExampleError:
        return None
    assert len(json.dumps(example, ensure_ascii=False)) <= ESCAPE * CHARACTERS
    return example


def in_items(schema: Any) -> Any:
    """Return the schema of an array that repeats a value for ever."""
    return {"type": "array", "minItems": 10**9, "uniqueItems": True, "items": schema}


def chain(word: str, length: int) -> Any:
    """Return a schema that refers twice to one that refers twice to another one, and so on."""
    definitions: dict[str, Any] = {
        f"d{place}": {word: [{"$ref": f"#/$defs/d{place + 1}"}] * 2} for place in range(length)
    }
    return {"$defs": {**definitions, f"d{length}": False}, "$ref": "#/$defs/d0"}


HOSTILE = {
    "all of itself": {"allOf": [{"$ref": "#"}, {"$ref": "#"}]},
    "any of itself": {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]},
    "all of itself, deeper": {"properties": {"a": {"allOf": [{"$ref": "#/properties/a"}] * 2}}}
    | {"required": ["a"]},
    "a chain of all": chain("allOf", 30),
    "a chain of any": chain("anyOf", 30),
    "4 GB": {
        **{"type": "array", "minItems": 60},
        "items": {
            **{"type": "array", "minItems": 60},
            "items": {"type": "string", "minLength": 100_000},
        },
    },
    "a long string": {"type": "string", "minLength": 10**9},
    "texts without end": in_items({"type": "string"}),
    "empty texts": in_items({"maxLength": 0}),
    "numbers": in_items({"type": "number", "minimum": 1, "multipleOf": 0.1}),
    "nulls": in_items({"type": "null"}),
    "names": {"minProperties": 10**9},
    "a long value": in_items({"const": LONG}),
    "a large value": in_items({"const": [0] * 100_000}),
    "many names of a value": in_items({"const": {str(number): 0 for number in range(100_000)}}),
    "equal enums": {"allOf": [{"enum": list(range(100_000))}] * 2},
    "different enums": {"allOf": [{"enum": list(range(n, n + 100_000))} for n in (0, 99_999)]},
    "equal long values": in_items({"allOf": [{"enum": [LONG, 1]}, {"enum": [LONG + "", 1]}]}),
    "an enum of other types": {"enum": [*range(300)], "type": [f"t{n}" for n in range(300)]},
    "branches that all fail": {"type": "null", "anyOf": [{"type": "string"}] * 100_000},
    "branches of branches": {
        **{"type": "integer", "maximum": 2},
        "allOf": [{"anyOf": [{"minimum": 3}, {"minimum": 4}]} for _ in range(60)],
    },
    "types": {"type": ["integer"] * 100_000, "minimum": 3, "maximum": 2},
    "types of many keywords": {
        **{f"keyword {number}": 1 for number in range(100_000)},
        "type": ["null"] * 100_000,
    },
    "many properties": {"allOf": [{"properties": {str(n): {} for n in range(300)}}] * 300},
    "one property often": {"allOf": [{"properties": {"a": {}}} for _ in range(100_000)]},
    "required names": {"required": [str(number) for number in range(100_000)]},
    "required names often": {"allOf": [{"required": ["a"]} for _ in range(100_000)]},
    "a long reference": in_items({"anyOf": [{"$ref": "#" + "/a" * 1_000_000}, True]}),
    "an escaped reference": in_items({"anyOf": [{"$ref": "#" + "/%41" * 1_000_000}, True]}),
    "a long step": in_items({"multipleOf": LONG}) | {"prefixItems": [{"type": "null"}] * 50},
    "a long value again": {"type": "array", "minItems": 50, "items": {"const": LONG}},
    "a long name again": {
        **{"type": "array", "minItems": 50},
        "items": {"required": [LONG], "additionalProperties": {"type": "null"}},
    },
    "a position by name": {"prefixItems": {"a": 1}, "minItems": 1},
    "a long bound": in_items({"allOf": [{"minimum": LONG}, {"minimum": LONG + "x"}]}),
    "long names": in_items({"allOf": [{"properties": {LONG: n}} for n in (1, 2)], "type": "null"}),
    "recursive": {
        "type": "object",
        "properties": {"a": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}},
        "patternProperties": {},
        "required": ["a", "b", "c"],
        "additionalProperties": {"$ref": "#/properties/a"},
    },
}


@pytest.fixture(params=HOSTILE.values(), ids=HOSTILE)
def schema(request: pytest.FixtureRequest) -> Any:
    """Return a hostile schema as it is received: equal parts of it are different objects."""
    return json.loads(json.dumps(request.param))


def test_a_hostile_schema_has_no_example(schema: Any) -> None:
    assert assert_bounded(schema) is None
    with pytest.raises(NoExampleError):
        schema_example(schema, "hello")


def test_a_hostile_schema_takes_little_memory(schema: Any) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(NoExampleError):
            schema_example(schema, "hello", Budget(STEPS, CHARACTERS))
        assert tracemalloc.get_traced_memory()[1] < MAX_BYTES
    finally:
        tracemalloc.stop()


JSON = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.sampled_from([0, 1, -1, 3, 10**9, 2**63, 1e308, -0.5, 1e-300]),
        st.sampled_from(["", "a", "object", "array", "uri", "#", "#/a", "#/$defs/b", "\0"]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["a", "b", "$ref", "allOf", "type"]), inner, max_size=3),
    ),
    max_leaves=5,
)
REFERENCES = st.sampled_from(["#", "#/$defs/a", "#/$defs/b", "#/$defs/c", "#/$defs/c/anyOf/0"])
COUNTS = st.sampled_from([0, 1, 2, 3, 60, 10**9])
BOUNDS = st.one_of(st.integers(-3, 3), st.sampled_from([1e308, -1e308, 0.1]))
TYPES = st.sampled_from(["object", "array", "string", "number", "integer", "boolean", "null"])
NAMES = st.sampled_from(["a", "b", "c"])


def keywords(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Return schemas with some keywords, each with a value of its own type or of any."""
    schemas = st.lists(inner, min_size=1, max_size=4)
    values = {
        "$ref": REFERENCES,
        "type": st.one_of(TYPES, st.lists(TYPES, max_size=7)),
        "enum": st.lists(JSON, max_size=4),
        "const": JSON,
        **dict.fromkeys(("allOf", "anyOf", "oneOf", "prefixItems"), schemas),
        **dict.fromkeys(("items", "contains", "additionalProperties"), inner),
        "properties": st.dictionaries(NAMES, inner, max_size=3),
        "required": st.lists(NAMES, max_size=3),
        **dict.fromkeys(("minItems", "minProperties", "minLength", "maxLength"), COUNTS),
        **dict.fromkeys(("minimum", "exclusiveMaximum", "maximum", "multipleOf"), BOUNDS),
        "uniqueItems": st.booleans(),
        "format": st.sampled_from(["uri", "date", "unknown"]),
    }
    words = st.lists(st.sampled_from(sorted(values)), unique=True, max_size=5)

    @st.composite
    def schema(draw: st.DrawFn) -> Any:
        is_valid = draw(st.integers(0, 4))
        return {word: draw(values[word] if is_valid else JSON) for word in draw(words)}

    return schema()


@st.composite
def hostile_schemas(draw: st.DrawFn) -> Any:
    """Return a schema whose definitions refer to each other."""
    schemas = st.recursive(
        st.one_of(st.booleans(), keywords(st.just(True))), keywords, max_leaves=6
    )
    root = draw(keywords(schemas))
    return {**root, "$defs": {name: draw(schemas) for name in "abc"}}


@given(hostile_schemas())
def test_no_search_exceeds_its_budget(schema: Any) -> None:
    assert_bounded(schema)


@pytest.mark.parametrize(
    "schema",
    [
        pytest.param({"properties": {str(n): {} for n in range(2_000)}}, id="properties"),
        pytest.param({"properties": {LONG: {}}}, id="a long name"),
        pytest.param({"enum": [LONG * 2]}, id="a long value"),
        pytest.param({"type": ["null"] * 2_000}, id="types"),
        pytest.param({"allOf": [{"properties": {"a": n}} for n in range(60)]}, id="one name"),
    ],
)
def test_what_is_read_counts_as_steps(schema: Any) -> None:
    steps = 1_000
    with pytest.raises(TooComplexError):
        schema_example({**schema, "required": []}, "hello", Budget(steps, CHARACTERS))


def test_a_budget_is_used_up_to_its_end() -> None:
    text = {"type": "string", "minLength": 5, "maxLength": 5}
    three = {"type": "array", "items": text, "minItems": 3}
    characters = len(json.dumps(["aaaaa"] * 3, separators=(",", ":"))) + 1
    assert schema_example(three, "a", Budget(STEPS, characters)) == ["a...."] * 3
    with pytest.raises(TooComplexError):
        schema_example(three, "a", Budget(STEPS, characters - 1))


def test_a_search_out_of_budget_tries_no_other_branch() -> None:
    schema = {"anyOf": [{"type": "string", "minLength": 10**9}, {"type": "null"}]}
    with pytest.raises(TooComplexError):
        schema_example(schema, "hello")


def test_a_schema_that_is_required_often_is_read_once() -> None:
    schema = chain("allOf", 20)
    schema["$defs"]["d20"] = {"const": 1}
    assert assert_bounded(schema) == 1


def test_a_branch_that_contains_itself_is_left_out() -> None:
    schema = {"anyOf": [{"$ref": "#"}, {"allOf": [{"$ref": "#"}]}, {"type": "null"}]}
    assert schema_example(schema, "hello") is None


def test_base_schemas_may_be_required_twice() -> None:
    schema = {
        "allOf": [{"$ref": "#/$defs/base"}],
        "oneOf": [{"allOf": [{"$ref": "#/$defs/base"}, {"required": ["b"]}]}],
        "$defs": {"base": {"properties": {"a": {"const": 1}}, "required": ["a"]}},
    }
    assert schema_example(schema, "hello") == {"a": 1, "b": "hello"}


def test_choices_of_several_schemas_all_apply() -> None:
    schema = {
        "allOf": [
            {"anyOf": [{"const": 1}, {"const": 2}]},
            {"anyOf": [{"const": 3}, {"const": 2}]},
        ]
    }
    assert schema_example(schema, "hello") == 2


@pytest.mark.parametrize(
    ("one", "other"), [(1, True), (0, False), ([1], [True]), ({"a": 1}, {"a": True}), ("1", 1)]
)
def test_different_values_in_json_are_different(one: Any, other: Any) -> None:
    with pytest.raises(NoExampleError):
        schema_example({"allOf": [{"enum": [one]}, {"enum": [other]}]}, "hello")


@pytest.mark.parametrize(("one", "other"), [(1, 1.0), ([1], [1.0]), ({"a": 1}, {"a": 1.0})])
def test_equal_numbers_in_json_are_equal(one: Any, other: Any) -> None:
    assert schema_example({"allOf": [{"enum": [one]}, {"enum": [other]}]}, "hello") == one
