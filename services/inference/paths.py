"""Paths of fields of a request, as errors and `Served.dropped` give them. Pure.

They are those of the request message, whoever wrote it: `messages[3].blocks[1].media`. A facade
translates them into those of its caller's body.
"""


def block_path(message: int, *places: int) -> str:
    """Return the path of a block, or of one within the result of a tool.

    Args:
        message: index of the message.
        places: index of the block, and below it that of the block within its result.
    """
    return f"messages[{message}].blocks" + ".tool_result.blocks".join(
        f"[{place}]" for place in places
    )
