"""Invitations and the last administrator, on SQLite and on PostgreSQL."""

import asyncio

import pytest
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.accounts.v1.accounts_pb2 import PLAN_TEAM_PRO
from gateway.accounts.v1.invitations_pb2 import INVITATION_STATE_ACCEPTED, INVITATION_STATE_EXPIRED
from gateway.accounts.v1.sessions_pb2 import ROLE_ADMIN, ROLE_USER
from gateway.errors.v1 import errors_pb2
from services.accounts.admin.audit import Actor
from services.accounts.admin.key_rows import NewKey
from services.accounts.admin.keys import KeyAdministration, KeyChanges
from services.accounts.admin.teams import TeamAdministration
from services.accounts.admin.users import UserAdministration
from services.accounts.invitations.acceptance import InvitationAcceptance, IssuedName
from services.accounts.invitations.administration import (
    DEFAULT_LIFETIME_MS,
    MAX_UNACCEPTED_OF_TEAM_ADMIN,
    InvitationAdministration,
    NewInvitation,
)
from services.accounts.invitations.tables import invitations as table
from services.common.errors import GatewayError
from services.common.storage.database import reading
from tests.manual_clock import ManualClock
from tests.services.accounts.expected_errors import conflict, invalid, not_found

ACTOR = Actor("user_root", key_name="root")
DAY_MS = 86_400_000


@pytest.fixture
def invitations(engine: AsyncEngine, clock: ManualClock) -> InvitationAdministration:
    return InvitationAdministration(engine, clock, has_issuer=False)


@pytest.fixture
def acceptance(engine: AsyncEngine, clock: ManualClock) -> InvitationAcceptance:
    return InvitationAcceptance(engine, clock)


@pytest.fixture
def teams(engine: AsyncEngine, clock: ManualClock) -> TeamAdministration:
    return TeamAdministration(engine, clock)


def person(name: str = "ada", email: str = "", decides_team: bool = False) -> IssuedName:
    return IssuedName(name, email, decides_team)


async def test_an_invitation_makes_one_user_at_most(
    invitations: InvitationAdministration,
    acceptance: InvitationAcceptance,
    people: UserAdministration,
    engine: AsyncEngine,
) -> None:
    token, made = await invitations.create(NewInvitation("team_admin", team="lab", plan="team_pro"))
    async with reading(engine) as connection:
        stored = (await connection.execute(select(table))).one()
    assert token.encode() not in b"|".join(str(one).encode() for one in stored)
    assert (await acceptance.read(token)).id == (await acceptance.read(token)).id == made.id
    racers = [acceptance.accept(token, f"ada{number}", ACTOR) for number in range(4)]
    ends = await asyncio.gather(*racers, return_exceptions=True)
    [key] = [one for one in ends if not isinstance(one, BaseException)]
    refused = [one for one in ends if isinstance(one, GatewayError)]
    assert [one.reason for one in refused] == [errors_pb2.REASON_NOT_FOUND] * 3
    [user] = await people.page(9)
    assert (user.team, user.plan, user.role) == ("lab", PLAN_TEAM_PRO, made.role)
    assert (key.info.user_id, key.info.for_sign_in) == (user.id, True)
    [listed] = await invitations.page(9)
    assert (listed.state, listed.accepted_user_id) == (INVITATION_STATE_ACCEPTED, user.id)
    # The user's data go with the user.
    await people.delete(user.id)
    assert await invitations.page(9) == []


async def test_invitations_end_and_are_removed_later(
    invitations: InvitationAdministration, acceptance: InvitationAcceptance, clock: ManualClock
) -> None:
    token, made = await invitations.create(NewInvitation("user", user="ada"))
    assert made.expires_at_ms == clock.now_ms() + DEFAULT_LIFETIME_MS
    for days in (0, -1, 91):
        with invalid("expires_at_ms", "90 days"):
            ends_at_ms = clock.now_ms() + days * DAY_MS
            await invitations.create(NewInvitation("user", expires_at_ms=ends_at_ms or 1))
    clock.now_s += 7 * 86_400
    with not_found("token"):
        await acceptance.accept(token, "", ACTOR)
    assert [one.state for one in await invitations.page(9)] == [INVITATION_STATE_EXPIRED]
    assert await invitations.remove_ended(9) == 0
    clock.now_s += 7 * 86_400 + 1
    assert await invitations.remove_ended(9) == 1
    # A revoked one is gone at once.
    token, made = await invitations.create(NewInvitation("user"))
    await invitations.revoke(made.id)
    with not_found("token"):
        await acceptance.read(token)
    with not_found("invitation_id"):
        await invitations.revoke(made.id)


