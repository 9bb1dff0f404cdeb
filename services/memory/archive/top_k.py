"""Selection of numbers: the largest of many, and those within ranges. Pure."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Values in a group, of which only the largest is compared at first.
_FOLD = 32


def are_within(
    numbers: "NDArray[np.intp]", ranges: Sequence[tuple[int, int]]
) -> "NDArray[np.bool_]":
    """Return which numbers are in one of some ranges: from its first number on, below its end.

    The ranges are in ascending order, and there is at least one.
    """
    import numpy as np

    begins, ends = np.asarray(ranges, np.intp).T
    places = np.searchsorted(begins, numbers, side="right") - 1
    within: NDArray[np.bool_] = (places >= 0) & (numbers < ends[places])
    return within


def top_k(values: "NDArray[Any]", most: int) -> "NDArray[np.intp]":
    """Return the indices of the largest values, the largest first; of equals, the later first."""
    import numpy as np

    columns = len(values) // _FOLD
    if columns <= most:
        places = np.arange(len(values))
    else:
        # At least `most` values reach the bound, and few more: cheaper than partitioning all.
        largest = values[: columns * _FOLD].reshape(_FOLD, columns).max(axis=0)
        places = np.flatnonzero(values >= np.partition(largest, -most)[-most])
    return places[np.lexsort((places, values[places]))[::-1][:most]]
