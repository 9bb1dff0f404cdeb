"""Administrators: people who are signed in, and callers with an admin key."""

from gateway.accounts.v1 import accounts_pb2
from services.accounts.admin.authentication import AdminAuthenticator
from services.common.errors import permission_denied
from services.common.grpc.admin_scopes import EVERYTHING, OF_TEAM
from services.common.grpc.authentication import Caller, Identify, SignIn, signed_in_token
from services.common.grpc.roles import ADMIN, TEAM_ADMIN


class Administrators:
    """Authenticates the callers of administration.

    Args:
        admin_keys: authenticates admin keys.
        identify: returns the owner of a session or of an issuer's token.
    """

    def __init__(self, admin_keys: AdminAuthenticator, identify: Identify) -> None:
        self._admin_keys = admin_keys
        self._identify = identify

    async def __call__(self, authorization: str) -> Caller:
        """Return the administrator with that `authorization` value, with the open scopes.

        Raises:
            GatewayError: as `AdminAuthenticator`; invalid_api_key, when a session has ended;
                permission_denied, when the person is no administrator.
        """
        token = signed_in_token(authorization)
        if not token:
            return await self._admin_keys(authorization)
        owner = await self._identify(token)
        assert owner.sign_in is not None, "only these tokens are looked up here"
        scopes = await self.scopes_of(owner.sign_in)
        is_of_team = scopes == OF_TEAM
        if not scopes or (is_of_team and not owner.team_id):
            raise permission_denied(
                f"your role is {owner.sign_in.role}, which does not permit administration"
            )
        return Caller(
            owner.user_id,
            owner.team_id if is_of_team else "",
            accounts_pb2.PLAN_UNSPECIFIED,
            owner.user_id,
            key_name=owner.sign_in.user_name,
            scopes=scopes,
            sign_in=owner.sign_in,
            role=owner.role,
        )

    async def by_key(self, admin_key: str) -> Caller:
        """Return the administrator with an admin key.

        Raises:
            GatewayError: as `AdminAuthenticator`.
        """
        return await self._admin_keys(f"Bearer {admin_key}")

    async def scopes_of(self, sign_in: SignIn) -> frozenset[str]:
        """Return the scopes of administration that are open to a person; none if it is closed."""
        if sign_in.role == ADMIN:
            return EVERYTHING
        if sign_in.admin_key_id:
            scopes = await self._admin_keys.scopes_of(sign_in.admin_key_id)
            if scopes:
                return scopes
        return OF_TEAM if sign_in.role == TEAM_ADMIN else frozenset()