async def test_invitations_are_bounded_and_names_are_free(
    invitations: InvitationAdministration,
    acceptance: InvitationAcceptance,
    people: UserAdministration,
) -> None:
    await people.create("ada")
    with conflict("user", "'ada'"):
        await invitations.create(NewInvitation("user", user="ada"))
    token, _ = await invitations.create(NewInvitation("user"), ACTOR)
    for name, refusal in {"": invalid("user", "choose"), "a b": invalid("user", "letters")}.items():
        with refusal:
            await acceptance.accept(token, name, ACTOR)
    with conflict("user", "'ada'"):
        await acceptance.accept(token, "ada", ACTOR)
    other, _ = await invitations.create(NewInvitation("user", user="bob"), ACTOR)
    with invalid("user", "'bob'"):
        await acceptance.accept(other, "eve", ACTOR)
    for _ in range(MAX_UNACCEPTED_OF_TEAM_ADMIN - 2):
        await invitations.create(NewInvitation("user"), ACTOR, is_of_team=True)
    with conflict("user", "100"):
        await invitations.create(NewInvitation("user"), ACTOR, is_of_team=True)
    await invitations.create(NewInvitation("user"), ACTOR)


async def test_an_invitation_is_bound_to_the_verified_person(
    invitations: InvitationAdministration,
    acceptance: InvitationAcceptance,
    people: UserAdministration,
    teams: TeamAdministration,
) -> None:
    ada = await people.create("ada")
    new = NewInvitation("admin", user="Ada@example.com", team="lab")
    token, made = await invitations.create(new)
    for other in (person(email=""), person(email="eve@example.com"), person("Ada@example.com")):
        with pytest.raises(GatewayError, match="verified"):
            await acceptance.bind(made.id, other, ada.id, ACTOR)
    assert await acceptance.bind(made.id, person(email="ada@example.com"), ada.id, ACTOR) == "admin"
    with not_found("token"):
        await acceptance.bind(made.id, person(email="ada@example.com"), ada.id, ACTOR)
    bound = await people.get(ada.id)
    assert (bound.role, bound.team) == (ROLE_ADMIN, "lab")
    # A lower role takes nothing away, and the claims decide the team where they are configured.
    token, made = await invitations.create(NewInvitation("user", team="other"))
    assert await acceptance.bind(made.id, person(decides_team=True), ada.id, ACTOR) == "admin"
    assert (await people.get(ada.id)).team == "lab"
    # The invitations of a team go with it.
    token, _ = await invitations.create(NewInvitation("user", team="other"))
    await teams.delete((await teams.named("other")).id)
    with not_found("token"):
        await acceptance.read(token)


async def test_the_last_administrator_stays(
    invitations: InvitationAdministration,
    acceptance: InvitationAcceptance,
    people: UserAdministration,
    keys: KeyAdministration,
) -> None:
    token, _ = await invitations.create(NewInvitation("admin", user="root"))
    key = (await acceptance.accept(token, "", ACTOR)).info
    # Its key of a program signs no administrator in.
    await keys.create(NewKey("root"))
    root = Actor(key.user_id, is_admin_user=True)
    _, offered = await invitations.create(NewInvitation("admin"), root)
    ways = {
        "role": lambda: people.update(key.user_id, role="user", actor=root),
        "name": lambda: people.set("root", role="", actor=root),
        "deletion": lambda: people.delete(key.user_id, root),
        "erasure": lambda: people.erase(key.user_id, root),
        "revocation": lambda: keys.revoke(key.id, root),
        "disabling": lambda: keys.update(key.id, KeyChanges(disabled=True), root),
    }
    for name, way in ways.items():
        with pytest.raises(GatewayError, match="administrator afterwards"):
            await way()
            pytest.fail(name)
    token, _ = await invitations.create(NewInvitation("admin", user="other"))
    await acceptance.accept(token, "", ACTOR)
    assert (await ways["role"]()).role == ROLE_USER
    # What an administrator has offered ends with the role.
    with not_found("invitation_id"):
        await invitations.get(offered.id)
    # An admin key and the command line can correct it.
    await people.set("other", role="viewer")
