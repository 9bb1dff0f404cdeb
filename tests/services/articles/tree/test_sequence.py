"""The sequence of a document's blocks, of many runs."""

import random
from itertools import count

import pytest

from services.articles.tree.nodes import Element
from services.articles.tree.sequence import BlockSequence
from tests.grid import each_row


@each_row("seed", range(3))
def test_elements_are_at_their_positions_in_all_versions(seed: int) -> None:
    chance, numbers = random.Random(seed), count()

    def new(most: int) -> list[Element]:
        return [Element(f"e{next(numbers)}", "paragraph") for _ in range(chance.randrange(most))]

    elements = new(3_000)
    sequence = BlockSequence(elements)
    versions = [(sequence, elements)]
    for _ in range(60):
        start = chance.randrange(len(elements) + 1)
        stop = min(len(elements), start + chance.choice((0, 1, 5, 400)))
        more = new(chance.choice((2, 300)))
        elements = [*elements[:start], *more, *elements[stop:]]
        sequence = sequence.spliced(start, stop, more)
        versions.append((sequence, elements))
    for version, expected in versions:
        assert list(version) == expected
        for position in chance.sample(range(len(expected)), min(len(expected), 200)):
            assert version.position_of(expected[position].id) == position
        gone = versions[0][1][0].id if version is not versions[0][0] else "nowhere"
        if all(element.id != gone for element in expected):
            with pytest.raises(KeyError):
                version.position_of(gone)
