"""The order in which facts on one sub-topic supersede one another. Pure."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from services.memory.profile.facts import is_same_value


class FactVersion(NamedTuple):
    """A fact among those on its sub-topic.

    Attributes:
        id: its own.
        value: what it says.
        said_at_ms: Unix milliseconds when it was last said.
        place: decides between facts that were said at one time.
        superseded_by: id of the next, or None for the one that counts.
    """

    id: str
    value: str
    said_at_ms: int
    place: int
    superseded_by: str | None


def find_restated(chain: Sequence[FactVersion], value: str, said_at_ms: int) -> str | None:
    """Return the id of the fact that is said again with a value, or None when it is a new one.

    Whoever says today what was said yesterday says nothing new; who says what was said
    before something else came between has changed their mind.
    """
    ordered = sorted(chain, key=_order)
    before = [link for link in ordered if link.said_at_ms <= said_at_ms]
    after = ordered[len(before) :]
    for neighbour in (*before[-1:], *after[:1]):
        if is_same_value(neighbour.value, value):
            return neighbour.id
    return None


def supersession_changes(chain: Sequence[FactVersion]) -> Iterator[tuple[str, str | None]]:
    """Yield what has to change so that each fact is superseded by the next: id and new value.

    The one that counts comes last, so that at no time two of them count.
    """
    ordered = sorted(chain, key=_order)
    for link, following in pairwise(ordered):
        if link.superseded_by != following.id:
            yield link.id, following.id
    if ordered and ordered[-1].superseded_by is not None:
        yield ordered[-1].id, None


def _order(link: FactVersion) -> tuple[int, int]:
    return link.said_at_ms, link.place
