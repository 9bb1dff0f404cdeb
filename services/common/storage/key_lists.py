"""Conditions that a row has one of several keys."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import Column, and_, bindparam, tuple_


class KeyList:
    """The SQL condition that a row has one of several keys of more than one column.

    SQLite reads all rows to compare tuples with a list of several tuples, but looks up single
    columns in an index: the condition compares the first columns of the key alone, too.

    Args:
        columns: the columns of the key, of which an index begins with those that are looked up.
        looked_up: number of the first columns that are looked up. All combinations of their values
            are; so there should be few values of all of them but one.
        name: name of the bound parameters.

    Attributes:
        condition: the condition.
    """

    def __init__(self, columns: Sequence[Column[Any]], looked_up: int, name: str) -> None:
        self._name = name
        self._alone = [f"{name}_{column.name}" for column in columns[:looked_up]]
        self.condition = and_(
            *(
                column.in_(bindparam(alone, expanding=True))
                for column, alone in zip(columns, self._alone, strict=False)
            ),
            tuple_(*columns).in_(bindparam(name, expanding=True)),
        )

    def values(self, keys: Collection[tuple[Any, ...]]) -> Mapping[str, Any]:
        """Return the values of the bound parameters for some keys."""
        alone = {
            name: sorted({key[place] for key in keys}) for place, name in enumerate(self._alone)
        }
        return {self._name: list(keys), **alone}
