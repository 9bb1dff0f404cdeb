"""Print the rows that the table lacks: `python -m tests.surface`.

Each has what becomes of its part today, to be reviewed: where nothing was seen, `?`, which is no
verdict.
"""

import asyncio
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.surface.answer_target import answering_gateway
from tests.surface.event_target import streaming_gateway
from tests.surface.parts import every_part
from tests.surface.requests import Part
from tests.surface.table import CALLERS, KINDS, LISTENERS, is_verdict, line, verdicts
from tests.surface.target import surface_gateway
from tests.surface.trial import Trial


async def main() -> None:
    """Try the parts without a row, and print a row for each."""
    with tempfile.TemporaryDirectory() as folder:
        async with surface_gateway(Path(folder) / "requests") as target:
            for dialect in KINDS:
                trial = Trial(target, dialect)
                for part in missing(dialect):
                    show(part, await trial.outcomes(part))
        async with answering_gateway(Path(folder) / "answers") as answering:
            for table, callers in CALLERS.items():
                for part in missing(table):
                    outcomes = [await answering.outcome(table, part, one) for one in callers]
                    show(part, outcomes)
        async with streaming_gateway(Path(folder) / "streams") as streaming:
            for table, callers in LISTENERS.items():
                for part in missing(table):
                    show(part, [await streaming.outcome(table, part, one) for one in callers])


def missing(table: str) -> list[Part]:
    """Return the parts of a table that have no row."""
    return [part for part in every_part(table) if part.path not in verdicts(table)]


def show(part: Part, outcomes: Sequence[str]) -> None:
    """Print the row of a part."""
    row = [one if is_verdict(one) else "?" for one in outcomes]
    print(line(part.path, row), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
