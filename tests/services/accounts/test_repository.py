"""Acceptance suite of the storage of accounts; run on SQLite and on PostgreSQL."""

import asyncio

import pytest
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.accounts.v1 import accounts_pb2, admin_pb2
from gateway.accounts.v1.admin_pb2 import ApiKey
from services.accounts.admin.keys import KeyAdministration
from services.accounts.admin.users import UserAdministration
from services.accounts.keys import hash_key, make_key
from services.accounts.repository import AccountRepository
from services.accounts.tables import api_keys, teams, users
from services.common.grpc.authentication import Caller
from services.common.storage.database import reading
from tests.manual_clock import ManualClock
from tests.services.accounts.expected_errors import invalid


async def _caller(repository: AccountRepository, key: str) -> Caller:
    caller = await repository.find_caller(hash_key(key))
    assert caller is not None
    return caller


async def _revoke(keys: KeyAdministration, which: str) -> ApiKey:
    return await keys.revoke((await keys.find(which)).id)


async def test_a_new_user_has_the_free_plan_and_no_team(
    repository: AccountRepository, keys: KeyAdministration
) -> None:
    caller = await _caller(repository, await repository.create_key("ada"))
    (key,) = await keys.page(100)
    assert caller == Caller("user_000", "", accounts_pb2.PLAN_PERSONAL_FREE)
    assert caller.key_id == key.id


async def test_a_plan_is_the_users_where_there_is_no_team(repository: AccountRepository) -> None:
    caller = await _caller(repository, await repository.create_key("ada", plan="personal_pro"))
    assert caller.plan == accounts_pb2.PLAN_PERSONAL_PRO


async def test_a_plan_is_the_teams_where_there_is_one(repository: AccountRepository) -> None:
    ada = await _caller(repository, await repository.create_key("ada", "math", "team_pro"))
    bob = await _caller(repository, await repository.create_key("bob", "math"))
    assert ada.team_id == bob.team_id != ""
    assert ada.user_id != bob.user_id
    assert ada.plan == bob.plan == accounts_pb2.PLAN_TEAM_PRO


async def test_a_user_may_have_many_keys(repository: AccountRepository) -> None:
    keys = [
        await repository.create_key("ada", "math", "enterprise"),
        await repository.create_key("ada"),
        await repository.create_key("ada", "math"),
        await repository.create_key("ada", plan="enterprise"),
    ]
    assert len(set(keys)) == 4
    assert len({await _caller(repository, key) for key in keys}) == 1


async def test_only_the_hash_of_a_key_is_kept(
    repository: AccountRepository, engine: AsyncEngine
) -> None:
    key = await repository.create_key("ada")
    assert key == make_key(bytes(32))
    async with reading(engine) as connection:
        row = (await connection.execute(select(api_keys))).one()
    assert row.hash == hash_key(key)
    assert key[len(row.prefix) :] not in repr(row)


async def test_an_unknown_key_belongs_to_nobody(repository: AccountRepository) -> None:
    await repository.create_key("ada")
    assert await repository.find_caller(hash_key(make_key(b"\xff" * 32))) is None


async def test_another_team_for_a_known_user_isinvalid(repository: AccountRepository) -> None:
    await repository.create_key("ada", "math")
    with invalid("team", "'ada' is in team 'math'", "users set"):
        await repository.create_key("ada", "chess")
    await repository.create_key("bob")
    with invalid("team", "'bob' is not in a team", "users set"):
        await repository.create_key("bob", "math")


async def test_another_plan_for_a_known_user_isinvalid(repository: AccountRepository) -> None:
    await repository.create_key("ada")
    with invalid("plan", "'ada' has the plan personal_free", "users set"):
        await repository.create_key("ada", plan="personal_pro")


async def test_another_plan_for_a_known_team_isinvalid(repository: AccountRepository) -> None:
    await repository.create_key("ada", "math", "team_pro")
    with invalid("plan", "'math' has the plan team_pro", "users set"):
        await repository.create_key("bob", "math", "enterprise")
    with invalid("plan", "'ada' has the plan team_pro", "users set"):
        await repository.create_key("ada", plan="enterprise")


