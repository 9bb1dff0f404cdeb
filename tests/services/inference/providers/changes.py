"""Answers that differ from a usual one in places, for tables and for laws."""

import copy
import json
from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import strategies as st

# Says that a field is to be taken away.
GONE = object()

Path = tuple[str | int, ...]

values = st.sampled_from(
    [None, True, False, 0, 1, -1, 2**63, 1.0, 0.5, "", "x", "stop", "null", [], {}, [{}], {"a": 1}]
) | st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(-9, 9) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=4,
)


def changed(answer: Mapping[str, Any], changes: Mapping[Path, Any]) -> dict[str, Any]:
    """Return a copy of an answer with other values at some places.

    A place that is not there, for another change took away what it lies in, stays as it is.
    """
    other: dict[str, Any] = copy.deepcopy(dict(answer))
    for path, value in changes.items():
        holder: Any = other
        for key in path[:-1]:
            try:
                holder = holder[key]
            except (KeyError, IndexError, TypeError):
                break
        else:
            _set(holder, path[-1], value if value is GONE else copy.deepcopy(value))
    return other


def _set(holder: Any, key: str | int, value: Any) -> None:
    if isinstance(holder, dict) and isinstance(key, str):
        if value is GONE:
            holder.pop(key, None)
        else:
            holder[key] = value
    elif isinstance(holder, list) and isinstance(key, int) and key < len(holder):
        if value is GONE:
            del holder[key]
        else:
            holder[key] = value


def spread(of: Any, at: Path = ()) -> list[Path]:
    """Return the place of each field in an answer, and of one more in each object."""
    if isinstance(of, dict):
        inner = [place for key, value in of.items() for place in spread(value, (*at, key))]
        own: list[Path] = [(*at, "further")]
    elif isinstance(of, list):
        inner = [place for key, value in enumerate(of) for place in spread(value, (*at, key))]
        own = []
    else:
        return [at]
    return ([at] if at else []) + inner + own


def differing(
    answer: Mapping[str, Any], places: Sequence[Path], usual: st.SearchStrategy[Any]
) -> st.SearchStrategy[dict[str, Any]]:
    """Make answers that differ from one in up to four places; `usual` are likely values."""
    change = st.dictionaries(
        st.sampled_from(places), st.just(GONE) | usual | values, min_size=0, max_size=4
    )
    return change.map(lambda changes: changed(answer, changes))


# Ways in which servers write the same JSON.
formats = st.sampled_from(
    [
        {"separators": (",", ":"), "ensure_ascii": False},
        {"indent": 2},
        {"separators": (" ,\n", "\t: ")},
    ]
)


def written(answer: Mapping[str, Any], form: Mapping[str, Any]) -> bytes:
    """Write an answer in a server's way."""
    return f" {json.dumps(answer, **form)}\r\n".encode()
