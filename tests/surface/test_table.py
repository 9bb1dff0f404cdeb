"""The table of verdicts, held against the types of the installed SDKs.

`python -m tests.surface` prints the missing rows with what becomes of their parts today.
"""

import pytest

from tests.grid import each_row
from tests.surface.parts import every_part
from tests.surface.table import COLUMNS, TO, agrees, files, is_verdict, newer, verdicts


@pytest.mark.parametrize("table", COLUMNS)
def test_every_part_of_the_sdks_has_a_verdict(table: str) -> None:
    parts = {part.path for part in every_part(table)}
    rows = verdicts(table).keys()
    gone = rows - parts - newer(table)
    assert {"new in the SDK": sorted(parts - rows), "gone": sorted(gone)} == {
        "new in the SDK": [],
        "gone": [],
    }


@pytest.mark.parametrize("table", COLUMNS)
def test_rows_have_a_verdict_for_each_column(table: str) -> None:
    for path, row in verdicts(table).items():
        assert len(row) == len(COLUMNS[table]), path
        assert all(map(is_verdict, row)), f"{path}: {row}"


@pytest.mark.parametrize("table", COLUMNS)
def test_rows_are_sorted(table: str) -> None:
    for file in files(table):
        rows = [line.split('"')[1] for line in file.read_text().splitlines() if line[:1] == '"']
        assert rows == sorted(rows), file.name


def test_paths_of_parts_are_unique() -> None:
    for table in COLUMNS:
        paths = [part.path for part in every_part(table)]
        assert len(paths) == len(set(paths))


@each_row(
    "verdict, outcome, expected",
    [
        ("passes", "passes", True),
        ("passes", "nothing", False),
        ("dropped", "nothing", False),
        (f"{TO}stop", f"{TO}stop", True),
        (f"{TO}stop", f"{TO}seed", False),
        ("ours", "nothing", True),
        ("ours", "refused", False),
        ("needless", "nothing", True),
        ("needless", "dropped", False),
    ],
)
def test_a_verdict_is_held_against_what_became(verdict: str, outcome: str, expected: bool) -> None:
    assert agrees(verdict, outcome) is expected
