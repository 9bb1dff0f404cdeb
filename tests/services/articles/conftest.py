"""A document editor on SQLite and on PostgreSQL."""

from collections.abc import AsyncIterator

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from services.common.settings import Articles
from tests.services.articles.editor import Clock, Editing


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def settings() -> Articles:
    """Tests of an area with settings of its own override this."""
    return Articles()


@pytest.fixture
async def editing(engine: AsyncEngine, clock: Clock, settings: Articles) -> AsyncIterator[Editing]:
    """One editor that serves; tests start others beside it."""
    editing = Editing(engine, clock, settings)
    await editing.start()
    yield editing
    await editing.stop()
