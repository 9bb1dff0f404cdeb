"""The parts that each table of verdicts has a row for."""

from collections.abc import Sequence

from tests.surface.answers import answer_parts
from tests.surface.requests import Part, parts_of
from tests.surface.table import KINDS


def every_part(table: str) -> Sequence[Part]:
    """Return the parts of the requests of a dialect, or of its answers."""
    return parts_of(table) if table in KINDS else answer_parts(table)
