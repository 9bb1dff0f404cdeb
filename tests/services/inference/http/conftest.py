import asyncio
from collections.abc import Callable, Mapping

import uvloop


def pytest_asyncio_loop_factories(
    config: object, item: object
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Run on the loop that the gateway runs on, and on Python's own, which says what is right."""
    return {"asyncio": asyncio.SelectorEventLoop, "uvloop": uvloop.new_event_loop}
