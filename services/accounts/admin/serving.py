"""Assembly of what answers the calls of AdminService."""

from sqlalchemy.ext.asyncio import AsyncEngine

from services.accounts.admin.audit import AuditLog
from services.accounts.admin.keys import KeyAdministration
from services.accounts.admin.limits import LimitAdministration
from services.accounts.admin.servicer import AdminServicer
from services.accounts.admin.teams import TeamAdministration
from services.accounts.admin.users import UserAdministration
from services.common.clock import Clock


def open_servicer(database: AsyncEngine, clock: Clock, log: AuditLog) -> AdminServicer:
    """Return the servicer over a migrated database."""
    return AdminServicer(
        KeyAdministration(database, clock),
        UserAdministration(database, clock),
        TeamAdministration(database, clock),
        LimitAdministration(database, clock),
        log,
    )
