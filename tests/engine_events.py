"""Listeners for what an engine executes, on the event loop and in threads."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import event
from sqlalchemy.ext.asyncio import AsyncEngine

from services.common.storage.database import sync_engines

EXECUTES = "before_cursor_execute"


@contextmanager
def listening(engine: AsyncEngine, name: str, listener: Callable[..., Any]) -> Iterator[None]:
    """Call a listener for each event of an engine within the block."""
    engines = sync_engines(engine)
    for one in engines:
        event.listen(one, name, listener)
    try:
        yield
    finally:
        for one in engines:
            event.remove(one, name, listener)
