"""Administration as an administrator of a team sees it: the keys and users of that team alone."""

from gateway.accounts.v1 import admin_pb2
from gateway.errors.v1 import errors_pb2
from services.accounts.admin.servicer import AdminServicer, Context
from services.common.errors import GatewayError, permission_denied
from services.common.grpc.authentication import caller


class TeamAdminServicer(AdminServicer):
    """The servicer of administration, which bounds administrators of a team to that team.

    `admin_scopes` lists the calls that are open to them; each of them is bounded here. Keys and
    users of others look as if they did not exist.
    """

    async def CreateKey(
        self, request: admin_pb2.CreateKeyRequest, context: Context
    ) -> admin_pb2.CreateKeyResponse:
        """Create a key of a user in the team."""
        if team := await self._own_team():
            if request.HasField("team") and request.team != team:
                raise permission_denied(f"team: your role permits the team {team!r} alone")
            request.team = team
        return await super().CreateKey(request, context)

    async def GetKey(
        self, request: admin_pb2.GetKeyRequest, context: Context
    ) -> admin_pb2.GetKeyResponse:
        """Return a key of the team."""
        await self._check_key(request.key_id)
        return await super().GetKey(request, context)

    async def ListKeys(
        self, request: admin_pb2.ListKeysRequest, context: Context
    ) -> admin_pb2.ListKeysResponse:
        """List keys of the team."""
        request.team = await self._own_team() or request.team
        return await super().ListKeys(request, context)

    async def UpdateKey(
        self, request: admin_pb2.UpdateKeyRequest, context: Context
    ) -> admin_pb2.UpdateKeyResponse:
        """Change a key of the team."""
        await self._check_key(request.key_id)
        return await super().UpdateKey(request, context)

    async def RevokeKey(
        self, request: admin_pb2.RevokeKeyRequest, context: Context
    ) -> admin_pb2.RevokeKeyResponse:
        """Revoke a key of the team."""
        await self._check_key(request.key_id)
        return await super().RevokeKey(request, context)

    async def RotateKey(
        self, request: admin_pb2.RotateKeyRequest, context: Context
    ) -> admin_pb2.RotateKeyResponse:
        """Rotate a key of the team."""
        await self._check_key(request.key_id)
        return await super().RotateKey(request, context)

    async def ListUsers(
        self, request: admin_pb2.ListUsersRequest, context: Context
    ) -> admin_pb2.ListUsersResponse:
        """List users of the team."""
        request.team = await self._own_team() or request.team
        return await super().ListUsers(request, context)

    async def GetUser(
        self, request: admin_pb2.GetUserRequest, context: Context
    ) -> admin_pb2.GetUserResponse:
        """Return a user of the team."""
        response = await super().GetUser(request, context)
        _check_team("user", response.user.team_id)
        return response

    async def GetTeam(
        self, request: admin_pb2.GetTeamRequest, context: Context
    ) -> admin_pb2.GetTeamResponse:
        """Return the team."""
        _check_team("team", request.team_id)
        return await super().GetTeam(request, context)

    async def _own_team(self) -> str:
        """Return the name of the administrator's team, or "" if all teams are open."""
        team_id = caller.get().team_id
        return (await self._teams.get(team_id)).name if team_id else ""

    async def _check_key(self, key_id: str) -> None:
        if caller.get().team_id:
            _check_team("key", (await self._keys.get(key_id)).team_id)


def _check_team(kind: str, team_id: str) -> None:
    own = caller.get().team_id
    if own and team_id != own:
        field = f"{kind}_id"
        raise GatewayError(errors_pb2.REASON_NOT_FOUND, f"{field}: no such {kind}", param=field)
