"""Every part of the events of a provider's stream, as callers of each dialect receive it.

What arrives is held against the table of verdicts. One test is a provider's dialect and a caller's;
it names each part that fails. `make test` tries one part in ten, `make soak` all.
"""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.grid import Grid
from tests.surface.event_target import EventTarget, streaming_gateway
from tests.surface.events import event_parts
from tests.surface.table import LISTENERS, agrees, verdicts
from tests.thoroughness import sampled

pytestmark = pytest.mark.thorough

PAIRS = [(table, caller) for table, callers in LISTENERS.items() for caller in callers]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def target(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[EventTarget]:
    """Return a gateway in front of providers that stream as they are told."""
    async with streaming_gateway(tmp_path_factory.mktemp("gateway")) as one:
        yield one


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(("table", "caller"), PAIRS)
async def test_every_part(target: EventTarget, table: str, caller: str) -> None:
    column = LISTENERS[table].index(caller)
    with Grid() as grid:
        for part in sampled(event_parts(table), 10, first=column):
            with grid.row(part.path):
                verdict = verdicts(table)[part.path][column]
                outcome = await target.outcome(table, part, caller)
                assert agrees(verdict, outcome), f"the table has {verdict!r}: it is {outcome!r}"
