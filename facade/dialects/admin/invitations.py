"""Requests about invitations, and the JSON of the answers."""

from typing import Final, get_args

from pydantic import Field

from facade.dialects.admin import answers, requests
from facade.dialects.admin.arguments import Arguments
from facade.dialects.admin.bodies import Body, Name, Page, PlanName, RoleName, Time
from facade.dialects.json_schemas import OPTIONAL_STRING, STRING, JsonObject
from gateway.accounts.v1 import invitations_pb2 as pb2
from gateway.accounts.v1.invitations_pb2 import Invitation, InvitationState

_KIND: Final = "invitation"
_TIME: JsonObject = {"type": "integer", "description": "Unix seconds."}
_FIELDS: JsonObject = {
    "id": STRING,
    "role": {"enum": [*get_args(RoleName)]},
    "user": {
        "type": ["string", "null"],
        "description": "Name or email address of the invited person, or null.",
    },
    "team": OPTIONAL_STRING,
    "team_id": OPTIONAL_STRING,
    "plan": {"enum": [*get_args(PlanName), None]},
    "state": {"enum": ["open", "accepted", "expired"]},
    "created_by": {"type": "string", "description": "Id of a user or an admin key, for example."},
    "created_by_name": OPTIONAL_STRING,
    "created_at": _TIME,
    "expires_at": _TIME,
    "accepted_at": {"type": ["integer", "null"], "description": "Unix seconds, or null."},
    "accepted_user_id": OPTIONAL_STRING,
}
INVITATION = answers.object_schema(_KIND, _FIELDS)
CREATED = answers.object_schema(
    _KIND,
    {
        **_FIELDS,
        "link": {
            "type": "string",
            "description": "Address of the page that accepts the invitation; its path alone if "
            "`console.public_url` is not set. Returned only once.",
        },
    },
)
DELETED = answers.object_schema(_KIND, {"id": STRING, "deleted": {"const": True}})
EXAMPLE: JsonObject = {"role": "user", "user": "ada@example.com", "team": "research"}


class InvitationsQuery(Page):
    """Selects invitations."""

    team: Name | None = Field(None, description="Only those of this team.")


class CreateInvitation(Body):
    """Describes the invitation to create."""

    role: RoleName = Field(description="Role of the person.")
    user: Name | None = Field(
        None,
        description="Name of the person's user, or an email address, which an issuer must have "
        "verified; null if the person chooses a name.",
    )
    team: Name | None = Field(
        None, description="Team of the person, created if it does not exist; null for none."
    )
    plan: PlanName | None = Field(
        None, description="Plan of a new team or, without a team, of the user."
    )
    expires_at: Time | None = Field(
        None, description="End in Unix seconds, at most 90 days ahead; null for 7 days."
    )


def create_request(arguments: Arguments) -> pb2.CreateInvitationRequest:
    """Return the request that creates an invitation."""
    body: CreateInvitation = arguments.body
    return pb2.CreateInvitationRequest(
        role=requests.role(body.role),
        user=body.user or "",
        team=body.team or "",
        plan=requests.plan(body.plan),
        expires_at_ms=requests.to_ms(body.expires_at),
    )


def list_request(arguments: Arguments) -> pb2.ListInvitationsRequest:
    """Return the request for a list of invitations."""
    return pb2.ListInvitationsRequest(**requests.page(arguments), team=arguments.query.team)


def render(invitation: Invitation) -> JsonObject:
    """Return the JSON object of an invitation, without its link."""
    is_accepted = invitation.HasField("accepted_at_ms")
    state = InvitationState.Name(invitation.state)
    return {
        "object": _KIND,
        "id": invitation.id,
        "role": answers.role_name(invitation.role),
        "user": invitation.user or None,
        "team": invitation.team or None,
        "team_id": invitation.team_id or None,
        "plan": answers.plan_name(invitation.plan) if invitation.plan else None,
        "state": state.removeprefix("INVITATION_STATE_").lower(),
        "created_by": invitation.created_by,
        "created_by_name": invitation.created_by_name or None,
        "created_at": invitation.created_at_ms // 1000,
        "expires_at": invitation.expires_at_ms // 1000,
        "accepted_at": invitation.accepted_at_ms // 1000 if is_accepted else None,
        "accepted_user_id": invitation.accepted_user_id or None,
    }


def render_created(created: pb2.CreateInvitationResponse) -> JsonObject:
    """Return the JSON object of a new invitation, with its link."""
    return {**render(created.invitation), "link": created.link}


def render_deleted(removed: pb2.RevokeInvitationResponse) -> JsonObject:
    """Return the JSON object of a removed invitation."""
    return {"object": _KIND, "id": removed.invitation.id, "deleted": True}
