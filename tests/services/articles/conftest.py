"""A document editor on SQLite and on PostgreSQL."""

from collections.abc import AsyncIterator

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from services.common.settings import Articles
from tests.manual_clock import ManualClock
from tests.services.articles.editor_services import EditorServices


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def settings() -> Articles:
    """Tests of an area with settings of its own override this."""
    return Articles()


@pytest.fixture
async def editors(
    engine: AsyncEngine, clock: ManualClock, settings: Articles
) -> AsyncIterator[EditorServices]:
    """One editor that serves; tests start others beside it."""
    editors = EditorServices(engine, clock, settings)
    await editors.start()
    yield editors
    await editors.stop()
