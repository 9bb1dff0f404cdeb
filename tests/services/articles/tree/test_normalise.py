"""The normal form of children and the grid of a table, without a document around them."""

import pytest
from hypothesis import given, strategies

from services.articles.tree.errors import EditError, EditErrorCode
from services.articles.tree.nodes import EMPTY_LEAF, Element, Leaf
from services.articles.tree.normalise import appended, grid, normal_children, normal_leaves
from tests.grid import each_row

A, B, BOLD = Leaf("a"), Leaf("b"), Leaf("c", bold=True)
INNER = Element("e", "list")


def rows(*spans: str) -> list[Element]:
    """Return rows of cells; a cell is two digits, its columns and its rows."""
    return [
        Element(
            f"r{number}",
            "table-row",
            tuple(
                Element("c", "table-cell", content={"colSpan": int(one[0]), "rowSpan": int(one[1])})
                for one in cells.split()
            ),
        )
        for number, cells in enumerate(spans)
    ]


@pytest.mark.parametrize(
    ("given", "normal"),
    [
        ([], (EMPTY_LEAF,)),
        ([Leaf("", bold=True), Leaf("")], (Leaf("", bold=True),)),
        ([A], (A,)),
        ([A, B, A, BOLD, BOLD, A], (Leaf("aba"), Leaf("cc", bold=True), A)),
        ([A, Leaf("", bold=True), B], (Leaf("ab"),)),
        ([Leaf("", bold=True), A], (A,)),
        ([A, Leaf("", cite="r"), B], (A, Leaf("", cite="r"), B)),
        ([Leaf("", cite="r"), Leaf("a", cite="r")], (Leaf("a", cite="r"),)),
    ],
)
def test_equal_neighbours_are_joined(given: list[Leaf], normal: tuple[Leaf, ...]) -> None:
    assert normal_leaves(given) == normal


LEAVES = strategies.lists(
    strategies.builds(
        Leaf,
        strategies.sampled_from(("", "a", "b c")),
        strategies.sampled_from(("default", "formula")),
        strategies.booleans(),
        cite=strategies.sampled_from((None, "r", "s")),
    ),
    max_size=4,
)


@given(LEAVES, LEAVES)
def test_appending_is_like_normalising_all(leaves: list[Leaf], more: list[Leaf]) -> None:
    assert appended(normal_leaves(leaves), more) == normal_leaves((*normal_leaves(leaves), *more))


@each_row(
    ("kind", "given", "normal"),
    [
        ("paragraph", [A, B], (Leaf("ab"),)),
        ("table-cell", [], (EMPTY_LEAF,)),
        ("list-item", [A, B, INNER], (Leaf("ab"), INNER)),
        ("list-item", [], (EMPTY_LEAF,)),
        ("label", [A, B], (Leaf("ab"),)),
        ("label", [], (EMPTY_LEAF,)),
        ("label", [INNER, INNER], (INNER, INNER)),
        ("list", [INNER], (INNER,)),
        ("list", [], ()),
    ],
)
def test_the_type_decides_which_children_stay(
    kind: str, given: list[Leaf | Element], normal: tuple[Leaf | Element, ...]
) -> None:
    assert normal_children(kind, given) == normal


@each_row(
    ("spans", "height", "width"),
    [
        ([], 0, 0),
        (["11"], 1, 1),
        (["11 11", "21"], 2, 2),
        (["12 11 11", "21"], 2, 3),
        (["11 12 11", "11 11"], 2, 3),
        (["22 11", "11"], 2, 3),
        (["12 11", "12", "11"], 3, 2),
        (["13 12", "", "11"], 3, 2),
    ],
)
def test_a_grid_without_gaps_is_measured(spans: list[str], height: int, width: int) -> None:
    assert grid(rows(*spans), "/t") == {"rowLength": height, "colLength": width}


@each_row(
    ("spans", "problem"),
    [
        ([""], "the first row of a table must have a cell"),
        (["11"] * 201, "a table can have at most 200 rows"),
        ([" ".join(["11"] * 51)], "a table can have at most 50 columns"),
        (["91 " * 6], "a table can have at most 50 columns"),
        (["11", "21"], "the cell at row 1, column 0 of the table extends beyond the "
         "last column, 0"),
        (["12 11", "11 11"], "the cell at row 1, column 2 of the table extends beyond the "
         "last column, 1"),
        (["11 12"], "the cell at row 0, column 1 of the table spans beyond the last row"),
        (["11 11", "12 11"], "the cell at row 1, column 0 of the table spans beyond the last row"),
        (["11 12 11", "21"], "the cell at row 1, column 0 of the table overlaps a cell that spans "
         "down from above"),
        (["11 11", "11"], "row 1 of the table has empty columns; all 2 must be covered"),
        (["12 11", ""], "row 1 of the table has empty columns; all 2 must be covered"),
    ],
)  # fmt: skip
def test_a_wrong_grid_is_refused_in_words(spans: list[str], problem: str) -> None:
    with pytest.raises(EditError) as caught:
        grid(rows(*spans), "/t")
    error = caught.value
    assert (error.code, error.pointer, error.problem) == (EditErrorCode.SCHEMA, "/t", problem)


def test_the_largest_grid_is_taken() -> None:
    assert grid(rows(*[" ".join(["11"] * 50)] * 200), "") == {"rowLength": 200, "colLength": 50}
