"""Print the rows that the table lacks: `python -m tests.surface`.

Each has what becomes of its part today, to be reviewed: where nothing was seen, `open`.
"""

import asyncio
import tempfile
from pathlib import Path

from tests.surface.requests import parts_of
from tests.surface.table import KINDS, is_verdict, line, verdicts
from tests.surface.target import surface_gateway
from tests.surface.trial import Trial


async def main() -> None:
    """Try the parts without a row, and print a row for each."""
    with tempfile.TemporaryDirectory() as folder:
        async with surface_gateway(Path(folder)) as target:
            for dialect in KINDS:
                trial = Trial(target, dialect)
                for part in parts_of(dialect):
                    if part.path not in verdicts(dialect):
                        outcomes = await trial.outcomes(part)
                        row = [one if is_verdict(one) else "open" for one in outcomes]
                        print(line(part.path, row), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
