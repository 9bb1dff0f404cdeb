"""`gateway invitations`: invite people, list and revoke invitations."""

from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from services.commands.shared import (
    FLAGS,
    PlanName,
    all_pages,
    expires_at_ms,
    on_database,
    print_table,
    time_of,
)

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine

    from gateway.accounts.v1.invitations_pb2 import Invitation
    from services.accounts.invitations.administration import InvitationAdministration
    from services.common.settings import Settings

Result = TypeVar("Result")


class RoleName(StrEnum):
    """The roles of invitations; a test checks that they match the service."""

    VIEWER = "viewer"
    USER = "user"
    TEAM_ADMIN = "team_admin"
    ADMIN = "admin"


app = typer.Typer(help="Invite people with a role; list and revoke invitations.", **FLAGS)


@app.command("create")
def create_invitation(
    role: Annotated[
        RoleName, typer.Option("--role", help="What the person may do after the sign-in.")
    ] = RoleName.USER,
    user: Annotated[
        str,
        typer.Option(
            "--user",
            metavar="NAME",
            help="Name or email address of the person, who chooses a name without it.",
        ),
    ] = "",
    team: Annotated[
        str,
        typer.Option("--team", metavar="NAME", help="Team; created if it does not exist."),
    ] = "",
    plan: Annotated[
        PlanName | None,
        typer.Option("--plan", help="Plan of a new team, or of a user without a team."),
    ] = None,
    expires_in: Annotated[
        str, typer.Option("--expires-in", metavar="TIME", help="For example 12h; at most 90d.")
    ] = "7d",
) -> None:
    """Print a link that makes whoever accepts it a user; it cannot be shown again."""

    async def run(engine: "AsyncEngine", settings: "Settings") -> str:
        from services.accounts.invitations.administration import (
            InvitationAdministration,
            NewInvitation,
        )
        from services.accounts.invitations.servicer import link_of

        has_issuer = settings.console.oidc.issuer != ""
        invitations = InvitationAdministration(engine, has_issuer=has_issuer)
        new = NewInvitation(role, user, team, plan, expires_at_ms(expires_in))
        created = await invitations.create(new)
        return link_of(created.token, settings.console.public_url)

    link = on_database(run)
    typer.echo(link)
    if link.startswith("/"):
        typer.echo(
            "This is the path below the gateway's address; set console.public_url for whole links.",
            err=True,
        )


@app.command("list")
def list_invitations() -> None:
    """List every invitation; those that have ended are removed after 7 days."""

    async def work(invitations: "InvitationAdministration") -> "list[Invitation]":
        return await all_pages(invitations.page)

    rows: list[tuple[str, ...]] = [("ID", "ROLE", "USER", "TEAM", "STATE", "BY", "ENDS")]
    rows += [_row(invitation) for invitation in _on_invitations(work)]
    print_table(rows)


@app.command("revoke")
def revoke_invitation(
    invitation_id: Annotated[str, typer.Argument(metavar="ID", help="Id of the invitation.")],
) -> None:
    """Revoke an invitation, so that its link is no longer valid."""
    _on_invitations(lambda invitations: invitations.revoke(invitation_id))


def _row(invitation: "Invitation") -> tuple[str, ...]:
    from gateway.accounts.v1.invitations_pb2 import InvitationState
    from services.accounts.admin.records import role_name

    state = InvitationState.Name(invitation.state).removeprefix("INVITATION_STATE_").lower()
    return (
        *(invitation.id, role_name(invitation.role), invitation.user or "-"),
        *(invitation.team or "-", state, invitation.created_by_name or invitation.created_by),
        time_of(invitation.expires_at_ms // 1000),
    )


def _on_invitations(
    work: "Callable[[InvitationAdministration], Awaitable[Result]]",
) -> "Result":
    async def run(engine: "AsyncEngine", settings: "Settings") -> "Result":
        from services.accounts.invitations.administration import InvitationAdministration

        has_issuer = settings.console.oidc.issuer != ""
        return await work(InvitationAdministration(engine, has_issuer=has_issuer))

    return on_database(run)
