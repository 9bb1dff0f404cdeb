"""Assembly of the administration of one process."""

import asyncio
from collections.abc import Callable
from typing import Any, Self

from sqlalchemy.ext.asyncio import AsyncEngine

from services.accounts.admin import serving
from services.accounts.admin.admin_keys import AdminKeyRepository, configured_hashes
from services.accounts.admin.audit import AuditLog
from services.accounts.admin.authentication import AdminAuthenticator
from services.accounts.admin.sweeper import AuditSweeper
from services.common.clock import Clock
from services.common.settings import Settings
from services.common.sweeping import sweeper_lease


def admin_authenticator(
    settings: Settings, database: AsyncEngine, clock: Clock
) -> AdminAuthenticator:
    """Return what recognises admin keys: those of the settings, and those in the database.

    Raises:
        SettingsError: `[admin]` names a variable or a file that holds no admin key.
    """
    return AdminAuthenticator(
        configured_hashes(settings.admin),
        AdminKeyRepository(database, clock).hashes,
        ttl_s=settings.limits.identify_cache_s,
        monotonic=clock.monotonic,
    )


SERVICE_NAME = "gateway.accounts.v1.AdminService"


class Administration:
    """The administration of one process, the sweeper of its audit log at work.

    Attributes:
        register: makes the gRPC servicer, and adds it to a server.
    """

    def __init__(
        self,
        register: Callable[[Any], None],
        sweeper: AuditSweeper,
        authenticator: AdminAuthenticator,
    ) -> None:
        self.register = register
        self._authenticator = authenticator
        self._sweeper = sweeper
        self._sweeping = asyncio.create_task(sweeper.run())

    @classmethod
    def start(
        cls,
        settings: Settings,
        database: AsyncEngine,
        clock: Clock,
        authenticator: AdminAuthenticator,
    ) -> Self:
        """Build it over a migrated database."""
        log = AuditLog(database, clock)
        every_s = settings.limits.sweep_every_s
        return cls(
            lambda server: serving.register(server, database, clock, log),
            AuditSweeper(
                log,
                sweeper_lease(database, "audit", every_s, clock),
                every_s,
                settings.admin.audit_retention_s,
            ),
            authenticator,
        )

    def reload(self, settings: Settings) -> None:
        """Take over the admin keys of settings that were read again.

        Raises:
            SettingsError: `[admin]` names a variable or a file that holds no admin key.
        """
        self._authenticator.configure(configured_hashes(settings.admin))

    async def stop(self) -> None:
        """End the sweeper."""
        self._sweeping.cancel()
        await asyncio.gather(self._sweeping, return_exceptions=True)
        await self._sweeper.stop()
