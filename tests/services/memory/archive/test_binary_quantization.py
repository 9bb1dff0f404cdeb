import math
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.memory.archive.binary_quantization import (
    cosine_similarities,
    nearest_by_hamming,
    pack,
    quantize,
    record_size,
    transpose,
)
from services.memory.archive.postings import keep_before

NUMBERS = st.floats(-1e6, 1e6)


def vectors(count: int, dimensions: int) -> dict[int, list[float]]:
    random = Random(1)
    return {n: [random.gauss(0, 1) for _ in range(dimensions)] for n in range(1, count + 1)}


def cosine(one: list[float], other: list[float]) -> float:
    product = sum(a * b for a, b in zip(one, other, strict=True))
    return product / math.hypot(*one) / math.hypot(*other)


def test_similarities_are_the_cosines_of_the_angles() -> None:
    held = vectors(60, 17)
    asked = [1.0] * 17
    packed = b"".join(map(pack, held.values()))
    expected = [cosine(values, asked) for values in held.values()]
    assert cosine_similarities(packed, asked) == pytest.approx(expected, abs=1e-6)


def nearest(signed: list[bytes], asked: list[float], *, before_turn: int, most: int) -> list[int]:
    columns = transpose(signed, len(asked))
    return nearest_by_hamming(columns, asked, before_turn=before_turn, most=most)


def test_the_first_look_keeps_what_is_near_among_very_many() -> None:
    held = vectors(5000, 64)
    asked = [value + 0.3 for value in held[77]]
    signed = [quantize(turn, pack(values)) for turn, values in held.items()]
    nearest_turns = nearest(signed, asked, before_turn=10_000, most=50)
    assert len(nearest_turns) == 50
    assert nearest_turns[0] == 77
    assert 77 not in nearest(signed, asked, before_turn=77, most=50)


@pytest.mark.parametrize("count", [60, 2000])
def test_distances_of_many_dimensions_are_exact(count: int) -> None:
    held = vectors(count + 1, 1000)
    asked = held.pop(count + 1)
    signed = [quantize(turn, pack(values)) for turn, values in held.items()]
    Random(2).shuffle(signed)

    def distance(turn: int) -> int:
        return sum((a > 0) != (b > 0) for a, b in zip(held[turn], asked, strict=True))

    nearest_turns = nearest(
        [b"".join(signed[:20]), *signed[20:]], asked, before_turn=count - 4, most=9
    )
    assert (
        nearest_turns == sorted(range(1, count - 4), key=lambda turn: (distance(turn), -turn))[:9]
    )


def test_all_are_kept_where_they_are_few() -> None:
    held = vectors(20, 5)
    signed = [quantize(turn, pack(values)) for turn, values in held.items()]
    assert sorted(nearest(signed, [1.0] * 5, before_turn=11, most=50)) == list(range(1, 11))


def test_of_equals_the_later_is_kept() -> None:
    signed = [quantize(turn, pack([1.0, 1.0])) for turn in range(1, 9)]
    assert nearest(signed, [1.0, 1.0], before_turn=9, most=3) == [8, 7, 6]


def test_nothing_is_near_among_nothing() -> None:
    assert cosine_similarities(b"", [3.0]) == []
    assert nearest([], [3.0], before_turn=9, most=5) == []


@given(st.lists(NUMBERS, min_size=1, max_size=200), st.integers(1, 2**32 - 1))
def test_a_signature_is_cut_off_from_its_turn_on(values: list[float], turn: int) -> None:
    signed = quantize(turn, pack(values))
    size = record_size(len(values))
    assert keep_before(signed * 2, turn, size) == b""
    assert keep_before(signed * 2, turn + 1, size) == signed * 2


@given(st.lists(st.floats(), min_size=1, max_size=70))
def test_any_numbers_make_a_vector_that_can_be_compared(values: list[float]) -> None:
    packed = pack(values)
    assert math.isfinite(cosine_similarities(packed, values)[0])
    assert nearest([quantize(1, packed)], values, before_turn=2, most=1) == [1]
