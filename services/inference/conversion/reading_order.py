"""The order in which the lines of a page are read: columns from left to right, each downwards.

A page is divided where an empty strip runs between two blocks of running text. Lines across the
strip (titles, wide tables) divide the blocks above them from those below. What is no running
text, such as a table, is read row by row.
"""

import itertools
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

# Lines that a column has at least.
_MIN_LINES = 3
# Of running text: how far its lines fill the width of their column, and how much wider than high
# they are; cells of tables are shorter.
_MIN_FILL = 0.6
_MIN_ASPECT = 8.0
# The share of such lines in the width of all lines of a column; the rest are headings and tables.
_MIN_LONG = 0.6
# Lines across a strip that are so many for each line beside it make it no strip.
_MAX_ACROSS = 0.3
# Lines of a row overlap so far, as a share of the height of the lower one.
_ROW_OVERLAP = 0.5


@dataclass(frozen=True, slots=True)
class Line:
    """A piece of text and the box around it; y grows downwards."""

    left: float
    top: float
    right: float
    bottom: float
    text: str
    slope: float = 0.0

    @classmethod
    def of_corners(cls, corners: Sequence[Sequence[float]], text: str) -> Self:
        """Return a line by the corners of its box, from the top left one clockwise."""
        (x0, y0), (x1, y1), (x2, y2), (x3, y3) = corners
        return cls(
            (x0 + x3) / 2,
            (y0 + y1) / 2,
            (x1 + x2) / 2,
            (y2 + y3) / 2,
            text,
            math.atan2(y1 - y0, x1 - x0),
        )

    @property
    def width(self) -> float:
        """From left to right."""
        return self.right - self.left

    @property
    def height(self) -> float:
        """From top to bottom."""
        return self.bottom - self.top


def in_order(lines: Sequence[Line]) -> list[str]:
    """Return the texts in reading order; those of one row become one text."""
    return _ordered(_straightened(lines))


def columns_alternate(lines: Sequence[Line]) -> bool:
    """Return whether lines come in turn from two columns of text, as they were drawn."""
    strip = _strip(lines)
    if strip is None:
        return False
    on_left = [line.right <= strip for line in lines if not line.left < strip < line.right]
    switches = sum(one != other for one, other in itertools.pairwise(on_left))
    return switches > max(_MIN_LINES, min(on_left.count(True), on_left.count(False)) / 2)


def _straightened(lines: Sequence[Line]) -> list[Line]:
    """Turn a page that was scanned askew back, by the slope of most of its lines."""
    slopes = [line.slope for line in lines if line.width > 2 * line.height]
    if not slopes:
        return list(lines)
    slope = statistics.median(slopes)
    sine, cosine = math.sin(-slope), math.cos(-slope)
    turned = []
    for line in lines:
        x, y = (line.left + line.right) / 2, (line.top + line.bottom) / 2
        x, y = x * cosine - y * sine, x * sine + y * cosine
        width, height = line.width / 2, line.height / 2
        turned.append(Line(x - width, y - height, x + width, y + height, line.text))
    return turned


def _ordered(lines: list[Line]) -> list[str]:
    strip = _strip(lines)
    if strip is None:
        return _rows(lines)
    across = sorted(
        (line for line in lines if line.left < strip < line.right), key=lambda line: line.top
    )
    texts: list[str] = []
    rest = [line for line in lines if not line.left < strip < line.right]
    # Lines across come in groups without a line of a column between them.
    while rest or across:
        until = across[0].top if across else math.inf
        above = [line for line in rest if (line.top + line.bottom) / 2 < until]
        rest = [line for line in rest if (line.top + line.bottom) / 2 >= until]
        texts += _ordered([line for line in above if line.right <= strip])
        texts += _ordered([line for line in above if line.left >= strip])
        following = min((line.top for line in rest), default=math.inf)
        group = [line for line in across if line.top <= following] or across[:1]
        across = across[len(group) :]
        texts += _rows(group)
    return texts


def _strip(lines: Sequence[Line]) -> float | None:
    """Return the x of an empty strip between two columns of text, or None."""
    best, most = None, 0
    for x in sorted({line.left - 0.5 for line in lines}):
        left = [line for line in lines if line.right <= x]
        right = [line for line in lines if line.left >= x]
        across = len(lines) - len(left) - len(right)
        smaller = min(len(left), len(right))
        if smaller < _MIN_LINES or across > _MAX_ACROSS * (len(left) + len(right)):
            continue
        score = smaller - across
        if (best is None or score > most) and _is_text(left) and _is_text(right):
            best, most = x, score
    return best


def _is_text(lines: Sequence[Line]) -> bool:
    """Return whether most of what lines show is running text: long, and of about one width."""
    long = [line.width for line in lines if line.width >= _MIN_ASPECT * line.height]
    if len(long) < _MIN_LINES or sum(long) < _MIN_LONG * sum(line.width for line in lines):
        return False
    widest = statistics.quantiles(long, n=10)[-1]
    return statistics.median(long) >= _MIN_FILL * widest


def _rows(lines: Sequence[Line]) -> list[str]:
    """Return the texts of rows from top to bottom, each from left to right."""
    rows: list[list[Line]] = []
    for line in sorted(lines, key=lambda line: (line.top + line.bottom) / 2):
        if rows and _same_row(rows[-1][-1], line):
            rows[-1].append(line)
        else:
            rows.append([line])
    return [" ".join(line.text for line in sorted(row, key=lambda line: line.left)) for row in rows]


def _same_row(one: Line, other: Line) -> bool:
    overlap = min(one.bottom, other.bottom) - max(one.top, other.top)
    return overlap > _ROW_OVERLAP * min(one.height, other.height)
