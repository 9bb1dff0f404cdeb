"""Run long computations in a thread, off the event loop."""

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

_P = ParamSpec("_P")
_T = TypeVar("_T")


async def offload_if(
    is_long: bool, work: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs
) -> _T:
    """Call `work`, in a thread if it `is_long`, and return its result.

    Cancelling the caller does not stop a thread.
    """
    if is_long:
        return await asyncio.to_thread(work, *args, **kwargs)
    return work(*args, **kwargs)
