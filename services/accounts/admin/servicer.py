"""The gRPC servicer of AdminService: validates requests, makes the changes, converts results."""

from collections.abc import Callable
from typing import Any

import grpc

from gateway.accounts.v1 import admin_pb2, admin_pb2_grpc, limits_pb2
from services.accounts.admin.audit import Actor, AuditFilter, AuditLog
from services.accounts.admin.key_rows import NewKey
from services.accounts.admin.keys import DEFAULT_GRACE_S, KeyAdministration, KeyChanges
from services.accounts.admin.limited_subjects import LimitedSubjects
from services.accounts.admin.limits import LimitAdministration
from services.accounts.admin.model_groups import ModelGroupAdministration
from services.accounts.admin.pages import check_filters, page_of, plan_of, size_of
from services.accounts.admin.records import role_name
from services.accounts.admin.teams import TeamAdministration
from services.accounts.admin.users import UserAdministration
from services.accounts.erasure.repository import ErasureRepository
from services.accounts.limits.rules import ACCOUNTS, LABELS, SubjectKind, UsageLimits
from services.accounts.names import check_plan
from services.common.client_address import TrustedProxies
from services.common.errors import invalid
from services.common.grpc.admin_scopes import check_grant
from services.common.grpc.authentication import caller
from services.common.grpc.peers import caller_address
from services.common.grpc.roles import ADMIN
from services.common.process import logs

Context = grpc.aio.ServicerContext[Any, Any]


