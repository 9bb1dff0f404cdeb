import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.sandbox.model.schema_examples import NoExampleError, schema_example
from tests.grid import each_row

FORMATS = ["date-time", "date", "time", "email", "hostname", "ipv4", "ipv6", "uri", "uuid"]
NAMES = st.sampled_from(["city", "days", "a b", "ß"])


def bounded(word, low, high):
    """Return optional bounds that leave room between them."""
    return st.tuples(st.integers(low, high), st.integers(0, 5)).flatmap(
        lambda pair: st.sampled_from(
            [
                {},
                {f"min{word}": pair[0]},
                {f"max{word}": pair[0] + pair[1]},
                {f"min{word}": pair[0], f"max{word}": pair[0] + pair[1]},
            ]
        )
    )


def typed(kind, **fields):
    return st.fixed_dictionaries({"type": st.just(kind), **fields})


def merged(*parts):
    return st.tuples(*parts).map(lambda dicts: {k: v for one in dicts for k, v in one.items()})


NUMBERS = st.one_of(
    merged(typed("integer"), bounded("imum", -20, 20)),
    merged(typed("number"), bounded("imum", -20, 20)),
    typed("number", exclusiveMinimum=st.just(0), exclusiveMaximum=st.floats(0.01, 5)),
    typed("number", minimum=st.floats(-5, 5), maximum=st.floats(5, 9)),
    typed("integer", exclusiveMinimum=st.integers(-9, 9)),
    typed("integer", exclusiveMaximum=st.integers(-9, 9)),
    typed("integer", multipleOf=st.integers(1, 7), minimum=st.integers(-30, 30)),
    typed("integer", multipleOf=st.integers(1, 7), maximum=st.integers(-30, 30)),
)
LEAVES = st.one_of(
    NUMBERS,
    merged(typed("string"), bounded("Length", 0, 30)),
    typed("string", format=st.sampled_from(FORMATS)),
    st.sampled_from(
        [{"type": "null"}, {"type": "boolean"}, {}, True, {"type": ["null", "object"]}]
    ),
    st.fixed_dictionaries({"const": st.one_of(st.integers(), st.text(max_size=3), st.none())}),
    st.fixed_dictionaries({"enum": st.lists(st.text(max_size=3), min_size=1, max_size=3)}),
    st.just({"type": "string", "enum": [1, "one"]}),
    st.just({"$ref": "#/$defs/leaf"}),
    st.just({"$ref": "#/$defs/tree"}),
)


def grown(inner):
    properties = st.dictionaries(NAMES, inner, max_size=3)
    closed = properties.flatmap(
        lambda properties: st.fixed_dictionaries(
            {
                "type": st.just("object"),
                "properties": st.just(properties),
                "required": st.lists(st.sampled_from(sorted(properties)), unique=True)
                if properties
                else st.just([]),
                "additionalProperties": st.just(False),
            }
        )
    )
    return st.one_of(
        closed,
        merged(typed("array", items=inner), bounded("Items", 0, 4)),
        typed(
            "array", prefixItems=st.lists(inner, min_size=1, max_size=3), minItems=st.integers(0, 4)
        ),
        typed("object", required=st.lists(NAMES, unique=True), minProperties=st.integers(0, 5)),
        st.fixed_dictionaries({"anyOf": st.lists(inner, min_size=1, max_size=3)}),
        st.fixed_dictionaries({"allOf": st.lists(closed, min_size=1, max_size=1)}),
    )


SCHEMAS = st.recursive(LEAVES, grown, max_leaves=12)
DEFINITIONS = {
    "leaf": {"type": "string", "minLength": 2},
    "tree": {
        "type": "object",
        "properties": {
            "children": {"type": "array", "items": {"$ref": "#/$defs/tree"}},
            "next": {"anyOf": [{"$ref": "#/$defs/tree"}, {"type": "null"}]},
        },
        "required": ["children", "next"],
    },
}


