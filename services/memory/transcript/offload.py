"""Work on conversations, in a thread where they are long.

It takes some 5 µs for each message, and 1 ms for each megabyte.
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
    """Return what `work` returns, called in a thread where it takes long.

    It uses nothing but its arguments; a cancelled caller does not stop it.
    """
    if is_long:
        return await asyncio.to_thread(work, *args, **kwargs)
    return work(*args, **kwargs)


def has_many_messages(messages: Sequence[Message]) -> bool:
    """Return whether going through messages takes long."""
    return len(messages) > _MANY


def turns_have_many_messages(turns: Iterable[StoredTurn]) -> bool:
    """Return whether going through the messages of turns takes long."""
    return sum([len(turn.messages) for turn in turns]) > _MANY


def has_large_messages(messages: Sequence[Message]) -> bool:
    """Return whether reading all that messages hold takes long."""
    if has_many_messages(messages):
        return True
    size = 0
    for message in messages:
        size += message.ByteSize()  # it serializes the message: no more of them than need be
        if size > _LARGE:
            return True
    return False
