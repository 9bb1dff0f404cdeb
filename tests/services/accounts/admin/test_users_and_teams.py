"""Administration of users, teams and their limits, on SQLite and on PostgreSQL."""

import json

import pytest
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.accounts.v1.accounts_pb2 import PLAN_ENTERPRISE, PLAN_PERSONAL_PRO, PLAN_TEAM_PRO
from services.accounts.admin.audit import AuditFilter, AuditLog
from services.accounts.admin.key_rows import NewKey
from services.accounts.admin.keys import KeyAdministration
from services.accounts.admin.limits import LimitAdministration
from services.accounts.admin.teams import TeamAdministration
from services.accounts.admin.users import UserAdministration
from services.accounts.keys import hash_key
from services.accounts.limits.rules import ACCOUNTS, MAX_AMOUNT, SubjectKind, UsageLimits
from services.accounts.limits.tables import limits as limits_table
from services.accounts.repository import AccountRepository
from services.common.storage.database import reading
from tests.services.accounts.expected_errors import conflict, invalid, not_found

UNKNOWN = ("", "user_999", "ada", "a\0b", "é")


async def test_a_user_needs_no_key(people: UserAdministration, keys: KeyAdministration) -> None:
    made = await people.create("ada", "lab", "team_pro")
    assert (made.name, made.team, made.plan) == ("ada", "lab", PLAN_TEAM_PRO)
    assert await people.get(made.id) == made == await people.named("ada")
    assert await keys.page(9) == []


async def test_names_of_users_and_teams_are_taken_once(
    people: UserAdministration, teams: TeamAdministration
) -> None:
    await people.create("ada", "lab")
    with conflict("name", "'ada'"):
        await people.create("ada")
    with conflict("name", "'lab'"):
        await teams.create("lab")
    for name in ("", "a b", "a" * 65, "a\0"):
        with invalid("name", "1 to 64"):
            await people.create(name)
        with invalid("name", "1 to 64"):
            await teams.create(name)


async def test_a_user_moves_to_a_team_that_exists(
    people: UserAdministration, teams: TeamAdministration
) -> None:
    ada = await people.create("ada", plan="personal_pro")
    with invalid("team", "no team 'lab'"):
        await people.update(ada.id, "lab")
    await teams.create("lab", "enterprise")
    moved = await people.update(ada.id, "lab")
    assert (moved.team, moved.plan) == ("lab", PLAN_ENTERPRISE)
    assert (await teams.named("lab")).users == 1
    assert await people.update(ada.id, "") == ada
    assert (await teams.named("lab")).users == 0


async def test_a_team_s_plan_is_not_set_by_its_users(
    people: UserAdministration, teams: TeamAdministration
) -> None:
    ada = await people.create("ada", "lab")
    with invalid("plan", "team"):
        await people.update(ada.id, plan="enterprise")
    with invalid("plan", "team"):
        await people.update(ada.id, "lab", "enterprise")
    left = await people.update(ada.id, "", "personal_pro")
    assert (left.team, left.plan) == ("", PLAN_PERSONAL_PRO)
    lab = await teams.update((await teams.named("lab")).id, "enterprise")
    assert lab.plan == PLAN_ENTERPRISE


async def test_changes_of_what_is_not_there_are_refused(
    people: UserAdministration, teams: TeamAdministration
) -> None:
    for unknown in UNKNOWN:
        with not_found("user_id"):
            await people.get(unknown)
        with not_found("user_id"):
            await people.update(unknown, plan="enterprise")
        with not_found("team_id"):
            await teams.get(unknown)
        with not_found("team_id"):
            await teams.update(unknown, "enterprise")
    ada = await people.create("ada")
    with invalid("team", "at least one"):
        await people.update(ada.id)
    with invalid("plan", "personal_free"):
        await people.update(ada.id, plan="gold")


async def test_users_and_teams_are_listed_page_by_page(
    people: UserAdministration, teams: TeamAdministration
) -> None:
    for name, team in (("ada", "lab"), ("bob", None), ("eve", "lab")):
        await people.create(name, team)
    await teams.create("empty")
    first = await people.page(2)
    assert [user.name for user in first] == ["ada", "bob"]
    assert [user.name for user in await people.page(2, first[-1].id)] == ["eve"]
    assert [user.name for user in await people.page(9, team="lab")] == ["ada", "eve"]
    assert [user.name for user in await people.page(9, name="bob")] == ["bob"]
    assert [(team.name, team.users) for team in await teams.page(9)] == [("lab", 2), ("empty", 0)]


