"""Run long computations in a thread, off the event loop."""

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

_P = ParamSpec("_P")
_T = TypeVar("_T")


async def offload_if(
    is_long: bool, work: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs
) -> _T:
    """Call `work`, and return its result: off the event loop's thread if it `is_long`.

    Cancelling the caller does not stop a thread.
    """
    # A transaction of `database.write` is in a thread already.
    if is_long and _is_on_event_loop():
        return await asyncio.to_thread(work, *args, **kwargs)
    return work(*args, **kwargs)


def _is_on_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
