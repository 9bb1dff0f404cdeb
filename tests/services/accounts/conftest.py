from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import count

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from services.accounts.admin.keys import KeyAdministration
from services.accounts.admin.users import UserAdministration
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
def source(clock: Clock) -> Source:
    """Ids end in 000, 001 …; those of the audit log are counted apart."""
    ids: defaultdict[bool, Iterator[int]] = defaultdict(count)
    return Source(
        new_id=lambda prefix: f"{prefix}{next(ids[prefix == 'audit_']):03}",
        now=clock.now,
        monotonic=clock.now,
    )


@pytest.fixture
def random_bytes() -> Callable[[int], bytes]:
    """The n-th key is made of 32 bytes n."""
    keys = count()
    return lambda size: bytes([next(keys)]) * size


@pytest.fixture
def repository(
    engine: AsyncEngine, source: Source, random_bytes: Callable[[int], bytes]
) -> AccountRepository:
    return AccountRepository(engine, source, random_bytes)


@pytest.fixture
def keys(
    engine: AsyncEngine, source: Source, random_bytes: Callable[[int], bytes]
) -> KeyAdministration:
    return KeyAdministration(engine, source, random_bytes)


@pytest.fixture
def people(engine: AsyncEngine, source: Source) -> UserAdministration:
    return UserAdministration(engine, source)
