"""Unknown fields that arrive in pieces."""

from typing import Any

import orjson
import pytest

from gateway.conversation.v1.conversation_pb2 import DIALECT_OPENAI, Opaque
from services.inference.stream.unknown_fields import UnknownFields


def joined(*parts: Any, joins: bool = True) -> Any:
    fields = UnknownFields(joins=joins)
    for part in parts:
        fields.add(Opaque(dialect=DIALECT_OPENAI, json=orjson.dumps(part)))
    whole = Opaque()
    fields.put_into(whole)
    assert whole.dialect == DIALECT_OPENAI
    return orjson.loads(whole.json)


def test_texts_and_lists_are_joined_at_any_depth() -> None:
    assert joined(
        {"audio": {"id": "a1", "transcript": "He"}, "images": [1]},
        {"audio": {"id": "a1", "transcript": "llo", "expires_at": 7}, "images": [2]},
        {"audio": {"transcript": None}},
    ) == {"audio": {"id": "a1", "transcript": "Hello", "expires_at": 7}, "images": [1, 2]}


def test_an_item_is_continued_by_one_with_its_index() -> None:
    def detail(**fields: Any) -> Any:
        return {"reasoning_details": [fields]}

    assert joined(
        detail(type="reasoning.text", index=0, text="a", format="f"),
        detail(type="reasoning.text", index=0, text="b", format="f"),
        detail(type="reasoning.encrypted", index=0, data="x"),
        detail(type="reasoning.text", index=0, signature="s"),
        detail(type="reasoning.text", index=1, text="c"),
    ) == {
        "reasoning_details": [
            {"type": "reasoning.text", "index": 0, "text": "ab", "format": "f", "signature": "s"},
            {"type": "reasoning.encrypted", "index": 0, "data": "x"},
            {"type": "reasoning.text", "index": 1, "text": "c"},
        ]
    }


def test_items_of_one_part_stay_separate() -> None:
    whole = {"images": [{"index": 0, "url": "a"}, {"index": 0, "url": "b"}]}
    assert joined(whole) == whole


def test_of_an_answer_and_a_choice_the_last_value_counts() -> None:
    assert joined({"a": "x", "b": [1]}, {"a": "y", "b": [2]}, joins=False) == {"a": "y", "b": [2]}


def test_what_is_no_object_is_refused() -> None:
    with pytest.raises(ValueError, match="object"):
        joined([1])


def test_deep_values_are_joined() -> None:
    deep: Any = "a"
    for _ in range(200):
        deep = {"x": deep}
    once, twice = joined(deep), joined(deep, deep)
    for _ in range(200):
        once, twice = once["x"], twice["x"]
    assert (once, twice) == ("a", "aa")
