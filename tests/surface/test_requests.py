"""Every part of a request, sent through a gateway to a provider of every kind.

What arrives is held against the table of verdicts. One test is a dialect and a kind of provider; it
names each part that fails. `make test` tries one part in ten, another tenth at each kind, and
`make soak` all.
"""

import re

import pytest

from tests.grid import Grid
from tests.surface.requests import Part, parts_of
from tests.surface.table import KINDS, agrees, verdicts
from tests.surface.target import Target
from tests.surface.trial import Trial
from tests.thoroughness import sampled

pytestmark = pytest.mark.thorough

# A response in the background is generated after its request.
SERVED_LATER = frozenset({"background"})
# The gateway fetches media for Bedrock, which it cannot from the addresses of the samples.
FETCHED = re.compile(r"source\[url\]|file_url$")
PAIRS = [(dialect, kind) for dialect, kinds in KINDS.items() for kind in kinds]
# Vertex AI has the verdicts of Gemini's own API.
SAME = {"vertex": "gemini"}


def tried(dialect: str, kind: str) -> list[Part]:
    """Return the parts that are tried at a kind of provider."""
    parts = [part for part in parts_of(dialect) if part.path not in SERVED_LATER]
    if kind == "bedrock":
        parts = [part for part in parts if not FETCHED.search(part.path)]
    if kind in SAME:
        return sampled(parts, 80)
    return sampled(parts, 20, first=KINDS[dialect].index(kind))


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    ("dialect", "kind"), [*PAIRS, *((dialect, kind) for dialect in KINDS for kind in SAME)]
)
async def test_every_part(target: Target, dialect: str, kind: str) -> None:
    trial, column = Trial(target, dialect), KINDS[dialect].index(SAME.get(kind, kind))
    with Grid() as grid:
        for part in tried(dialect, kind):
            with grid.row(part.path):
                verdict = verdicts(dialect)[part.path][column]
                outcome = await trial.outcome(part, kind)
                assert agrees(verdict, outcome), f"the table has {verdict!r}: it is {outcome!r}"
