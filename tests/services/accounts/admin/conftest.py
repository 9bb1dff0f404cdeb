import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from services.accounts.admin.audit import AuditLog
from services.accounts.admin.limits import LimitAdministration
from services.accounts.admin.teams import TeamAdministration
from services.common.ids import IdGenerator
from tests.manual_clock import ManualClock


@pytest.fixture
def teams(engine: AsyncEngine, clock: ManualClock, new_id: IdGenerator) -> TeamAdministration:
    return TeamAdministration(engine, clock, new_id=new_id)


@pytest.fixture
def limits(engine: AsyncEngine, clock: ManualClock, new_id: IdGenerator) -> LimitAdministration:
    return LimitAdministration(engine, clock, new_id=new_id)


@pytest.fixture
def log(engine: AsyncEngine, clock: ManualClock) -> AuditLog:
    return AuditLog(engine, clock)
