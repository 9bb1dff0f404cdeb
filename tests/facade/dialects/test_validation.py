import json
from typing import Annotated, Any, Literal

import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, TypeAdapter
from typing_extensions import TypedDict

from facade.dialects.validation import (
    check,
    exact_json,
    read,
    read_quickly,
    to_json,
    to_opaque,
    to_path,
)
from gateway.conversation.v1.conversation_pb2 import DIALECT_OPENAI, Opaque
from services.common.errors import GatewayError
from tests.grid import each_row
from tests.thoroughness import examples


class Leaf(TypedDict):
    kind: Literal["leaf"]
    size: Annotated[int, Field(ge=1, strict=True)]


class Branch(TypedDict):
    kind: Literal["branch"]
    parts: Annotated[
        Annotated[str, Tag("#string")] | Annotated[list["Node"], Tag("#nodes")],
        Field(union_mode="left_to_right"),
    ]


def _kind(value: Any) -> str | None:
    return f"#{value['kind']}" if isinstance(value, dict) and "kind" in value else None


Node = Annotated[Annotated[Leaf, Tag("#leaf")] | Annotated[Branch, Tag("#branch")],
                 Discriminator(_kind)]  # fmt: skip
NODE: TypeAdapter[Any] = TypeAdapter(Node)


def refusal(value: object, path: str = "") -> GatewayError:
    with pytest.raises(GatewayError) as caught:
        check(NODE, value, path)
    assert caught.value.code == "invalid_request"
    return caught.value


def branch(parts: object) -> dict[str, object]:
    return {"kind": "branch", "parts": parts}


@pytest.mark.parametrize(
    ("value", "param", "says"),
    [
        (branch(5), "parts", "must be a string or an array"),
        (branch([branch([{"kind": "leaf"}])]), "parts[0].parts[0].size", "is required"),
        (branch([{"kind": "leaf", "size": 0}]), "parts[0].size", "must be at least 1"),
        (branch([branch(None)]), "parts[0].parts", "must be a string or an array"),
        (branch(["a"]), "parts[0]", "must be an object"),
    ],
)
def test_a_path_is_that_of_the_callers_own_json(value, param, says):
    error = refusal(value)
    assert (error.param, error.message) == (param, f"{param}: {says}")
    assert refusal(value, "a.b[2]").param == f"a.b[2].{param}"


def test_errors_are_of_the_union_member_that_was_meant():
    """The string member refuses the array too, and comes first."""
    error = refusal(branch([{"kind": "leaf", "size": "1"}]))
    assert (error.param, error.message) == ("parts[0].size", "parts[0].size: must be an integer")


@pytest.mark.parametrize("body", [b"", b"{", b'{"a": "\xff"}', b"NaN x"])
def test_what_is_no_json_is_reported_with_its_place(body):
    with pytest.raises(GatewayError, match=r"not valid JSON: .* at line 1 column \d+"):
        read(NODE, body)


@pytest.mark.parametrize("body", [b"[" * 100_000, b"[" * 300 + b"]" * 300])
def test_what_is_nested_too_deeply_is_reported(body):
    with pytest.raises(GatewayError, match=r"^the body is nested more than 200 levels deep$"):
        read(NODE, body)


@pytest.mark.parametrize("opening", [b"[", b'{"a":'])
def test_a_value_is_converted_once_up_to_two_hundred_levels(opening):
    def converted(levels):
        return exact_json(opening * levels + b"1" + (b"]" if opening == b"[" else b"}") * levels)

    assert converted(200) is not None
    assert converted(201) is None


def test_a_path_joins_names_and_positions():
    assert to_path(["a", "#x", 0, "b", 1, 2], "") == "a[0].b[1][2]"
    assert to_path([0, "b"], "a") == "a[0].b"
    assert to_path([], "a") == "a"


numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | st.booleans() | numbers | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(value=values)
def test_json_is_written_back_with_the_same_value(value):
    written = to_json(value, "a")
    assert json.loads(written) == value
    assert b"\n" not in written


@given(value=values)
def test_an_opaque_value_says_whose_it_is(value):
    assert to_opaque(DIALECT_OPENAI, value, "a") == Opaque(
        dialect=DIALECT_OPENAI, json=to_json(value, "a")
    )


@each_row("number", [float("nan"), float("inf"), -float("inf")])
@each_row("beside", [None, 2**80, "null"])
def test_a_number_that_json_cannot_say_is_refused(number, beside):
    with pytest.raises(GatewayError, match=r"^a\.b: must contain only finite numbers") as caught:
        to_json({"x": [beside, number]}, "a.b")
    assert caught.value.param == "a.b"


def test_nulls_are_kept():
    assert orjson.loads(to_json({"a": None}, "a")) == {"a": None}


def test_an_integer_beyond_every_double_is_refused_by_its_path():
    assert to_json({"a": 10**300}, "a") == b'{"a":1' + b"0" * 300 + b"}"
    for digits in (309, 4000):
        with pytest.raises(GatewayError) as caught:
            to_json({"a": 10**digits}, "tools[0]")
        assert caught.value.param == "tools[0]"


class Held(BaseModel):
    model_config = ConfigDict(strict=True, extra="allow", allow_inf_nan=False)

    number: int | float | None = None
    texts: list[str] = []


JSON_VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**70), 2**70),
        st.floats(),
        st.sampled_from(["", "a", "12345678901234567890", "é", "\ud800"]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from("ab"), inner, max_size=2)
    ),
    max_leaves=6,
)


@given(
    st.dictionaries(st.sampled_from(["number", "texts", "other"]), JSON_VALUES),
    st.sampled_from([None, (",", ":"), (" ,\n", "\t: ")]),
    st.booleans(),
)
@example({"other": 2**63}, None, False)
@example({"other": [1, -(2**64)]}, (",", ":"), False)
@example({"other": float("inf")}, None, False)
@settings(max_examples=examples(100))
def test_what_is_read_quickly_is_the_same(
    body: dict[str, Any], separators: tuple[str, str] | None, is_cut: bool
) -> None:
    raw = json.dumps(body, separators=separators).encode()
    raw = raw[: len(raw) // 2] if is_cut else raw
    adapter = TypeAdapter(Held)
    try:
        expected = read(adapter, raw)
    except GatewayError as error:
        with pytest.raises(GatewayError) as refused:
            read_quickly(adapter, raw)
        assert (refused.value.param, refused.value.message) == (error.param, error.message)
        return
    held, is_exact = read_quickly(adapter, raw)
    # By their text, since no NaN equals another, and 1 equals 1.0.
    assert repr(held) == repr(expected)
    if is_exact:
        assert repr(orjson.loads(orjson.dumps(held.model_dump()))) == repr(held.model_dump())


@each_row("offset", range(19))
def test_large_numbers_are_found_at_every_offset(offset: int) -> None:
    adapter = TypeAdapter(Held)
    for digits in (18, 19, 20):
        raw = b'{"a":%b[%b]}' % (b" " * offset, b"9" * digits)
        assert read_quickly(adapter, raw)[1] == (digits < 19)
