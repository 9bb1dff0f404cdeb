"""Run work on large requests in a separate thread.

Traversing 100,000 messages takes some 0.1 s, and serializing them for a provider 0.5 s. In a
thread, this work shares the GIL with the event loop in turns of milliseconds. Work on small
requests runs directly, as a thread would cost more.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar, copy_context
from typing import ParamSpec, TypeVar

from gateway.inference.v1.inference_pb2 import GenerateRequest
from services.common.messages.large_request import LargeRequest

# Minimum number of messages, blocks or tools of a large request.
_MANY = 2_000
# Minimum size of a large request in bytes.
_MANY_BYTES = 1 << 20

_P = ParamSpec("_P")
_T = TypeVar("_T")

# Whether the current task's request is large.
_is_large: ContextVar[bool] = ContextVar("is_large", default=False)
# One thread: two would take turns and leave the event loop a third of the time.
_thread = ThreadPoolExecutor(1, thread_name_prefix="large-request")


def mark(request: GenerateRequest) -> None:
    """Record whether the current task's request is large."""
    if _is_large.get():
        return
    messages = request.messages
    if (
        len(messages) > _MANY
        or len(request.tools) > _MANY
        or sum([len(message.blocks) for message in messages]) > _MANY
        # Last, as it takes as long as serializing the request.
        or request.ByteSize() > _MANY_BYTES
    ):
        _is_large.set(True)


async def parse_large(request: LargeRequest) -> GenerateRequest:
    """Return a large request, parsed in the thread; the current task's request is large."""
    mark_large()
    return await offload(request.parse)


def is_large() -> bool:
    """Return whether the current task's request is large."""
    return _is_large.get()


def mark_large() -> None:
    """Record that the current task's request is large, without checking it."""
    _is_large.set(True)


async def offload(function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """Call `function`, in a thread if the request is large.

    The function must only use its arguments; cancelling the caller does not stop it.
    """
    if not _is_large.get():
        return function(*args, **kwargs)
    context = copy_context()
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(_thread, lambda: context.run(function, *args, **kwargs))
