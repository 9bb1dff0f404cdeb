"""A grid of cases that fail together: one test, which reports all of its rows that fail."""

from collections.abc import Iterator
from contextlib import contextmanager


class Grid:
    """Collects the failures of rows.

    ::

        with Grid() as grid:
            for value in values:
                with grid.row(value):
                    assert answer_to(value) == 400
    """

    def __init__(self) -> None:
        self._count = 0
        self._failures: list[str] = []

    def __enter__(self) -> "Grid":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            assert self._count, "the grid has no rows"
            head = f"{len(self._failures)} of {self._count} rows fail"
            assert not self._failures, "\n\n".join([head, *self._failures])

    @contextmanager
    def row(self, *names: object) -> Iterator[None]:
        """Note it if the row of these names fails."""
        self._count += 1
        try:
            yield
        except Exception as error:
            row = ", ".join(map(repr, names))[:200]
            self._failures.append(f"{row}: {type(error).__name__}: {error}")