async def test_a_refused_key_leaves_nothing_behind(
    repository: AccountRepository, engine: AsyncEngine
) -> None:
    await repository.create_key("ada", "math", "team_pro")
    with invalid("plan"):
        await repository.create_key("bob", "math", "enterprise")
    async with reading(engine) as connection:
        assert list(await connection.scalars(select(users.c.name))) == ["ada"]
        assert len(list(await connection.scalars(select(api_keys.c.id)))) == 1


@pytest.mark.parametrize(
    "name", ["", " ", "a b", "-a", ".a", "a/b", "a\n", "é", "a" * 65, "x'; DROP TABLE users"]
)
async def test_names_outside_the_rules_areinvalid(repository: AccountRepository, name: str) -> None:
    with invalid("user", "1 to 64"):
        await repository.create_key(name)
    with invalid("team", "1 to 64"):
        await repository.create_key("ada", name)


@pytest.mark.parametrize("name", ["a", "7", "a" * 64, "ada.lovelace+test@example.com", "A_b-c"])
async def test_names_within_the_rules_are_taken(
    repository: AccountRepository, keys: KeyAdministration, name: str
) -> None:
    await repository.create_key(name, name)
    assert [(key.user, key.team) for key in await keys.page(100)] == [(name, name)]


async def test_an_unknown_plan_is_refused_with_those_there_are(
    repository: AccountRepository,
) -> None:
    with invalid("plan", "personal_free, personal_pro, team_pro, enterprise"):
        await repository.create_key("ada", plan="gold")


async def test_keys_are_listed_oldest_first(
    repository: AccountRepository, keys: KeyAdministration, clock: ManualClock
) -> None:
    await repository.create_key("ada", "math", "team_pro")
    clock.now_s += 1.5
    await repository.create_key("bob")
    assert await keys.page(100) == [
        ApiKey(
            id="key_002",
            prefix="gw-AAAAAA",
            user="ada",
            user_id="user_001",
            team="math",
            team_id="team_000",
            plan=accounts_pb2.PLAN_TEAM_PRO,
            created_at_ms=1_700_000_000_000,
            state=admin_pb2.KEY_STATE_ACTIVE,
        ),
        ApiKey(
            id="key_004",
            prefix="gw-AQEBAQ",
            user="bob",
            user_id="user_003",
            plan=accounts_pb2.PLAN_PERSONAL_FREE,
            created_at_ms=1_700_000_001_500,
            state=admin_pb2.KEY_STATE_ACTIVE,
        ),
    ]


@pytest.mark.parametrize("how", ["id", "prefix", "key"])
async def test_a_revoked_key_belongs_to_nobody(
    repository: AccountRepository, keys: KeyAdministration, how: str
) -> None:
    key = await repository.create_key("ada")
    other_key = await repository.create_key("ada")
    info = (await keys.page(100))[0]
    await _revoke(keys, key if how == "key" else getattr(info, how))
    assert await repository.find_caller(hash_key(key)) is None
    assert await repository.find_caller(hash_key(other_key)) is not None


async def test_revoking_again_keeps_the_first_time(
    repository: AccountRepository, keys: KeyAdministration, clock: ManualClock
) -> None:
    key = await repository.create_key("ada")
    first = await _revoke(keys, key)
    assert first.revoked_at_ms == 1_700_000_000_000
    clock.now_s += 60
    assert await _revoke(keys, key) == first


async def test_revoking_what_is_unknown_isinvalid(
    repository: AccountRepository, keys: KeyAdministration
) -> None:
    await repository.create_key("ada")
    for which in ("", "gw-", "gw-AAAA", "key_999", "ada", make_key(b"\xff" * 32)):
        with invalid("key", "keys list"):
            await _revoke(keys, which)


