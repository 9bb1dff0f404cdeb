"""Assembly of the servicer of AdminService, which is imported by the first call."""

from typing import Any

from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.accounts.v1 import admin_pb2_grpc
from services.accounts.admin.audit import AuditLog
from services.accounts.admin.keys import KeyAdministration
from services.accounts.admin.limits import LimitAdministration
from services.accounts.admin.servicer import AdminServicer
from services.accounts.admin.teams import TeamAdministration
from services.accounts.admin.users import UserAdministration
from services.common.clock import Clock


def register(server: Any, database: AsyncEngine, clock: Clock, log: AuditLog) -> None:
    """Create the servicer with a migrated database, and add it to a server."""
    servicer = AdminServicer(
        KeyAdministration(database, clock),
        UserAdministration(database, clock),
        TeamAdministration(database, clock),
        LimitAdministration(database, clock),
        log,
    )
    admin_pb2_grpc.add_AdminServiceServicer_to_server(servicer, server)
