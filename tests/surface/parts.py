"""The parts that each table of verdicts has a row for."""

from collections.abc import Sequence

from tests.surface.answers import answer_parts
from tests.surface.events import event_parts
from tests.surface.requests import Part, parts_of
from tests.surface.table import CALLERS, KINDS


def every_part(table: str) -> Sequence[Part]:
    """Return the parts of the requests of a dialect, of its answers, or of its events."""
    if table in KINDS:
        return parts_of(table)
    return answer_parts(table) if table in CALLERS else event_parts(table)
