"""Assembly of the administration of one process."""

from collections.abc import Callable, Sequence
from typing import Self

from prometheus_client import CollectorRegistry
from sqlalchemy.ext.asyncio import AsyncEngine

from services.accounts.admin.admin_keys import AdminKeyRepository, configured_keys
from services.accounts.admin.audit import AuditLog, audit_sweeper
from services.accounts.admin.authentication import AdminAuthenticator
from services.accounts.admin.keys import KeyAdministration
from services.accounts.admin.limited_subjects import LimitedSubjects
from services.accounts.admin.limits import LimitAdministration
from services.accounts.admin.model_groups import ModelGroupAdministration
from services.accounts.admin.servicer import AdminServicer
from services.accounts.admin.team_servicer import TeamAdminServicer
from services.accounts.admin.teams import TeamAdministration
from services.accounts.admin.users import UserAdministration
from services.accounts.erasure.eraser import Eraser, erasure_sweeper
from services.accounts.erasure.repository import ErasureRepository
from services.accounts.invitations.administration import InvitationAdministration
from services.accounts.invitations.servicer import InvitationServicer
from services.accounts.invitations.sweeper import invitation_sweeper
from services.common.client_address import TrustedProxies
from services.common.clock import Clock
from services.common.settings import Settings
from services.common.storage.erasing import EraseBatch
from services.common.storage.sweeping import Sweeper, sweeper_lease


def admin_authenticator(
    settings: Settings, database: AsyncEngine, clock: Clock
) -> AdminAuthenticator:
    """Return the authenticator for the admin keys of the settings and of the database.

    Raises:
        SettingsError: `[admin]` names a variable or a file without an admin key.
    """
    return AdminAuthenticator(
        configured_keys(settings.admin),
        AdminKeyRepository(database, clock).valid_keys,
        ttl_s=settings.limits.identify_cache_s,
        monotonic=clock.monotonic,
    )


SERVICE_NAME = "gateway.accounts.v1.AdminService"


class Administration:
    """The administration of one process, with its running sweepers.

    Attributes:
        servicer: the gRPC servicer.
        invitations: the gRPC servicer of invitations.
    """

    def __init__(
        self,
        servicer: AdminServicer,
        invitations: InvitationServicer,
        sweepers: Sequence[Sweeper],
        authenticator: AdminAuthenticator,
    ) -> None:
        self.servicer = servicer
        self.invitations = invitations
        self._authenticator = authenticator
        self._sweepers = sweepers
        for sweeper in sweepers:
            sweeper.start()

    @classmethod
    def start(
        cls,
        settings: Settings,
        database: AsyncEngine,
        clock: Clock,
        authenticator: AdminAuthenticator,
        erase_batches: Sequence[EraseBatch],
        registry: CollectorRegistry,
        forget: Callable[[str, str], None],
    ) -> Self:
        """Create the administration with a migrated database, and start its sweepers.

        Args:
            settings: all settings of the gateway.
            database: the database.
            clock: the clock.
            authenticator: authenticates admin keys.
            erase_batches: the functions of all stores that erase the data of a user.
            registry: registry for the metrics.
            forget: invalidates the cached owners of keys and sessions of a subject.
        """
        log = AuditLog(database, clock)
        has_issuer = settings.console.oidc.issuer != ""
        invitations = InvitationAdministration(database, clock, has_issuer=has_issuer)
        proxies = TrustedProxies(settings.server.trusted_proxies)
        erasures = ErasureRepository(database, clock)
        every_s = settings.limits.sweep_every_s
        retention_s = settings.admin.audit_retention_s
        return cls(
            TeamAdminServicer(
                KeyAdministration(database, clock),
                UserAdministration(database, clock),
                TeamAdministration(database, clock),
                LimitAdministration(database, clock),
                LimitedSubjects(database, clock),
                ModelGroupAdministration(database, clock),
                log,
                erasures,
                proxies,
                forget,
            ),
            InvitationServicer(
                *(invitations, TeamAdministration(database, clock)),
                *(settings.console.public_url, proxies),
            ),
            [
                invitation_sweeper(
                    invitations, sweeper_lease(database, "invitations", every_s, clock), every_s
                ),
                audit_sweeper(
                    log, sweeper_lease(database, "audit", every_s, clock), every_s, retention_s
                ),
                erasure_sweeper(
                    Eraser(erasures, erase_batches),
                    erasures,
                    sweeper_lease(database, "erasures", every_s, clock),
                    every_s,
                    retention_s,
                    registry,
                ),
            ],
            authenticator,
        )

    def reload(self, settings: Settings) -> None:
        """Apply the admin keys of reloaded settings.

        Raises:
            SettingsError: `[admin]` names a variable or a file without an admin key.
        """
        self._authenticator.configure(configured_keys(settings.admin))

    async def stop(self) -> None:
        """Stop the sweepers."""
        for sweeper in self._sweepers:
            await sweeper.stop()
