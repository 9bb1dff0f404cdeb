"""Runs work on long conversations in a thread.

The work takes about 5 µs for each message, and 1 ms for each megabyte.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import ParamSpec, TypeVar

from gateway.conversation.v1.conversation_pb2 import Message
from services.memory.transcript.turns import StoredTurn

_MANY = 2_000
_LARGE = 1 << 20  # bytes

_P = ParamSpec("_P")
_T = TypeVar("_T")


async def offload_if(
    is_long: bool, work: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs
) -> _T:
    """Call `work`, in a thread if it takes long, and return its result.

    A cancelled caller does not stop it.
    """
    if is_long:
        return await asyncio.to_thread(work, *args, **kwargs)
    return work(*args, **kwargs)


def has_many_messages(messages: Sequence[Message]) -> bool:
    """Return whether work on each message takes long."""
    return len(messages) > _MANY


def turns_have_many_messages(turns: Iterable[StoredTurn]) -> bool:
    """Return whether work on each message of turns takes long."""
    return sum([len(turn.messages) for turn in turns]) > _MANY


def has_large_messages(messages: Sequence[Message]) -> bool:
    """Return whether work on the content of messages takes long."""
    if has_many_messages(messages):
        return True
    size = 0
    for message in messages:
        size += message.ByteSize()  # it serializes the message, so stop early
        if size > _LARGE:
            return True
    return False
