"""The caller's tool behind a function."""

from typing import NamedTuple


class ClientTool(NamedTuple):
    """A tool of the caller whose calls are returned otherwise than those of the function.

    Attributes:
        name: the name of the tool.
        namespace: the namespace of the tool; "" if it has none.
        is_freeform: whether its input is free text (a custom tool).
        is_search: whether it is a tool search that the caller runs.
    """

    name: str
    namespace: str = ""
    is_freeform: bool = False
    is_search: bool = False