@pytest.mark.parametrize("kind", ACCOUNTS)
async def test_limits_of_each_kind_are_set_and_cleared(
    keys: KeyAdministration,
    limits: LimitAdministration,
    repository: AccountRepository,
    kind: SubjectKind,
) -> None:
    made = await keys.create(NewKey("ada", "lab"))
    subject_id = {"key": made.info.id, "user": made.info.user_id, "team": made.info.team_id}[kind]
    assert await limits.get(kind, subject_id) == UsageLimits()
    new_limits = UsageLimits(tokens_per_minute=0, spend_per_day_pusd=MAX_AMOUNT, allowed_models=())
    await limits.set(kind, subject_id, new_limits)
    assert await limits.get(kind, subject_id) == new_limits
    caller = await repository.identify(made.key)
    assert [*caller.limits] == [new_limits.to_proto(kind, subject_id)]
    await limits.set(kind, subject_id, UsageLimits())
    assert (await repository.identify(made.key)).limits == ()


@pytest.mark.parametrize("kind", ACCOUNTS)
async def test_nothing_is_limited_that_is_not_there(
    keys: KeyAdministration, limits: LimitAdministration, kind: SubjectKind
) -> None:
    made = await keys.create(NewKey("ada"))
    others = {made.info.id, made.info.user_id} - {
        {"key": made.info.id, "user": made.info.user_id, "team": ""}[kind]
    }
    for unknown in {*UNKNOWN, *others}:
        with not_found("id"):
            await limits.get(kind, unknown)
        with not_found("id"):
            await limits.set(kind, unknown, UsageLimits(requests_per_minute=1))


async def test_a_deleted_user_s_keys_end_at_once(
    people: UserAdministration, keys: KeyAdministration, repository: AccountRepository
) -> None:
    made = [await keys.create(NewKey("ada", "lab")) for _ in range(2)]
    other = await keys.create(NewKey("bob", "lab"))
    ada = await people.named("ada")
    deleted = await people.delete(ada.id)
    assert deleted.user == ada
    assert deleted.key_ids == [one.info.id for one in made]
    for one in made:
        assert await repository.find_caller(hash_key(one.key)) is None
    assert (await repository.identify(other.key)).user_id != ada.id
    assert [key.id for key in await keys.page(9)] == [other.info.id]
    for user_id in (ada.id, *UNKNOWN):
        with not_found("user_id"):
            await people.delete(user_id)


async def test_who_takes_a_deleted_name_has_another_id(people: UserAdministration) -> None:
    first = await people.create("ada")
    await people.delete(first.id)
    assert (await people.create("ada")).id != first.id


async def test_limits_go_with_users_keys_and_teams(
    people: UserAdministration,
    teams: TeamAdministration,
    keys: KeyAdministration,
    limits: LimitAdministration,
    engine: AsyncEngine,
) -> None:
    key = (await keys.create(NewKey("ada", "lab"))).info
    other = (await keys.create(NewKey("bob"))).info
    for kind, subject in (
        (SubjectKind.KEY, key.id),
        (SubjectKind.USER, key.user_id),
        (SubjectKind.TEAM, key.team_id),
        (SubjectKind.KEY, other.id),
    ):
        await limits.set(kind, subject, UsageLimits(requests_per_minute=1))
    await people.delete(key.user_id)
    await teams.delete(key.team_id)
    async with reading(engine) as connection:
        left = (await connection.execute(select(limits_table.c.subject_id))).scalars().all()
    assert left == [other.id]


async def test_a_team_with_users_is_not_deleted(
    people: UserAdministration, teams: TeamAdministration
) -> None:
    ada = await people.create("ada", "lab")
    with conflict("team_id", "(1)"):
        await teams.delete(ada.team_id)
    assert (await teams.named("lab")).users == 1
    await people.update(ada.id, "")
    assert (await teams.delete(ada.team_id)).name == "lab"
    for team_id in (ada.team_id, *UNKNOWN):
        with not_found("team_id"):
            await teams.delete(team_id)


async def test_deletions_are_in_the_audit_log(
    people: UserAdministration, teams: TeamAdministration, keys: KeyAdministration, log: AuditLog
) -> None:
    key = (await keys.create(NewKey("ada", "lab"))).info
    await people.delete(key.user_id)
    await teams.delete(key.team_id)
    team, user, _ = (await log.page(AuditFilter(), 9)).entries
    assert (user.action, user.subject_id, user.after) == ("user.delete", key.user_id, "")
    assert json.loads(user.before)["key_ids"] == [key.id]
    assert (team.action, team.subject_id, team.after) == ("team.delete", key.team_id, "")
    assert json.loads(team.before)["name"] == "lab"
