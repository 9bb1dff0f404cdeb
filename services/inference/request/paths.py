"""Field paths of a request, as used in errors and `RouteInfo.dropped`. Pure.

They are paths of the request message: `messages[3].blocks[1].media`. A facade translates them into
those of the caller's body.
"""

from typing import Final, NamedTuple

# Characters of the name of a member in a path.
_MAX_STEP: Final = 64


def block_path(message: int, *places: int) -> str:
    """Return the path of a block, or of a block in a tool result.

    Args:
        message: index of the message.
        places: index of the block, and index of the block within its result.
    """
    return f"messages[{message}].blocks" + ".tool_result.blocks".join(
        f"[{place}]" for place in places
    )


class Place(NamedTuple):
    """The place of a value in parsed JSON.

    A path as text would be copied for every value below it, and a member may have a name of a
    megabyte.

    Attributes:
        holder: the place of the object or list that holds the value; None for the outermost value.
        step: the name of the member, or the index of the element.
    """

    holder: "Place | None"
    step: str | int

    def path(self, outermost: str = "") -> str:
        """Return the path of the value, below that of the outermost one."""
        steps: list[str | int] = []
        place: Place | None = self
        while place is not None:
            steps.append(place.step)
            place = place.holder
        written = [outermost]
        for step in reversed(steps):
            written.append(f"[{step}]" if isinstance(step, int) else f".{step[:_MAX_STEP]}")
        return "".join(written).removeprefix(".")
