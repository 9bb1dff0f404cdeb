import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from services.accounts.admin.audit import AuditLog
from services.accounts.admin.limits import LimitAdministration
from services.accounts.admin.teams import TeamAdministration
from services.common.ids import Source


@pytest.fixture
def teams(engine: AsyncEngine, source: Source) -> TeamAdministration:
    return TeamAdministration(engine, source)


@pytest.fixture
def limits(engine: AsyncEngine, source: Source) -> LimitAdministration:
    return LimitAdministration(engine, source)


@pytest.fixture
def log(engine: AsyncEngine, source: Source) -> AuditLog:
    return AuditLog(engine, source)
