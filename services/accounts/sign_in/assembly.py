"""Assembly of the sign-in of one process."""

import hmac
from functools import partial
from hashlib import sha256

from sqlalchemy.ext.asyncio import AsyncEngine

from services.accounts.admin.authentication import AdminAuthenticator
from services.accounts.development import redeem_sign_in_code
from services.accounts.invitations.acceptance import InvitationAcceptance
from services.accounts.repository import AccountRepository
from services.accounts.sign_in.administrators import Administrators
from services.accounts.sign_in.code_flow import CodeFlow
from services.accounts.sign_in.issuer import MAX_ANSWER, Issuer
from services.accounts.sign_in.issuer_tokens import IssuerTokens
from services.accounts.sign_in.people import People
from services.accounts.sign_in.servicer import SessionServicer
from services.accounts.sign_in.sessions import ConsoleSessionRepository
from services.common.client_address import TrustedProxies
from services.common.clock import Clock
from services.common.grpc.authentication import CachingAuthenticator, Caller
from services.common.http import Client
from services.common.key_format import SESSION_PREFIX
from services.common.settings import Settings, SettingsError

_PURPOSE = b"sign-in attempts\n"


class SignIns:
    """Sessions and the issuer, as all parts of a process share them.

    Args:
        settings: all settings of the gateway.
        database: the database.
        clock: the clock.
        secret: the secret of the gateway's own calls.

    Raises:
        SettingsError: the variable with the client's secret is not set.
    """

    def __init__(
        self, settings: Settings, database: AsyncEngine, clock: Clock, secret: bytes
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._accounts = AccountRepository(database, clock)
        self._sessions = ConsoleSessionRepository(database, clock, settings.console)
        oidc = settings.console.oidc
        if oidc.issuer and oidc.client_secret_env and not oidc.secret():
            raise SettingsError(
                f"console.oidc.client_secret_env: the variable {oidc.client_secret_env} is not set"
            )
        new_client = partial(
            Client,
            settings.limits.connect_timeout_s,
            max_answer_bytes=MAX_ANSWER,
        )
        self._issuer = Issuer(oidc, clock, new_client)
        self._people = People(
            *(database, clock, self._accounts),
            link_users=oidc.link_users,
            default_role=oidc.default_role,
        )
        self._tokens = IssuerTokens(oidc, self._issuer, self._people)
        self._invitations = InvitationAcceptance(database, clock)
        self._secret = hmac.digest(secret, _PURPOSE, sha256)

    async def identify(self, token: str) -> Caller:
        """Return the owner of the token of a session or of the issuer.

        Raises:
            GatewayError: as `ConsoleSessionRepository.identify` and `IssuerTokens.identify`.
        """
        if token.startswith(SESSION_PREFIX):
            return await self._sessions.identify(token)
        return await self._tokens.identify(token)

    def servicer(
        self, admin_keys: AdminAuthenticator, identify: CachingAuthenticator
    ) -> SessionServicer:
        """Return the servicer of sessions."""
        console = self._settings.console
        flow = None
        if console.oidc.issuer:
            flow = CodeFlow(console, self._issuer, self._secret, self._clock)
        return SessionServicer(
            self._sessions,
            partial(redeem_sign_in_code, self._accounts, self._settings, self._clock),
            identify,
            Administrators(admin_keys, identify),
            flow,
            self._people,
            self._invitations,
            identify.forget,
            TrustedProxies(self._settings.server.trusted_proxies),
        )

    async def close(self) -> None:
        """Close the connections to the issuer."""
        await self._issuer.close()
