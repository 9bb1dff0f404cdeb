"""Which unknown fields of a request are reported as dropped."""

from collections.abc import Iterator
from typing import Any

import pytest

from services.inference.providers.opaque_json import unknown_paths


@pytest.mark.parametrize(
    ("fields", "covered", "paths"),
    [
        ({"a": 1, "b": None}, [], ["a"]),
        ({"a": 1, "b": 2}, ["a"], ["b"]),
        ({"a": {"b": 1, "c": 2}}, ["a.b"], ["a.c"]),
        ({"a": {"b": 1}}, ["a"], []),
        ({"a": {"b": 1}}, ["a-b", "aa.b"], ["a"]),
        ({"a": {"b": {"c": 1, "d": 2}}, "e": 3}, ["a.b.c"], ["e", "a.b.d"]),
    ],
)
def test_covered_fields_are_not_unknown(fields: Any, covered: list[str], paths: list[str]) -> None:
    assert [*unknown_paths(fields, covered)] == paths


def test_covered_paths_are_read_once() -> None:
    reads = 0

    def covered() -> Iterator[str]:
        nonlocal reads
        for number in range(1_000):
            reads += 1
            yield f"a{number}.b"

    fields = {f"a{number}": {"b": 1} for number in range(1_000)}
    assert [*unknown_paths(fields, covered())] == []
    assert reads == 1_000
