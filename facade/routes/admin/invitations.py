"""The endpoints of invitations."""

from facade.dialects.admin import answers, invitations
from facade.routes.admin.call import rpc_endpoint
from gateway.accounts.v1.invitations_pb2 import RevokeInvitationRequest

_STUB = "invitations"

ENDPOINTS = (
    rpc_endpoint(
        "POST",
        "/invitations",
        "createInvitation",
        "Invite a person; the link is returned once",
        stub=_STUB,
        rpc="CreateInvitation",
        request=invitations.create_request,
        render=invitations.render_created,
        answer=invitations.CREATED,
        body=invitations.CreateInvitation,
        example=invitations.EXAMPLE,
    ),
    rpc_endpoint(
        "GET",
        "/invitations",
        "listInvitations",
        "List invitations, oldest first; those that have ended are removed after 7 days",
        stub=_STUB,
        rpc="ListInvitations",
        request=invitations.list_request,
        render=lambda page: answers.render_list(
            page.invitations, page.next_page_token, invitations.render
        ),
        answer=answers.list_schema(invitations.INVITATION),
        query=invitations.InvitationsQuery,
    ),
    rpc_endpoint(
        "DELETE",
        "/invitations/{invitation_id}",
        "revokeInvitation",
        "Revoke an invitation; a user who has accepted it stays",
        stub=_STUB,
        rpc="RevokeInvitation",
        request=lambda arguments: RevokeInvitationRequest(**arguments.ids),
        render=invitations.render_deleted,
        answer=invitations.DELETED,
    ),
)
