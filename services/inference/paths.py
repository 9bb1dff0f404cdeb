"""Field paths of a request, as used in errors and `RouteInfo.dropped`. Pure.

They are paths of the request message: `messages[3].blocks[1].media`. A facade translates them into
those of the caller's body.
"""


def block_path(message: int, *places: int) -> str:
    """Return the path of a block, or of a block in a tool result.

    Args:
        message: index of the message.
        places: index of the block, and index of the block within its result.
    """
    return f"messages[{message}].blocks" + ".tool_result.blocks".join(
        f"[{place}]" for place in places
    )
