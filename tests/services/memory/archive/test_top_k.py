import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from services.memory.archive.top_k import top_k

# With few different numbers many are equal.
NUMBERS = st.lists(st.integers(0, 12), max_size=300)


@given(NUMBERS, st.integers(1, 12))
def test_the_largest_come_first_and_of_equals_the_later(numbers: list[int], most: int) -> None:
    order = sorted(range(len(numbers)), key=lambda place: (numbers[place], place), reverse=True)
    for kind in (np.uint16, np.float64):
        assert top_k(np.array(numbers, kind), most).tolist() == order[:most]
