from typing import Any

import orjson
import pytest
from jsonschema import Draft202012Validator

from services.inference.providers.schemas import (
    OpenObjectError,
    for_answer,
    for_gemini,
    function_schema,
    has_no_arguments,
    lacks_items,
    may_be_strict,
    object_schema,
)

Schema = dict[str, Any]

NODE = "#/definitions/node"
TEXT = {"type": "string"}
NUMBER = {"type": "number"}
A = {"type": "object", "properties": {"a": TEXT, "x": TEXT}, "required": ["a"]}
B = {"type": "object", "properties": {"b": TEXT, "x": NUMBER}, "required": ["b", "a"]}


def test_a_plain_root_is_unchanged() -> None:
    assert object_schema(A) == A


@pytest.mark.parametrize("word", ["anyOf", "oneOf"])
def test_alternatives_at_the_root_are_joined(word: str) -> None:
    schema = {"type": "object", "description": "d", "required": ["c"], word: [A, B]}
    fitted = object_schema(schema)
    assert fitted["type"] == "object"
    assert fitted["properties"] == {"a": TEXT, "x": {"anyOf": [TEXT, NUMBER]}, "b": TEXT}
    assert fitted["required"] == ["c", "a"]
    assert fitted["description"].startswith("d\n\n")
    assert orjson.loads(fitted["description"].removeprefix("d\n\n")) == {word: [A, B]}


def test_schemas_that_all_apply_are_joined() -> None:
    fitted = object_schema({"allOf": [A, B]})
    assert fitted["required"] == ["a", "b"]
    assert fitted["properties"].keys() == {"a", "b", "x"}


def test_references_at_the_root_are_followed() -> None:
    definitions = {"A": A, "B": {"$ref": "#/$defs/A"}, "C": {"$ref": "#/$defs/C"}}
    root = object_schema({"$ref": "#/$defs/B", "$defs": definitions, "description": "d"})
    assert root == {**A, "$defs": definitions, "description": "d"}
    parts = [{"$ref": "#/$defs/B"}, {"$ref": "#/$defs/C"}, {"$ref": "#/missing"}, {"$ref": 1}]
    assert object_schema({"anyOf": parts, "$defs": definitions})["properties"] == A["properties"]


@pytest.mark.parametrize(
    "schema",
    [{}, {"type": "string"}, {"anyOf": 1}, {"anyOf": [1, None]}, {"allOf": [{"properties": 1}]}],
)
def test_any_schema_becomes_an_object(schema: Schema) -> None:
    assert object_schema(schema)["type"] == "object"
    assert orjson.dumps(function_schema(schema, lacks_items=True))


def test_arrays_without_items_get_some() -> None:
    rows = {"type": ["array", "null"], "items": {"type": "array"}}
    schema = {"type": "object", "properties": {"tags": {"type": "array"}, "rows": rows}}
    assert lacks_items(orjson.dumps(schema))
    assert function_schema(schema, lacks_items=True)["properties"] == {
        "tags": {"type": "array", "items": {}},
        "rows": {"type": ["array", "null"], "items": {"type": "array", "items": {}}},
    }
    assert schema["properties"] == {"tags": {"type": "array"}, "rows": rows}
    assert not lacks_items(orjson.dumps({"type": "array", "items": {}}))


def test_a_reference_for_gemini_stands_alone() -> None:
    color = {"$ref": "#/$defs/Color", "description": "d", "default": "red"}
    schema = {"type": "object", "properties": {"color": color}, "$defs": {"Color": TEXT}}
    assert for_gemini(schema)["properties"]["color"] == {
        "anyOf": [{"$ref": "#/$defs/Color"}],
        "description": "d",
        "default": "red",
    }


def test_gemini_gets_no_empty_properties() -> None:
    inner = {"type": "object", "properties": {}}
    fitted = for_gemini({"type": "object", "properties": {"a": inner}})
    assert fitted["properties"] == {"a": {"type": "object"}}


@pytest.mark.parametrize(
    ("schema", "is_empty"),
    [
        ({}, True),
        ({"type": "object", "properties": {}, "required": [], "additionalProperties": False}, True),
        ({"type": "object", "additionalProperties": True}, False),
        ({"type": "object", "properties": {"a": {}}}, False),
        ({"anyOf": [A, B]}, False),
    ],
)
def test_no_arguments_are_recognised(schema: Schema, is_empty: bool) -> None:
    assert has_no_arguments(schema) == is_empty


