"""Vectors as 32-bit floats: there and back, in base64 and in JSON."""

import base64
import struct

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.common.text import packed_floats

NUMBERS = st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), max_size=50)


@given(NUMBERS)
def test_32_bit_floats_come_back_as_they_were(numbers: list[float]) -> None:
    packed = packed_floats.pack(numbers)
    assert len(packed) == len(numbers) * packed_floats.WIDTH
    assert packed_floats.unpack(packed).tolist() == numbers
    assert packed == struct.pack(f"<{len(numbers)}f", *numbers)


@given(NUMBERS)
def test_json_and_base64_are_the_same_numbers(numbers: list[float]) -> None:
    packed = packed_floats.pack(numbers)
    written = orjson.loads(packed_floats.to_json(packed))
    assert packed_floats.pack(written) == packed
    assert packed_floats.unpack(base64.b64decode(base64.b64encode(packed))).tolist() == numbers


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False, min_value=-3e38, max_value=3e38)))
def test_longer_floats_are_rounded_once(numbers: list[float]) -> None:
    packed = packed_floats.pack(numbers)
    assert packed_floats.pack(packed_floats.unpack(packed).tolist()) == packed


def test_json_has_the_shortest_form() -> None:
    assert packed_floats.to_json(packed_floats.pack([0.1, -2.5, 0])) == b"[0.1,-2.5,0.0]"


@pytest.mark.parametrize("numbers", [[1e39], ["1"], [None]])
def test_other_values_are_refused(numbers: list[float]) -> None:
    with pytest.raises((OverflowError, struct.error)):
        packed_floats.pack(numbers)
