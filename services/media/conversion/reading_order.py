"""Reading order of the lines of a page: columns from left to right, each from top to bottom.

A page is divided where an empty vertical strip separates two blocks of running text. Lines across
the strip (titles, wide tables) divide the blocks above them from those below. Everything else, such
as tables, is read row by row.
"""

import itertools
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

# Minimum lines per column.
_MIN_LINES = 3
# Properties of running text, unlike table cells: how much of the column's width its lines fill, and
# their ratio of width to height.
_MIN_FILL = 0.6
_MIN_ASPECT = 8.0
# Minimum share of running text in the total width of a column's lines; the rest are headings and
# tables.
_MIN_LONG = 0.6
# A strip with more crossing lines than this, per line beside it, is not a column gap.
_MAX_ACROSS = 0.3
# Minimum vertical overlap of lines in one row, as a share of the lower height.
_ROW_OVERLAP = 0.5


@dataclass(frozen=True, slots=True)
class Line:
    """A piece of text with its bounding box; y grows downwards."""

    left: float
    top: float
    right: float
    bottom: float
    text: str
    slope: float = 0.0

    @classmethod
    def of_corners(cls, corners: Sequence[Sequence[float]], text: str) -> Self:
        """Return a line from the corners of its box, clockwise from the top left."""
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
        """Width of the box."""
        return self.right - self.left

    @property
    def height(self) -> float:
        """Height of the box."""
        return self.bottom - self.top


def in_order(lines: Sequence[Line]) -> list[str]:
    """Return the texts in reading order; the texts of a row are joined."""
    return _ordered(_straightened(lines))


def columns_alternate(lines: Sequence[Line]) -> bool:
    """Return whether consecutive lines alternate between two columns of text."""
    strip = _strip(lines)
    if strip is None:
        return False
    on_left = [line.right <= strip for line in lines if not line.left < strip < line.right]
    switches = sum(side != next_side for side, next_side in itertools.pairwise(on_left))
    return switches > max(_MIN_LINES, min(on_left.count(True), on_left.count(False)) / 2)


def _straightened(lines: Sequence[Line]) -> list[Line]:
    """Rotate the lines of a skewed scan by their median slope."""
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
    below = [line for line in lines if not line.left < strip < line.right]
    # Crossing lines come in groups without column lines between them.
    while below or across:
        until = across[0].top if across else math.inf
        above = [line for line in below if (line.top + line.bottom) / 2 < until]
        below = [line for line in below if (line.top + line.bottom) / 2 >= until]
        texts += _ordered([line for line in above if line.right <= strip])
        texts += _ordered([line for line in above if line.left >= strip])
        following = min((line.top for line in below), default=math.inf)
        group = [line for line in across if line.top <= following] or across[:1]
        across = across[len(group) :]
        texts += _rows(group)
    return texts


def _strip(lines: Sequence[Line]) -> float | None:
    """Return the x position of an empty strip between two columns of text, or None."""
    best, best_score = None, 0
    for x in sorted({line.left - 0.5 for line in lines}):
        left = [line for line in lines if line.right <= x]
        right = [line for line in lines if line.left >= x]
        across = len(lines) - len(left) - len(right)
        smaller = min(len(left), len(right))
        if smaller < _MIN_LINES or across > _MAX_ACROSS * (len(left) + len(right)):
            continue
        score = smaller - across
        if (best is None or score > best_score) and _is_text(left) and _is_text(right):
            best, best_score = x, score
    return best


def _is_text(lines: Sequence[Line]) -> bool:
    """Return whether lines are mostly running text: long, and of similar width."""
    widths = [line.width for line in lines if line.width >= _MIN_ASPECT * line.height]
    if len(widths) < _MIN_LINES or sum(widths) < _MIN_LONG * sum(line.width for line in lines):
        return False
    widest = statistics.quantiles(widths, n=10)[-1]
    return statistics.median(widths) >= _MIN_FILL * widest


def _rows(lines: Sequence[Line]) -> list[str]:
    """Return the texts of rows from top to bottom, each row from left to right."""
    rows: list[list[Line]] = []
    for line in sorted(lines, key=lambda line: (line.top + line.bottom) / 2):
        if rows and _same_row(rows[-1][-1], line):
            rows[-1].append(line)
        else:
            rows.append([line])
    return [" ".join(line.text for line in sorted(row, key=lambda line: line.left)) for row in rows]


def _same_row(first_line: Line, second_line: Line) -> bool:
    overlap = min(first_line.bottom, second_line.bottom) - max(first_line.top, second_line.top)
    return overlap > _ROW_OVERLAP * min(first_line.height, second_line.height)