def test_bounds_of_an_answer_are_described() -> None:
    age = {"type": "integer", "description": "years", "minimum": 0, "maximum": 150}
    tags = {"type": "array", "items": {**TEXT, "maxLength": 9}, "minItems": 1, "uniqueItems": True}
    when = {"type": "string", "format": "date-time"}
    schema = {"type": "object", "properties": {"age": age, "tags": tags, "when": when}}
    fitted = for_answer(schema)
    assert fitted["additionalProperties"] is False
    assert fitted["properties"] == {
        "age": {"type": "integer", "description": 'years\n\n{"minimum":0,"maximum":150}'},
        "tags": {
            "type": "array",
            "items": {"type": "string", "description": '{"maxLength":9}'},
            "minItems": 1,
            "description": '{"uniqueItems":true}',
        },
        "when": when,
    }


def test_alternatives_of_an_answer_become_any_of() -> None:
    fitted = for_answer({"oneOf": [A, B], "$schema": "https://json-schema.org/draft-07/schema"})
    assert [part["additionalProperties"] for part in fitted["anyOf"]] == [False, False]
    assert fitted.keys() == {"anyOf"}


def test_names_of_properties_are_no_keywords() -> None:
    properties = {"minimum": NUMBER, "items": TEXT, "oneOf": TEXT, "$ref": TEXT}
    fitted = for_answer({"type": "object", "properties": properties})
    assert fitted["properties"] == properties
    assert for_gemini({"type": "object", "properties": properties})["properties"] == properties


@pytest.mark.parametrize("more", [{"type": "string"}, True])
def test_a_map_in_an_answer_is_an_error_with_its_path(more: object) -> None:
    rows = {"type": "array", "items": {"type": "object", "additionalProperties": more}}
    with pytest.raises(OpenObjectError) as error:
        for_answer({"type": "object", "properties": {"rows": rows}})
    assert error.value.path == "/properties/rows/items"


def test_an_open_object_with_properties_is_closed() -> None:
    assert for_answer({**A, "additionalProperties": True})["additionalProperties"] is False


def test_what_matched_before_still_matches() -> None:
    schema = {"type": "object", "properties": {"c": NUMBER}, "anyOf": [A, B]}
    for value in ({"a": "1"}, {"a": "1", "b": "2", "x": 3}, {"a": "1", "x": "y", "c": 1}):
        Draft202012Validator(schema).validate(value)
        Draft202012Validator(object_schema(schema)).validate(value)


def test_many_alternatives_take_linear_work() -> None:
    """Each alternative leads to the same large definition, by a chain of references of its own."""
    large = {"properties": {f"p{number}": TEXT for number in range(20_000)}}
    chains = {f"c{number}": {"$ref": "#/$defs/large"} for number in range(20_000)}
    parts = [{"$ref": f"#/$defs/{name}"} for name in chains] * 2
    schema = {"anyOf": parts, "$defs": {"large": large, **chains}}
    assert len(object_schema(schema)["properties"]) == 20_000


def test_circular_references_end() -> None:
    halves = [{"$ref": "#"}, {"$ref": "#"}]
    schema = {"allOf": halves, "properties": {"a": {"$ref": "#", "description": "d"}}}
    assert object_schema(schema)["properties"].keys() == {"a"}
    assert for_gemini(schema)
    assert for_answer(schema)


def test_gemini_gets_its_own_keywords_and_words_for_the_others() -> None:
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {
            "kind": {"const": "a"},
            "name": {"type": "string", "pattern": "^x", "minLength": 2, "description": "A name."},
            "many": {"type": "array", "uniqueItems": True},
            "one": {"allOf": [{"$ref": "#/definitions/node"}], "description": "One."},
            "free": {"type": "object", "propertyNames": {"pattern": "^x"}},
        },
        "definitions": {"node": {"type": "object", "properties": {"next": {"$ref": NODE}}}},
    }
    assert for_gemini(schema) == {
        "type": "object",
        "properties": {
            "kind": {"enum": ["a"]},
            "name": {"type": "string", "description": 'A name.\n\n{"pattern":"^x","minLength":2}'},
            "many": {"type": "array", "items": {}, "description": '{"uniqueItems":true}'},
            "one": {"anyOf": [{"$ref": "#/$defs/node"}], "description": "One."},
            "free": {"type": "object", "description": '{"propertyNames":{"pattern":"^x"}}'},
        },
        "$defs": {"node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}}},
    }


@pytest.mark.parametrize(
    ("schema", "may_be"),
    [
        ({"type": "object", "properties": {}, "additionalProperties": False}, True),
        ({"type": "object", "properties": {"a": {}}, "additionalProperties": False}, False),
        (
            {
                "type": "object",
                "properties": {"a": {"type": "object", "additionalProperties": False}},
                "required": ["a"],
                "additionalProperties": False,
            },
            True,
        ),
        (
            {
                "type": "object",
                "properties": {"a": {"type": "object"}},
                "required": ["a"],
                "additionalProperties": False,
            },
            False,
        ),
    ],
)
def test_strict_parameters_are_closed_and_all_required(schema: Schema, may_be: bool) -> None:
    assert may_be_strict(schema) == may_be
