"""Counting of the statements that this process sends to databases."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Engine, event


@dataclass
class StatementCounts:
    """Statements and transactions until now.

    Attributes:
        commits: transactions that were committed; those of one statement that reads have none.
        reads: statements that read.
        writes: statements that write; one for many rows counts once.
    """

    commits: int = 0
    reads: int = 0
    writes: int = 0


@contextmanager
def counting_statements() -> Iterator[StatementCounts]:
    """Count the statements and commits of all engines of this process."""
    counts = StatementCounts()

    def executed(connection: Any, cursor: Any, statement: str, *others: Any) -> None:
        verb = statement.lstrip().split(None, 1)[0].upper()
        if verb in {"INSERT", "UPDATE", "DELETE"}:
            counts.writes += 1
        elif verb in {"SELECT", "WITH"}:
            counts.reads += 1

    def committed(connection: Any) -> None:
        counts.commits += 1

    event.listen(Engine, "before_cursor_execute", executed)
    event.listen(Engine, "commit", committed)
    try:
        yield counts
    finally:
        event.remove(Engine, "before_cursor_execute", executed)
        event.remove(Engine, "commit", committed)
