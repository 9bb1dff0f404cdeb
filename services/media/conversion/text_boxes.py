"""Boxes around lines of text, from a map of how likely each pixel belongs to text.

The map is the output of a DB model (differentiable binarization), which marks the middle of each
line: connected pixels are one line, and its box is their smallest rectangle, enlarged.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating]
Integers = NDArray[np.integer]

# A pixel belongs to text from this likelihood on, and a box holds text from this mean on.
_MIN_PIXEL = 0.3
_MIN_MEAN = 0.5
# How much a rectangle grows: its area divided by its circumference, times this.
_GROWTH = 1.6
# Shorter sides of the marked pixels and of the enlarged rectangle are noise.
_MIN_SIDE = 3.0
_MIN_GROWN_SIDE = 5.0
_MAX_BOXES = 1_000


def text_boxes(likelihood: Floats) -> list[Floats]:
    """Return the corners (x, y) of each box, clockwise from the top left; upper boxes first."""
    boxes = []
    for points in _components(_dilated(likelihood > _MIN_PIXEL)):
        corners = _smallest_rectangle(_convex_hull(points))
        if min(_sides(corners)) < _MIN_SIDE or _mean_within(likelihood, corners) < _MIN_MEAN:
            continue
        corners = _grown(corners)
        if min(_sides(corners)) >= _MIN_GROWN_SIDE:
            boxes.append(_from_top_left(corners))
    return sorted(boxes, key=lambda corners: (corners[0, 1], corners[0, 0]))


def _dilated(marked: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return the pixels that are marked, or whose left or upper neighbours are."""
    marked = marked.copy()
    marked[:, 1:] |= marked[:, :-1].copy()
    marked[1:] |= marked[:-1].copy()
    return marked


def _components(marked: NDArray[np.bool_]) -> Iterator[Integers]:
    """Yield the ends of the rows of each set of connected pixels, the sets with most rows first.

    Pixels that touch at a corner are connected.
    """
    edges = np.diff(np.pad(marked, ((0, 0), (1, 1))).astype(np.int8), axis=1)
    rows, starts = np.nonzero(edges == 1)
    _, stops = np.nonzero(edges == -1)
    if not rows.size:
        return
    labels = _labels(rows, starts, stops, marked.shape[1])
    order = np.argsort(labels, kind="stable")
    bounds = np.flatnonzero(np.diff(labels[order])) + 1
    groups = sorted(np.split(order, bounds), key=len, reverse=True)
    for group in groups[:_MAX_BOXES]:
        ends = np.concatenate([starts[group], stops[group] - 1])
        yield np.stack([ends, np.tile(rows[group], 2)], axis=1)


def _labels(rows: Integers, starts: Integers, stops: Integers, width: int) -> Integers:
    """Return a number for each run of pixels, equal for runs that are connected."""
    # Runs are in the order of these positions, in which a row has room for a gap at its end.
    stride = width + 2
    first, last = rows * stride + starts, rows * stride + stops
    # The runs of the row above that touch a run: from the first that ends at its start or later,
    # to the last that starts at its stop or before.
    low = np.searchsorted(last, first - stride, side="left")
    high = np.searchsorted(first, last - stride, side="right")
    counts = np.maximum(high - low, 0)
    below = np.repeat(np.arange(rows.size), counts)
    offsets = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    above = np.repeat(low, counts) + offsets
    labels = np.arange(rows.size)
    while True:
        lower = np.minimum(labels[below], labels[above])
        joined = labels.copy()
        np.minimum.at(joined, labels[below], lower)
        np.minimum.at(joined, labels[above], lower)
        # Follow the labels to their ends, in steps that double.
        while not np.array_equal(joined, joined[joined]):
            joined = joined[joined]
        if np.array_equal(joined, labels):
            return labels
        labels = joined[labels]


def _convex_hull(points: Integers) -> Floats:
    """Return the corners of the convex hull, in order of their angle."""
    ordered = sorted(map(tuple, np.unique(points, axis=0).tolist()))
    if len(ordered) < 3:
        return np.array(ordered, dtype=float)
    halves = [_half_hull(ordered), _half_hull(ordered[::-1])]
    return np.array(halves[0][:-1] + halves[1][:-1], dtype=float)


def _half_hull(points: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    hull: list[tuple[int, ...]] = []
    for x, y in points:
        while len(hull) > 1:
            (x0, y0), (x1, y1) = hull[-2:]
            if (x1 - x0) * (y - y0) - (y1 - y0) * (x - x0) > 0:
                break
            hull.pop()
        hull.append((x, y))
    return hull


def _smallest_rectangle(hull: Floats) -> Floats:
    """Return the corners of the rectangle of least area around a hull: one side lies on it."""
    edges = np.diff(np.concatenate([hull, hull[:1]]), axis=0)
    angles = np.unique(np.arctan2(edges[:, 1], edges[:, 0]) % (np.pi / 2))
    along = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    across = np.stack([-along[:, 1], along[:, 0]], axis=1)
    u, v = hull @ along.T, hull @ across.T
    best = int(np.argmin(np.ptp(u, axis=0) * np.ptp(v, axis=0)))
    left, right = u[:, best].min(), u[:, best].max()
    top, bottom = v[:, best].min(), v[:, best].max()
    places = np.array([[left, top], [right, top], [right, bottom], [left, bottom]])
    rectangle: Floats = places @ np.stack([along[best], across[best]])
    return rectangle


def _sides(corners: Floats) -> tuple[float, float]:
    return (
        float(np.linalg.norm(corners[1] - corners[0])),
        float(np.linalg.norm(corners[3] - corners[0])),
    )


def _mean_within(likelihood: Floats, corners: Floats) -> float:
    """Return the mean likelihood of the pixels within a rectangle."""
    height, width = likelihood.shape
    left, top = np.clip(np.floor(corners.min(axis=0)).astype(int), 0, (width - 1, height - 1))
    right, bottom = np.clip(np.ceil(corners.max(axis=0)).astype(int), 0, (width - 1, height - 1))
    y, x = np.mgrid[top : bottom + 1, left : right + 1]
    is_within = np.ones(x.shape, dtype=bool)
    for corner, other in ((corners[0], corners[1]), (corners[0], corners[3])):
        side = other - corner
        place = (x - corner[0]) * side[0] + (y - corner[1]) * side[1]
        # Half a pixel more on each side, so that thin rectangles have pixels.
        margin = 0.5 * float(np.linalg.norm(side))
        is_within &= (place >= -margin) & (place <= side @ side + margin)
    pixels = likelihood[top : bottom + 1, left : right + 1][is_within]
    return float(pixels.mean()) if pixels.size else 0.0


def _grown(corners: Floats) -> Floats:
    """Return a rectangle that is larger on all sides, of the pixels that its corners are in."""
    width, height = _sides(corners)
    distance = _GROWTH * width * height / (2 * (width + height))
    along = (corners[1] - corners[0]) / width * distance
    across = (corners[3] - corners[0]) / height * distance
    grown: Floats = np.floor(corners) + np.stack(
        [-along - across, along - across, along + across, -along + across]
    )
    return grown


def _from_top_left(corners: Floats) -> Floats:
    """Return the corners clockwise from the top left one: the upper one of the two on the left."""
    by_x = corners[np.argsort(corners[:, 0], kind="stable")]
    top_left, bottom_left = by_x[:2][np.argsort(by_x[:2, 1], kind="stable")]
    top_right, bottom_right = by_x[2:][np.argsort(by_x[2:, 1], kind="stable")]
    return np.stack([top_left, top_right, bottom_right, bottom_left])
