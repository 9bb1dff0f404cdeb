"""Every part of a whole answer of a provider, as callers of each dialect receive it.

What arrives is held against the table of verdicts. One test is a provider's dialect and a caller's;
it names each part that fails. `make test` tries one part in ten, `make soak` all.
"""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.grid import Grid
from tests.surface.answer_target import AnswerTarget, answering_gateway
from tests.surface.answers import answer_parts
from tests.surface.table import CALLERS, agrees, verdicts
from tests.thoroughness import sampled

pytestmark = pytest.mark.thorough

PAIRS = [(table, caller) for table, callers in CALLERS.items() for caller in callers]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def target(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[AnswerTarget]:
    """Return a gateway in front of providers that answer as they are told."""
    async with answering_gateway(tmp_path_factory.mktemp("gateway")) as one:
        yield one


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(("table", "caller"), PAIRS)
async def test_every_part(target: AnswerTarget, table: str, caller: str) -> None:
    column = CALLERS[table].index(caller)
    with Grid() as grid:
        for part in sampled(answer_parts(table), 10, first=column):
            with grid.row(part.path):
                verdict = verdicts(table)[part.path][column]
                outcome = await target.outcome(table, part, caller)
                assert agrees(verdict, outcome), f"the table has {verdict!r}: it is {outcome!r}"
