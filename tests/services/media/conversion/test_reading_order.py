"""Reading order from boxes alone."""

import itertools
import math

import pytest

from services.media.conversion.reading_order import Line, columns_alternate, in_order


def column(name: str, left: float, count: int = 6, top: float = 100, width: float = 200):
    return [
        Line(left, top + 20 * number, left + width - number % 2, top + 20 * number + 12, text)
        for number, text in enumerate(f"{name}{number}" for number in range(count))
    ]


def texts(lines) -> list[str]:
    return [line.text for line in lines]


def turned(line: Line, degrees: float) -> Line:
    angle = math.radians(degrees)
    corners = [
        (x * math.cos(angle) - y * math.sin(angle), x * math.sin(angle) + y * math.cos(angle))
        for x, y in (
            (line.left, line.top),
            (line.right, line.top),
            (line.right, line.bottom),
            (line.left, line.bottom),
        )
    ]
    return Line.of_corners(corners, line.text)


A, B, C = column("a", 0), column("b", 220), column("c", 440)
TITLE = Line(50, 40, 380, 60, "title")
NOTE = Line(0, 300, 420, 312, "across")


def shuffled(*columns):
    return sorted(itertools.chain(*columns), key=lambda line: line.top)


def test_columns_are_read_from_left_to_right():
    assert in_order(shuffled(A, B, C)) == texts(A + B + C)


@pytest.mark.parametrize("degrees", [-3, -2, 2, 3])
def test_a_scan_askew_is_read_in_the_same_order(degrees):
    page = [turned(line, degrees) for line in [TITLE, *shuffled(A, B)]]
    assert in_order(page) == ["title", *texts(A + B)]


def test_a_line_across_divides_the_page():
    below = column("x", 0, top=330), column("y", 220, top=330)
    page = [TITLE, *shuffled(A, B), NOTE, *shuffled(*below)]
    assert in_order(page) == ["title", *texts(A + B), "across", *texts(below[0] + below[1])]


def test_a_table_is_read_row_by_row():
    cells = [column(name, left, width=50) for name, left in (("a", 0), ("b", 90), ("c", 180))]
    rows = [" ".join(texts(row)) for row in zip(*cells, strict=True)]
    assert in_order(shuffled(*cells)) == rows


@pytest.mark.parametrize("degrees", [-3, 3])
def test_rows_of_a_table_askew_stay_rows(degrees):
    cells = [column(name, left, width=80) for name, left in (("a", 0), ("b", 180), ("c", 360))]
    rows = [" ".join(texts(row)) for row in zip(*cells, strict=True)]
    assert in_order([turned(line, degrees) for line in shuffled(*cells)]) == rows


def test_a_table_below_a_column_does_not_hide_it():
    cells = [column(name, left, 3, 230, 40) for name, left in (("x", 0), ("y", 60), ("z", 120))]
    rows = [" ".join(texts(row)) for row in zip(*cells, strict=True)]
    page = [*shuffled(A, column("b", 220, 10)), *shuffled(*cells)]
    assert in_order(page) == [*texts(A), *rows, *texts(column("b", 220, 10))]


def test_one_column_stays_as_it_is():
    assert in_order(list(reversed(A))) == texts(A)


@pytest.mark.parametrize("lines", [[], [TITLE], [Line(0, 0, 0, 0, "empty")]])
def test_little_text_has_an_order_too(lines):
    assert in_order(lines) == texts(lines)


def test_columns_drawn_in_turn_are_noticed():
    assert columns_alternate(shuffled(A, B))
    assert not columns_alternate(A + B)
    assert not columns_alternate(A)