class AdminServicer(admin_pb2_grpc.AdminServiceServicer):
    """Implements `admin.proto`; errors are raised as GatewayError."""

    def __init__(
        self,
        keys: KeyAdministration,
        users: UserAdministration,
        teams: TeamAdministration,
        limits: LimitAdministration,
        limited_subjects: LimitedSubjects,
        model_groups: ModelGroupAdministration,
        audit: AuditLog,
        erasures: ErasureRepository,
        proxies: TrustedProxies,
        forget: Callable[[str, str], None],
    ) -> None:
        """Create a servicer; `forget` invalidates what this process knows of a subject."""
        self._keys = keys
        self._users = users
        self._teams = teams
        self._limits = limits
        self._limited_subjects = limited_subjects
        self._model_groups = model_groups
        self._audit = audit
        self._erasures = erasures
        self._proxies = proxies
        self._forget = forget

    def _actor(self, context: Context) -> Actor:
        """Return the administrator of a call."""
        administrator = caller.get()
        return Actor(
            administrator.key_id,
            logs.request_id.get(),
            administrator.key_name,
            caller_address(context, self._proxies),
            is_admin_user=administrator.sign_in is not None and administrator.role == ADMIN,
        )

    async def CheckAdminKey(
        self, request: admin_pb2.CheckAdminKeyRequest, context: Context
    ) -> admin_pb2.CheckAdminKeyResponse:
        """Return the id and the scopes of the admin key, which the interceptor has verified."""
        administrator = caller.get()
        return admin_pb2.CheckAdminKeyResponse(
            admin_key_id=administrator.key_id,
            name=administrator.key_name,
            scopes=sorted(administrator.scopes),
        )

    async def CreateKey(
        self, request: admin_pb2.CreateKeyRequest, context: Context
    ) -> admin_pb2.CreateKeyResponse:
        """Create a key."""
        new = NewKey(
            user=request.user,
            team=request.team if request.HasField("team") else None,
            plan=plan_of(request.plan),
            name=request.name,
            expires_at_ms=request.expires_at_ms if request.HasField("expires_at_ms") else None,
        )
        created = await self._keys.create(new, self._actor(context))
        return admin_pb2.CreateKeyResponse(key=created.key, api_key=created.info)

    async def GetKey(
        self, request: admin_pb2.GetKeyRequest, context: Context
    ) -> admin_pb2.GetKeyResponse:
        """Return a key."""
        return admin_pb2.GetKeyResponse(api_key=await self._keys.get(request.key_id))

    async def ListKeys(
        self, request: admin_pb2.ListKeysRequest, context: Context
    ) -> admin_pb2.ListKeysResponse:
        """List keys."""
        page = page_of(request)
        check_filters(user=request.user, team=request.team)
        keys = await self._keys.page(
            page.size + 1, page.after_id, user=request.user, team=request.team
        )
        return admin_pb2.ListKeysResponse(
            api_keys=keys[: page.size], next_page_token=page.next_token(keys)
        )

    async def UpdateKey(
        self, request: admin_pb2.UpdateKeyRequest, context: Context
    ) -> admin_pb2.UpdateKeyResponse:
        """Change a key."""
        expires_at_ms: int | None = None
        match request.WhichOneof("expiry"):
            case "expires_at_ms":
                # `KeyChanges` uses 0 for "never"; -1 is rejected as a time in the past.
                expires_at_ms = request.expires_at_ms or -1
            case "never_expires":
                if not request.never_expires:
                    raise invalid("never_expires", "never_expires: must be true")
                expires_at_ms = 0
        changes = KeyChanges(
            name=request.name if request.HasField("name") else None,
            disabled=request.disabled if request.HasField("disabled") else None,
            expires_at_ms=expires_at_ms,
        )
        changed = await self._keys.update(request.key_id, changes, self._actor(context))
        return admin_pb2.UpdateKeyResponse(api_key=changed)

    async def RevokeKey(
        self, request: admin_pb2.RevokeKeyRequest, context: Context
    ) -> admin_pb2.RevokeKeyResponse:
        """Revoke a key."""
        revoked = await self._keys.revoke(request.key_id, self._actor(context))
        return admin_pb2.RevokeKeyResponse(api_key=revoked)

    async def RotateKey(
        self, request: admin_pb2.RotateKeyRequest, context: Context
    ) -> admin_pb2.RotateKeyResponse:
        """Rotate a key."""
        old = await self._keys.get(request.key_id)
        if old.for_sign_in:
            owner = await self._users.get(old.user_id)
            check_grant(caller.get().scopes, role_name(owner.role))
        grace_s = request.grace_s if request.HasField("grace_s") else DEFAULT_GRACE_S
        rotated = await self._keys.rotate(request.key_id, grace_s, self._actor(context))
        return admin_pb2.RotateKeyResponse(
            key=rotated.key, api_key=rotated.info, replaced=rotated.replaced
        )

    async def CreateUser(
        self, request: admin_pb2.CreateUserRequest, context: Context
    ) -> admin_pb2.CreateUserResponse:
        """Create a user."""
        user = await self._users.create(
            request.name, request.team or None, plan_of(request.plan), self._actor(context)
        )
        return admin_pb2.CreateUserResponse(user=user)

    async def GetUser(
        self, request: admin_pb2.GetUserRequest, context: Context
    ) -> admin_pb2.GetUserResponse:
        """Return a user."""
        return admin_pb2.GetUserResponse(user=await self._users.get(request.user_id))

    async def ListUsers(
        self, request: admin_pb2.ListUsersRequest, context: Context
    ) -> admin_pb2.ListUsersResponse:
        """List users."""
        page = page_of(request)
        check_filters(name=request.name, team=request.team)
        users = await self._users.page(
            page.size + 1, page.after_id, name=request.name, team=request.team
        )
        return admin_pb2.ListUsersResponse(
            users=users[: page.size], next_page_token=page.next_token(users)
        )

    async def UpdateUser(
        self, request: admin_pb2.UpdateUserRequest, context: Context
    ) -> admin_pb2.UpdateUserResponse:
        """Move a user to another team, or set a user's plan or role."""
        role = None
        if request.HasField("role"):
            role = role_name(request.role)
            check_grant(caller.get().scopes, role)
            before = await self._users.get(request.user_id)
            check_grant(caller.get().scopes, role_name(before.role))
        user = await self._users.update(
            request.user_id,
            request.team if request.HasField("team") else None,
            plan_of(request.plan),
            self._actor(context),
            role=role,
        )
        # Other processes read of it within seconds.
        self._forget("user", user.id)
        return admin_pb2.UpdateUserResponse(user=user)

    async def DeleteUser(
        self, request: admin_pb2.DeleteUserRequest, context: Context
    ) -> admin_pb2.DeleteUserResponse:
        """Delete a user."""
        deleted = await self._users.delete(request.user_id, self._actor(context))
        return admin_pb2.DeleteUserResponse(user=deleted.user, key_ids=deleted.key_ids)

    async def EraseUser(
        self, request: admin_pb2.EraseUserRequest, context: Context
    ) -> admin_pb2.EraseUserResponse:
        """Delete a user, and begin to erase the user's data."""
        erasure = await self._users.erase(request.user_id, self._actor(context))
        return admin_pb2.EraseUserResponse(erasure=erasure)

    async def GetErasure(
        self, request: admin_pb2.GetErasureRequest, context: Context
    ) -> admin_pb2.GetErasureResponse:
        """Return the erasure of a user."""
        return admin_pb2.GetErasureResponse(erasure=await self._erasures.get(request.user_id))

    async def CreateTeam(
        self, request: admin_pb2.CreateTeamRequest, context: Context
    ) -> admin_pb2.CreateTeamResponse:
        """Create a team."""
        team = await self._teams.create(request.name, plan_of(request.plan), self._actor(context))
        return admin_pb2.CreateTeamResponse(team=team)

    async def GetTeam(
        self, request: admin_pb2.GetTeamRequest, context: Context
    ) -> admin_pb2.GetTeamResponse:
        """Return a team."""
        return admin_pb2.GetTeamResponse(team=await self._teams.get(request.team_id))

    async def ListTeams(
        self, request: admin_pb2.ListTeamsRequest, context: Context
    ) -> admin_pb2.ListTeamsResponse:
        """List teams."""
        page = page_of(request)
        check_filters(name=request.name)
        teams = await self._teams.page(page.size + 1, page.after_id, name=request.name)
        return admin_pb2.ListTeamsResponse(
            teams=teams[: page.size], next_page_token=page.next_token(teams)
        )

    async def UpdateTeam(
        self, request: admin_pb2.UpdateTeamRequest, context: Context
    ) -> admin_pb2.UpdateTeamResponse:
        """Set the plan of a team."""
        # For a missing plan, `check_plan` raises an error that lists the plans.
        plan = plan_of(request.plan) or ""
        check_plan(plan)
        team = await self._teams.update(request.team_id, plan, self._actor(context))
        return admin_pb2.UpdateTeamResponse(team=team)

    async def DeleteTeam(
        self, request: admin_pb2.DeleteTeamRequest, context: Context
    ) -> admin_pb2.DeleteTeamResponse:
        """Delete a team."""
        return admin_pb2.DeleteTeamResponse(
            team=await self._teams.delete(request.team_id, self._actor(context))
        )

    async def GetLimits(
        self, request: admin_pb2.GetLimitsRequest, context: Context
    ) -> admin_pb2.GetLimitsResponse:
        """Return the limits of a subject."""
        kind = _kind(request.kind)
        limits, usage = await self._limits.get_with_usage(kind, request.id)
        return admin_pb2.GetLimitsResponse(limits=limits.to_proto(kind, request.id), usage=usage)

    async def ListLimits(
        self, request: admin_pb2.ListLimitsRequest, context: Context
    ) -> admin_pb2.ListLimitsResponse:
        """List subjects with limits."""
        size = size_of(request.page_size)
        subjects, next_token = await self._limited_subjects.page(size, request.page_token)
        return admin_pb2.ListLimitsResponse(subjects=subjects, next_page_token=next_token)

    async def SetLimits(
        self, request: admin_pb2.SetLimitsRequest, context: Context
    ) -> admin_pb2.SetLimitsResponse:
        """Replace the limits of a subject."""
        kind, subject_id = _kind(request.limits.kind), request.limits.id
        limits = UsageLimits.of_proto(request.limits)
        limits = await self._limits.set(kind, subject_id, limits, self._actor(context))
        return admin_pb2.SetLimitsResponse(limits=limits.to_proto(kind, subject_id))

    async def ClearLimits(
        self, request: admin_pb2.ClearLimitsRequest, context: Context
    ) -> admin_pb2.ClearLimitsResponse:
        """Remove the limits of a subject."""
        await self._limits.set(_kind(request.kind), request.id, UsageLimits(), self._actor(context))
        return admin_pb2.ClearLimitsResponse()

    async def ResetBudget(
        self, request: admin_pb2.ResetBudgetRequest, context: Context
    ) -> admin_pb2.ResetBudgetResponse:
        """Count the spending of a budget from 0 on."""
        usage = await self._limits.reset_budget(
            _kind(request.kind), request.id, request.measure, self._actor(context)
        )
        return admin_pb2.ResetBudgetResponse(usage=usage)

    async def TopUpBudget(
        self, request: admin_pb2.TopUpBudgetRequest, context: Context
    ) -> admin_pb2.TopUpBudgetResponse:
        """Add an amount to a budget."""
        usage = await self._limits.top_up_budget(
            _kind(request.kind),
            request.id,
            request.measure,
            request.amount_pusd,
            self._actor(context),
        )
        return admin_pb2.TopUpBudgetResponse(usage=usage)

    async def SetModelGroup(
        self, request: admin_pb2.SetModelGroupRequest, context: Context
    ) -> admin_pb2.SetModelGroupResponse:
        """Create or replace a model group."""
        group = request.model_group
        await self._model_groups.set(group.name, group.models, self._actor(context))
        return admin_pb2.SetModelGroupResponse(model_group=group)

    async def ListModelGroups(
        self, request: admin_pb2.ListModelGroupsRequest, context: Context
    ) -> admin_pb2.ListModelGroupsResponse:
        """List all model groups."""
        groups = await self._model_groups.list_all()
        return admin_pb2.ListModelGroupsResponse(
            model_groups=[admin_pb2.ModelGroup(name=name, models=models) for name, models in groups]
        )

    async def DeleteModelGroup(
        self, request: admin_pb2.DeleteModelGroupRequest, context: Context
    ) -> admin_pb2.DeleteModelGroupResponse:
        """Delete a model group."""
        await self._model_groups.delete(request.name, self._actor(context))
        return admin_pb2.DeleteModelGroupResponse()

    async def ListAuditEntries(
        self, request: admin_pb2.ListAuditEntriesRequest, context: Context
    ) -> admin_pb2.ListAuditEntriesResponse:
        """List entries of the audit log."""
        page = page_of(request)
        entry_filter = AuditFilter(
            since_ms=request.since_ms if request.HasField("since_ms") else None,
            until_ms=request.until_ms if request.HasField("until_ms") else None,
            subject_kind=request.subject_kind,
            subject_id=request.subject_id,
        )
        audit_page = await self._audit.page(entry_filter, page.size, page.after_id)
        return admin_pb2.ListAuditEntriesResponse(
            entries=audit_page.entries, next_page_token=audit_page.next_token
        )


def _kind(number: limits_pb2.SubjectKind.ValueType) -> SubjectKind:
    """Return the kind of a subject.

    Raises:
        GatewayError: invalid_request, when there is no such kind.
    """
    try:
        kind = SubjectKind.of_proto(number)
    except ValueError:
        kind = None
    if kind not in (*ACCOUNTS, *LABELS):
        raise invalid("kind", "kind: must be a key, user, team, tag, end user or end users")
    return kind
