"""Endpoints whose modules are imported with their first request."""

import asyncio
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from facade.lazy_endpoint import LazyEndpoint

NAME = "imported_with_the_first_request"
NO_EXCHANGE: Any = None


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Return the name of a module that notes which thread imports it."""
    (tmp_path / f"{NAME}.py").write_text("import threading\nTHREAD = threading.get_ident()\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield NAME
    sys.modules.pop(NAME, None)


async def imported_by(exchange: object) -> int:
    """Return the thread that imported the module, which must have been imported."""
    return sys.modules[NAME].THREAD


async def test_nothing_is_imported_before_a_request(module: str) -> None:
    LazyEndpoint(module, imported_by)
    assert NAME not in sys.modules


async def test_the_loop_goes_on_while_a_thread_imports(module: str) -> None:
    thread = await LazyEndpoint(module, imported_by)(NO_EXCHANGE)
    assert thread != threading.get_ident()


async def test_first_requests_at_once_are_all_answered(module: str) -> None:
    endpoint = LazyEndpoint(module, imported_by)
    threads = await asyncio.gather(*(endpoint(NO_EXCHANGE) for _ in range(8)))
    assert len(set(threads)) == 1


async def test_later_requests_need_no_thread(module: str) -> None:
    endpoint = LazyEndpoint(module, imported_by)
    await endpoint(NO_EXCHANGE)
    turns: list[str] = []
    asyncio.get_running_loop().call_soon(turns.append, "the loop has turned")
    await endpoint(NO_EXCHANGE)
    assert not turns
