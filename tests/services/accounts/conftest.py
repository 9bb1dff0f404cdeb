from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import count

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from services.accounts.admin.keys import KeyAdministration
from services.accounts.admin.users import UserAdministration
from services.accounts.repository import AccountRepository
from services.common.ids import IdGenerator
from tests.manual_clock import ManualClock


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def new_id() -> IdGenerator:
    """Ids end in 000, 001 …; those of the audit log are counted apart."""
    ids: defaultdict[bool, Iterator[int]] = defaultdict(count)
    return lambda prefix: f"{prefix}{next(ids[prefix == 'audit_']):03}"


@pytest.fixture
def random_bytes() -> Callable[[int], bytes]:
    """The n-th key is made of 32 bytes n."""
    keys = count()
    return lambda size: bytes([next(keys)]) * size


@pytest.fixture
def repository(
    engine: AsyncEngine,
    clock: ManualClock,
    random_bytes: Callable[[int], bytes],
    new_id: IdGenerator,
) -> AccountRepository:
    return AccountRepository(engine, clock, random_bytes, new_id=new_id)


@pytest.fixture
def keys(
    engine: AsyncEngine,
    clock: ManualClock,
    random_bytes: Callable[[int], bytes],
    new_id: IdGenerator,
) -> KeyAdministration:
    return KeyAdministration(engine, clock, random_bytes, new_id=new_id)


@pytest.fixture
def people(engine: AsyncEngine, clock: ManualClock, new_id: IdGenerator) -> UserAdministration:
    return UserAdministration(engine, clock, new_id=new_id)