def is_valid(schema, value):
    return jsonschema_rs.validator_for(schema, validate_formats=True).is_valid(value)


@given(SCHEMAS, st.text(max_size=40))
def test_an_instance_matches_its_schema(schema, text):
    whole = {"$defs": DEFINITIONS, "type": "object", "properties": {"x": schema}, "required": ["x"]}
    value = schema_example(whole, text)
    assert is_valid(whole, value), value
    assert schema_example(whole, text) == value


@each_row(
    ("schema", "value"),
    [
        ({"type": "string"}, "hello"),
        ({"type": "string", "maxLength": 3}, "hel"),
        ({"type": "string", "minLength": 7}, "hello.."),
        ({"properties": {"a": {}}, "required": ["a"]}, {"a": "hello"}),
        ({"items": {"minimum": 3}, "minItems": 2}, [3, 3]),
        ({"items": {"type": "integer"}, "minItems": 3, "uniqueItems": True}, [0, 1, 2]),
        ({"items": {"enum": ["a", "b"]}, "minItems": 2, "uniqueItems": True}, ["a", "b"]),
        ({"type": "array", "contains": {"const": 4}}, [4]),
        ({"oneOf": [False, {"type": "boolean"}]}, False),
        ({"type": "integer", "anyOf": [{"minimum": 4}, {"maximum": 1}]}, 4),
        ({"allOf": [{"type": "integer", "minimum": 2}, {"type": "number", "minimum": 5}]}, 5),
        ({"allOf": [{"type": "integer", "minimum": 5}, {"minimum": 2}]}, 5),
        ({"allOf": [{"type": "string", "maxLength": 2}, {"maxLength": 4}]}, "he"),
        ({"$ref": "#/$defs/a~1b%20c", "$defs": {"a/b c": {"const": 1}}}, 1),
        (
            {
                "allOf": [{"properties": {"a": {"minimum": 2}}}, {"required": ["a"]}],
                "properties": {"a": {"type": "integer"}},
            },
            {"a": 2},
        ),
        ({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}, 0.5),
    ],
)
def test_the_smallest_instance_is_chosen(schema, value):
    assert schema_example(schema, "hello") == value
    assert is_valid(schema, value)


@each_row(
    "schema",
    [
        {"not": {}, "type": "nothing"},
        {"enum": []},
        {"type": "integer", "minimum": 3, "maximum": 2},
        {"type": "number", "exclusiveMinimum": 1, "exclusiveMaximum": 1},
        {"$ref": "#"},
        {"$ref": "#/nowhere"},
        {"$ref": "https://example.com/schema"},
        {"properties": {"a": {"$ref": "#"}}, "required": ["a"]},
        {"type": "object", "required": ["a"], "additionalProperties": False},
        {"type": "object", "minProperties": 1, "additionalProperties": False},
        {"type": "string", "minLength": 10**9},
        {"type": "array", "minItems": 10**9},
        {"type": "array", "minItems": 90_000, "items": {"type": "array", "minItems": 90_000}},
        {"allOf": [{"type": "string"}, {"type": "integer"}]},
        {"required": 5},
        {"anyOf": 7},
        {"type": "integer", "minimum": "3"},
        {"type": "number", "multipleOf": 0, "minimum": 1},
    ],
)
def test_a_schema_without_an_instance_says_so(schema):
    with pytest.raises(NoExampleError):
        schema_example(schema, "hello")


def test_branches_within_branches_end():
    schema = {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}
    with pytest.raises(NoExampleError):
        schema_example(schema, "hello")


def test_a_format_may_be_stated_in_the_description():
    stated = {"type": "string", "description": 'A page.\n\n{"format":"uri"}'}
    text = "Read https://docs.example/typst now"
    assert schema_example(stated, text) == "https://docs.example/typst"
    assert schema_example({**stated, "format": "date"}, text) == "2001-02-03"
    assert schema_example({"format": "date", **stated}, text) == "2001-02-03"
