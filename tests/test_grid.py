"""Grids report every row that fails."""

import re

import pytest

from tests.grid import Grid, each_row


def test_every_failing_row_is_reported() -> None:
    with pytest.raises(AssertionError) as raised, Grid() as grid:
        for number in range(5):
            with grid.row(number, "x"):
                if number % 2:
                    raise ValueError(f"no {number}")
    head, *failures = str(raised.value).split("\n\n")
    assert head == "2 of 5 rows fail"
    place = r"test_grid\.py:\d+"
    assert re.fullmatch(rf"1, 'x': {place}: ValueError: no 1", failures[0])
    assert re.fullmatch(rf"3, 'x': {place}: ValueError: no 3", failures[1])


def test_a_grid_without_rows_fails() -> None:
    with pytest.raises(AssertionError, match="no rows"), Grid():
        pass


def test_an_error_outside_of_rows_is_raised() -> None:
    with pytest.raises(KeyError), Grid():
        raise KeyError


@pytest.fixture(scope="module")
def base() -> int:
    return 10


@each_row("value, doubled", [(1, 2), (2, 4)])
def test_rows_set_parameters_beside_fixtures(base: int, value: int, doubled: int) -> None:
    assert base == 10
    assert value * 2 == doubled


@each_row("outer", [1, 2])
@each_row("inner", [3, 4])
async def test_grids_of_two_dimensions_are_awaited(outer: int, inner: int) -> None:
    assert inner - outer in (1, 2, 3)


class TestMethods:
    @each_row("value", [1, 2])
    def test_methods_have_rows(self, value: int) -> None:
        assert self is not None
        assert value


@each_row("value", [1, 2, 3])
async def _fails(value: int) -> None:
    if value == 1:
        pytest.fail("one")
    assert value != 2


async def test_every_failing_row_of_a_test_is_reported() -> None:
    with pytest.raises(AssertionError, match="2 of 3 rows fail") as raised:
        await _fails()
    assert "1: test_grid.py:" in str(raised.value)
    assert "2: test_grid.py:" in str(raised.value)


async def test_a_row_may_have_an_id() -> None:
    @each_row("value", [pytest.param(1, id="the first"), 2])
    def fails(value: int) -> None:
        assert value == 2

    with pytest.raises(AssertionError, match="1 of 2 rows fail\n\n'the first': "):
        fails()


def test_a_row_has_a_value_for_every_parameter() -> None:
    with pytest.raises(ValueError, match="zip"):
        each_row("value, doubled", [(1,)])
