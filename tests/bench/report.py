"""The benchmark's figures as a table, beside the budgets they are held to."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any


@dataclass(frozen=True, slots=True)
class Figure:
    """One measure over all runs.

    Attributes:
        median: of the runs.
        low: the smallest.
        high: the largest.
    """

    median: float
    low: float
    high: float

    @classmethod
    def over(cls, values: Sequence[float]) -> "Figure":
        return cls(median(values), min(values), max(values))


@dataclass(frozen=True, slots=True)
class Line:
    """A row of the table.

    Attributes:
        name: what was measured.
        unit: of `gateway` and `reference`.
        gateway: the gateway's figure.
        reference: what it is held against, or None.
        ratio: of the two, run by run, or None.
        budget: in words.
        holds: whether the budget is met, or None where there is none.
    """

    name: str
    unit: str
    gateway: Figure
    reference: Figure | None = None
    ratio: Figure | None = None
    budget: str = ""
    holds: bool | None = None


@dataclass(frozen=True, slots=True)
class Budget:
    """A bound on a ratio, or on a figure where `on_ratio` is false."""

    limit: float
    at_least: bool
    on_ratio: bool = True

    def describe(self) -> str:
        sign = "≥" if self.at_least else "≤"
        return f"{sign} {self.limit:g}{' times' if self.on_ratio else ''}"

    def holds(self, value: float) -> bool:
        return value >= self.limit if self.at_least else value <= self.limit


def line(
    name: str,
    unit: str,
    gateway: Sequence[float],
    reference: Sequence[float] = (),
    budget: Budget | None = None,
) -> Line:
    """Return the row of a measure; the n-th values of both were taken in the same run."""
    own = Figure.over(gateway)
    other = Figure.over(reference) if reference else None
    ratio = None
    if reference:
        pairs = zip(gateway, reference, strict=True)
        ratio = Figure.over([ours / max(theirs, 1e-9) for ours, theirs in pairs])
    if budget is None:
        return Line(name, unit, own, other, ratio)
    value = ratio.median if budget.on_ratio and ratio else own.median
    return Line(name, unit, own, other, ratio, budget.describe(), budget.holds(value))


def table(lines: Sequence[Line]) -> str:
    """Return the rows as text: medians, with the smallest and the largest in brackets."""
    heads = ("measure", "unit", "gateway", "reference", "ratio", "budget", "")
    rows = [heads, *(_cells(line) for line in lines)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(heads))]
    align: Sequence[Callable[[str, int], str]] = (str.ljust, str.ljust, *([str.rjust] * 5))
    return "\n".join(
        "  ".join(
            place(cell, width) for place, cell, width in zip(align, row, widths, strict=True)
        ).rstrip()
        for row in rows
    )


def as_json(lines: Sequence[Line], facts: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the rows and the facts of the run as what `json.dumps` takes."""
    return {**facts, "measures": [asdict(line) for line in lines]}


def _cells(line: Line) -> tuple[str, ...]:
    verdict = {None: "", True: "met", False: "MISSED"}[line.holds]
    return (
        line.name,
        line.unit,
        _shown(line.gateway),
        _shown(line.reference),
        _shown(line.ratio),
        line.budget,
        verdict,
    )


def _shown(figure: Figure | None) -> str:
    if figure is None:
        return ""
    if figure.low == figure.high:
        return _number(figure.median)
    return f"{_number(figure.median)} [{_number(figure.low)}-{_number(figure.high)}]"


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
