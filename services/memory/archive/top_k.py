"""Selection of the largest of many numbers. Pure."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Numbers of which the largest is compared, in place of all of them.
_FOLD = 32


def top_k(values: "NDArray[Any]", most: int) -> "NDArray[np.intp]":
    """Return the places of the largest values, the largest first; of equals, the later first."""
    import numpy as np

    columns = len(values) // _FOLD
    if columns <= most:
        places = np.arange(len(values))
    else:
        # As many values as are wanted reach the bound, and few more: cheaper than to partition all.
        largest = values[: columns * _FOLD].reshape(_FOLD, columns).max(axis=0)
        places = np.flatnonzero(values >= np.partition(largest, -most)[-most])
    return places[np.lexsort((places, values[places]))[::-1][:most]]
