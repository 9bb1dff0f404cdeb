"""Work on large requests, in a thread of its own.

Going through 100,000 messages takes some 0.1 s, and making a provider's JSON of them 0.5 s, or
of 20 MB in few messages 0.1 s: in a thread, which shares the interpreter with the event loop
in turns of milliseconds, nobody waits for that. Work on any other request is done at once,
since handing it over costs more.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar, copy_context
from typing import ParamSpec, TypeVar

from gateway.inference.v1.inference_pb2 import GenerateRequest

# Messages, blocks of messages, or tools from which on a request is large: a few milliseconds.
_MANY = 2_000
# Bytes from which on a request is large whatever it holds.
_MANY_BYTES = 1 << 20

_P = ParamSpec("_P")
_T = TypeVar("_T")

# Whether the request that the current task serves is large.
_is_large: ContextVar[bool] = ContextVar("is_large", default=False)
# One: two would only take turns, and leave the loop a third of them.
_thread = ThreadPoolExecutor(1, thread_name_prefix="large-request")


def mark(request: GenerateRequest) -> None:
    """Note whether the request that the current task serves is large."""
    if _is_large.get():
        return
    messages = request.messages
    if (
        len(messages) > _MANY
        or len(request.tools) > _MANY
        or sum([len(message.blocks) for message in messages]) > _MANY
        # Last, since it takes as long as to serialize the request.
        or request.ByteSize() > _MANY_BYTES
    ):
        _is_large.set(True)


def mark_large() -> None:
    """Note that the request that the current task serves is large, without looking at it."""
    _is_large.set(True)


async def offload(function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """Return what `function` returns, called in a thread where the request is large.

    The function uses nothing but its arguments; a cancelled caller does not stop it.
    """
    if not _is_large.get():
        return function(*args, **kwargs)
    context = copy_context()
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(_thread, lambda: context.run(function, *args, **kwargs))
