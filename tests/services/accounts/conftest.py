from itertools import count

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from services.accounts.repository import AccountRepository
from services.common.ids import Source


class Clock:
    """A clock that stands still until it is told to go on; Unix seconds."""

    def __init__(self) -> None:
        self.now_s = 1_700_000_000.0

    def now(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def repository(engine: AsyncEngine, clock: Clock) -> AccountRepository:
    """Ids end in 000, 001 …; the n-th key is made of 32 bytes n."""
    ids, keys = count(), count()
    return AccountRepository(
        engine,
        Source(new_id=lambda prefix: f"{prefix}{next(ids):03}", now=clock.now),
        random_bytes=lambda size: bytes([next(keys)]) * size,
    )
