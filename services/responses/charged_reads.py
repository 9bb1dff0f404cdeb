"""Reads stored items for a call, with a charge of their bytes unless the caller makes one."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import grpc

from services.common.grpc.inprocess.context import CallContext
from services.common.process.byte_budget import (
    UNCHARGED,
    ByteBudget,
    load_charged,
    reading_charge,
    response_charge,
)
from services.responses.conversations.rows import ReadItems
from services.responses.records import ITEM_COST

# Reads items if they have at most a number of bytes, by default in any case.
Read = Callable[[int | None], Awaitable[ReadItems]]


@asynccontextmanager
async def reading_items(
    budget: ByteBudget,
    user_id: str,
    context: "grpc.aio.ServicerContext[Any, Any]",
    max_bytes: int,
    read: Read,
) -> AsyncIterator[ReadItems]:
    """Read the items that a call asks for; context manager that holds their bytes.

    A facade in this process has made room for the items, and for what it makes of them, or has a
    charge for its response.

    Args:
        budget: limits the bytes that the process holds.
        user_id: the caller.
        context: the context of the call.
        max_bytes: larger items are not read; 0 for any size.
        read: reads the items.

    Raises:
        GatewayError: as `read` and `Charge.acquire`.
    """
    if isinstance(context, CallContext) and response_charge.get() is None:
        yield await read(max_bytes or None)
        return
    items = await read(min(max_bytes or UNCHARGED, UNCHARGED))
    if not items.omitted_bytes or (max_bytes and items.omitted_bytes > max_bytes):
        yield items
        return
    with reading_charge(budget, user_id) as charge:
        yield await load_charged(charge, ITEM_COST, read)
