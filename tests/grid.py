"""Grids of cases that fail together: one test, which reports all of its rows that fail."""

import functools
import inspect
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

_MAX_NAME = 200
_Param = type(pytest.param())


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
        except (Exception, pytest.fail.Exception) as error:
            row = ", ".join(map(repr, names))[:_MAX_NAME]
            self._failures.append(f"{row}: {_place(error)}: {type(error).__name__}: {error}")


def each_row(
    names: str | Sequence[str], rows: Iterable[Any] | Callable[[], Iterable[Any]]
) -> Callable[[Any], Any]:
    """Return a decorator: the test runs for each row, and reports all rows that fail.

    As `pytest.mark.parametrize`, but for one test, since a test of its own for each row takes
    more time than most rows do. The rows share the fixtures of the test.

    Args:
        names: the parameters that a row sets.
        rows: their values, of one parameter the value alone; or `pytest.param` with an id. A
            function returns them when the test runs: what takes long to make costs nobody who only
            collects the tests.
    """
    fields = [name.strip() for name in names.split(",")] if isinstance(names, str) else [*names]
    make = rows if callable(rows) else None
    made = [] if callable(rows) else [_named(fields, row) for row in rows]

    def named() -> list[tuple[Sequence[object], dict[str, Any]]]:
        return [_named(fields, row) for row in make()] if make else made

    def decorate(test: Callable[..., Any]) -> Callable[..., Any]:
        if inspect.iscoroutinefunction(test):

            async def run(*args: Any, **fixtures: Any) -> None:
                with Grid() as grid:
                    for name, arguments in named():
                        with grid.row(*name):
                            await test(*args, **fixtures, **arguments)
        else:

            def run(*args: Any, **fixtures: Any) -> None:  # type: ignore[misc]  # not async here
                with Grid() as grid:
                    for name, arguments in named():
                        with grid.row(*name):
                            test(*args, **fixtures, **arguments)

        functools.update_wrapper(run, test)
        signature = inspect.signature(test)
        parameters = [
            parameter for name, parameter in signature.parameters.items() if name not in fields
        ]
        run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        return run

    return decorate


def _named(fields: Sequence[str], row: Any) -> tuple[Sequence[object], dict[str, Any]]:
    """Return the names of a row in a report, and its values by parameter."""
    if isinstance(row, _Param):
        assert not row.marks, "the rows of one test have no marks of their own"
        values = row.values
        return [row.id] if row.id else values, dict(zip(fields, values, strict=True))
    values = (row,) if len(fields) == 1 else row
    return values, dict(zip(fields, values, strict=True))


def _place(error: BaseException) -> str:
    """Return the file and line of the test that raised an error, or called what raised it."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if Path(frame.filename).name.startswith("test_")]
    place = (own or frames[-1:])[0]
    return f"{Path(place.filename).name}:{place.lineno}"
