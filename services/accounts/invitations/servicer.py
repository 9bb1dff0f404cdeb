"""The gRPC servicer of InvitationService."""

from typing import Any

import grpc

from gateway.accounts.v1 import invitations_pb2 as pb2
from gateway.accounts.v1 import invitations_pb2_grpc
from gateway.accounts.v1.accounts_pb2 import PLAN_UNSPECIFIED
from gateway.errors.v1 import errors_pb2
from services.accounts.admin.audit import Actor
from services.accounts.admin.pages import check_filters, page_of, plan_of
from services.accounts.admin.records import role_name
from services.accounts.admin.teams import TeamAdministration
from services.accounts.invitations.administration import InvitationAdministration, NewInvitation
from services.common.client_address import TrustedProxies
from services.common.errors import GatewayError, invalid, permission_denied
from services.common.grpc.admin_scopes import check_grant
from services.common.grpc.authentication import caller
from services.common.grpc.peers import caller_address
from services.common.process import logs

SERVICE_NAME = pb2.DESCRIPTOR.services_by_name["InvitationService"].full_name
_PATH = "/console#invitation="

Context = grpc.aio.ServicerContext[Any, Any]


class InvitationServicer(invitations_pb2_grpc.InvitationServiceServicer):
    """Implements `invitations.proto`; errors are raised as GatewayError.

    Args:
        invitations: the invitations.
        teams: the teams.
        public_url: address of the gateway in browsers, or "".
        proxies: the proxies whose headers name callers.
    """

    def __init__(
        self,
        invitations: InvitationAdministration,
        teams: TeamAdministration,
        public_url: str,
        proxies: TrustedProxies,
    ) -> None:
        self._invitations = invitations
        self._teams = teams
        self._public_url = public_url
        self._proxies = proxies

    async def CreateInvitation(
        self, request: pb2.CreateInvitationRequest, context: Context
    ) -> pb2.CreateInvitationResponse:
        """Create an invitation."""
        role = role_name(request.role)
        if not role:
            raise invalid("role", "role: required")
        check_grant(caller.get().scopes, role)
        own_team = await self._own_team()
        if own_team and request.team not in ("", own_team):
            raise permission_denied(f"team: your role permits the team {own_team!r} alone")
        if own_team and request.plan != PLAN_UNSPECIFIED:
            raise permission_denied("plan: your role permits no plans; the team has one")
        new = NewInvitation(
            role=role,
            user=request.user,
            team=own_team or request.team,
            plan=plan_of(request.plan),
            expires_at_ms=request.expires_at_ms if request.HasField("expires_at_ms") else None,
        )
        created = await self._invitations.create(
            new, self._actor(context), is_of_team=bool(own_team)
        )
        return pb2.CreateInvitationResponse(
            invitation=created.invitation, link=link_of(created.token, self._public_url)
        )

    async def ListInvitations(
        self, request: pb2.ListInvitationsRequest, context: Context
    ) -> pb2.ListInvitationsResponse:
        """List invitations."""
        page = page_of(request)
        check_filters(team=request.team)
        team = await self._own_team() or request.team
        # One more than are returned, if there is another page.
        invitations = await self._invitations.page(page.size + 1, page.after_id, team=team)
        return pb2.ListInvitationsResponse(
            invitations=invitations[: page.size], next_page_token=page.next_token(invitations)
        )

    async def RevokeInvitation(
        self, request: pb2.RevokeInvitationRequest, context: Context
    ) -> pb2.RevokeInvitationResponse:
        """Remove an invitation."""
        own = caller.get().team_id
        if own and (await self._invitations.get(request.invitation_id)).team_id != own:
            raise GatewayError(
                errors_pb2.REASON_NOT_FOUND,
                "invitation_id: no such invitation",
                param="invitation_id",
            )
        revoked = await self._invitations.revoke(request.invitation_id, self._actor(context))
        return pb2.RevokeInvitationResponse(invitation=revoked)

    async def _own_team(self) -> str:
        """Return the name of the administrator's team, or "" if all teams are open."""
        team_id = caller.get().team_id
        return (await self._teams.get(team_id)).name if team_id else ""

    def _actor(self, context: Context) -> Actor:
        administrator = caller.get()
        return Actor(
            administrator.key_id,
            logs.request_id.get(),
            administrator.key_name,
            caller_address(context, self._proxies),
        )


def link_of(token: str, public_url: str) -> str:
    """Return the address of the page that accepts an invitation; without a host, its path."""
    return f"{public_url.rstrip('/')}{_PATH}{token}"
