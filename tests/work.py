"""Counts what code does, for tests of how its cost grows: a count is the same on any machine."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def lines_run(work: Callable[[], object]) -> int:
    """Count the lines of Python that run."""
    count = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    _traced(trace, work)
    return count


def bytes_made(work: Callable[[], object], where: str) -> int:
    """Add up the bytes put into variables and attributes, or at the end of lists, within a file.

    Args:
        work: what to run.
        where: how the file's path ends.
    """
    total = 0
    seen: dict[tuple[int, str], bytes | bytearray] = {}

    def note(owner: int, variables: dict[str, Any]) -> None:
        nonlocal total
        for name, variable in variables.items():
            value = variable[-1] if isinstance(variable, list) and variable else variable
            if isinstance(value, bytes | bytearray) and seen.get((owner, name)) is not value:
                seen[owner, name] = value
                total += len(value)

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        if not frame.f_code.co_filename.endswith(where):
            return None
        note(id(frame), frame.f_locals)
        if "self" in frame.f_locals:
            note(id(frame.f_locals["self"]), vars(frame.f_locals["self"]))
        return trace

    _traced(trace, work)
    return total


def _traced(trace: Any, work: Callable[[], object]) -> None:
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
