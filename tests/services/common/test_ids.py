from concurrent.futures import ThreadPoolExecutor

import pytest

from services.common import ids
from services.common.ids import UlidGenerator

# The time of the specification's example, 01ARZ3NDEKTSV4RRFFQ69G5FAV.
NOW_NS = 1_469_922_850_259 * 1_000_000 + 999_999


def constant(byte: int) -> UlidGenerator:
    return UlidGenerator(lambda: NOW_NS, lambda size: bytes([byte]) * size)


@pytest.mark.parametrize(("byte", "random"), [(0, "0" * 16), (0xFF, "Z" * 16)])
def test_ulid_is_a_time_and_random_characters(byte: int, random: str) -> None:
    assert constant(byte).make() == f"01ARZ3NDEK{random}"


def test_ulids_of_one_millisecond_follow_each_other() -> None:
    ulids = constant(0)
    first, second = ulids.make(), ulids.make()
    assert (first[-2:], second[-2:]) == ("00", "01") and first[:-2] == second[:-2]


def test_ulids_keep_their_order_when_the_clock_goes_back() -> None:
    times = iter([2_000_000, 1_000_000, 3_000_000])
    ulids = UlidGenerator(lambda: next(times), lambda size: b"\xff" * size)
    made = [ulids.make() for _ in range(3)]
    assert made == sorted(set(made))


def test_threads_are_given_different_ids() -> None:
    with ThreadPoolExecutor(8) as threads:
        made = list(threads.map(lambda _: ids.new_id("x_"), range(2_000)))
    assert len(set(made)) == len(made)
    assert all(len(one) == 28 and one.startswith("x_") for one in made)


def test_ids_made_one_after_the_other_sort_so() -> None:
    made = [ids.new_id("x_") for _ in range(100)]
    assert made == sorted(set(made))
