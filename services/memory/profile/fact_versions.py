"""The order in which facts with the same topic and sub-topic supersede one another. Pure."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from services.memory.profile.facts import is_same_value


class FactVersion(NamedTuple):
    """One of several facts with the same topic and sub-topic.

    Attributes:
        id: id of the fact.
        value: value of the fact.
        updated_at_ms: Unix milliseconds when it was last said.
        place: orders facts that were said at the same time.
        superseded_by: id of the next fact, or None for the current one.
    """

    id: str
    value: str
    updated_at_ms: int
    place: int
    superseded_by: str | None


def find_restated(versions: Sequence[FactVersion], value: str, said_at_ms: int) -> str | None:
    """Return the id of the fact that a value restates, or None if the value is a new fact.

    A value that equals the one said just before or after restates it. If another value was said in
    between, the user has changed their mind.
    """
    ordered = sorted(versions, key=_order)
    before = [version for version in ordered if version.updated_at_ms <= said_at_ms]
    after = ordered[len(before) :]
    for neighbour in (*before[-1:], *after[:1]):
        if is_same_value(neighbour.value, value):
            return neighbour.id
    return None


def supersession_changes(versions: Sequence[FactVersion]) -> Iterator[tuple[str, str | None]]:
    """Yield the updates of `superseded_by` that order the facts: id and new value.

    The current fact comes last, so that there are never two current facts.
    """
    ordered = sorted(versions, key=_order)
    for version, following in pairwise(ordered):
        if version.superseded_by != following.id:
            yield version.id, following.id
    if ordered and ordered[-1].superseded_by is not None:
        yield ordered[-1].id, None


def _order(version: FactVersion) -> tuple[int, int]:
    return version.updated_at_ms, version.place