async def test_a_prefix_of_several_keys_is_refused_with_their_ids(
    engine: AsyncEngine, keys: KeyAdministration
) -> None:
    ends = iter([b"\x00", b"\x01"])
    repository = AccountRepository(engine, random_bytes=lambda size: bytes(31) + next(ends))
    made = [await repository.create_key("ada") for _ in range(2)]
    infos = await keys.page(100)
    with invalid("key", infos[0].id, infos[1].id):
        await _revoke(keys, infos[0].prefix)
    for key in made:
        assert await repository.find_caller(hash_key(key)) is not None


async def test_a_user_moves_to_a_team_and_out_of_it(
    repository: AccountRepository, people: UserAdministration
) -> None:
    key = await repository.create_key("ada", plan="personal_pro")
    await repository.create_key("bob", "math", "team_pro")
    await people.set("ada", team="math")
    moved = await _caller(repository, key)
    assert moved.team_id != ""
    assert moved.plan == accounts_pb2.PLAN_TEAM_PRO
    await people.set("ada", team="")
    assert await _caller(repository, key) == Caller(
        moved.user_id, "", accounts_pb2.PLAN_PERSONAL_PRO
    )


async def test_a_user_moves_to_a_new_team_with_a_plan(
    repository: AccountRepository, people: UserAdministration, engine: AsyncEngine
) -> None:
    key = await repository.create_key("ada")
    await people.set("ada", team="chess", plan="enterprise")
    assert (await _caller(repository, key)).plan == accounts_pb2.PLAN_ENTERPRISE
    async with reading(engine) as connection:
        assert list(await connection.scalars(select(teams.c.plan))) == ["enterprise"]
        assert list(await connection.scalars(select(users.c.plan))) == ["personal_free"]


async def test_a_plan_set_for_a_member_is_the_whole_teams(
    repository: AccountRepository, people: UserAdministration
) -> None:
    await repository.create_key("ada", "math")
    bobs = await repository.create_key("bob", "math")
    await people.set("ada", plan="enterprise")
    assert (await _caller(repository, bobs)).plan == accounts_pb2.PLAN_ENTERPRISE


async def test_a_plan_set_for_one_user_is_nobody_elses(
    repository: AccountRepository, people: UserAdministration
) -> None:
    adas = await repository.create_key("ada")
    bobs = await repository.create_key("bob")
    await people.set("ada", plan="enterprise")
    assert (await _caller(repository, adas)).plan == accounts_pb2.PLAN_ENTERPRISE
    assert (await _caller(repository, bobs)).plan == accounts_pb2.PLAN_PERSONAL_FREE


async def test_setting_needs_a_known_user_and_something_to_set(
    repository: AccountRepository,
    people: UserAdministration,
) -> None:
    with invalid("user", "'ada'", "keys create"):
        await people.set("ada", plan="enterprise")
    with invalid("team", "at least one"):
        await people.set("ada")
    with invalid("team", "1 to 64"):
        await people.set("ada", team="a b")


async def test_keys_made_at_once_for_a_new_user_share_that_user(engine: AsyncEngine) -> None:
    repository = AccountRepository(engine)
    keys = await asyncio.gather(*(repository.create_key("ada", "math") for _ in range(8)))
    assert len({await _caller(repository, key) for key in keys}) == 1


async def test_the_first_key_is_made_once_alone(engine: AsyncEngine) -> None:
    repository = AccountRepository(engine)
    stored_keys: list[str] = []

    async def keep(key: str) -> None:
        stored_keys.append(key)

    created_keys = await asyncio.gather(
        *(repository.create_first_key("dev", "enterprise", keep) for _ in range(4))
    )
    assert [key for key in created_keys if key] == stored_keys
    assert len(stored_keys) == 1
    assert (await _caller(repository, stored_keys[0])).plan == accounts_pb2.PLAN_ENTERPRISE


async def test_a_first_key_that_cannot_be_kept_was_never_made(
    repository: AccountRepository,
    keys: KeyAdministration,
) -> None:
    async def keep(key: str) -> None:
        raise PermissionError

    with pytest.raises(PermissionError):
        await repository.create_first_key("dev", "enterprise", keep)
    assert await keys.page(100) == []
