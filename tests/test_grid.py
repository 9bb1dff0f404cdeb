"""Grids report every row that fails."""

import pytest

from tests.grid import Grid


def test_every_failing_row_is_reported() -> None:
    with pytest.raises(AssertionError) as raised, Grid() as grid:
        for number in range(5):
            with grid.row(number, "x"):
                if number % 2:
                    raise ValueError(f"no {number}")
    assert str(raised.value) == (
        "2 of 5 rows fail\n\n1, 'x': ValueError: no 1\n\n3, 'x': ValueError: no 3"
    )


def test_a_grid_without_rows_fails() -> None:
    with pytest.raises(AssertionError, match="no rows"), Grid():
        pass


def test_an_error_outside_of_rows_is_raised() -> None:
    with pytest.raises(KeyError), Grid():
        raise KeyError
