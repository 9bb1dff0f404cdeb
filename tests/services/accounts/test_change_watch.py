"""Changes that were made elsewhere, and the caches that know of them."""

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from services.accounts.admin.admin_keys import AdminKeyRepository
from services.accounts.admin.audit import FIRST_START, Subject, record
from services.accounts.admin.authentication import AdminAuthenticator
from services.accounts.admin.key_rows import NewKey
from services.accounts.admin.keys import KeyAdministration, KeyChanges
from services.accounts.admin.limits import LimitAdministration
from services.accounts.admin.model_groups import ModelGroupAdministration
from services.accounts.admin.teams import TeamAdministration
from services.accounts.admin.users import UserAdministration
from services.accounts.change_watch import ChangeWatch
from services.accounts.limits.rules import SubjectKind, UsageLimits
from services.accounts.repository import AccountRepository
from services.common import ids
from services.common.errors import GatewayError, unavailable
from services.common.grpc.authentication import CachingAuthenticator
from services.common.storage.database import writing
from tests.manual_clock import ManualClock


@pytest.fixture
def callers(repository: AccountRepository, clock: ManualClock) -> CachingAuthenticator:
    return CachingAuthenticator(repository.identify, ttl_s=30, monotonic=clock.monotonic)


@pytest.fixture
def admins(engine: AsyncEngine, clock: ManualClock) -> AdminAuthenticator:
    return AdminAuthenticator(
        {}, AdminKeyRepository(engine, clock).valid_keys, ttl_s=30, monotonic=clock.monotonic
    )


@pytest.fixture
def watch(
    engine: AsyncEngine,
    clock: ManualClock,
    callers: CachingAuthenticator,
    admins: AdminAuthenticator,
    readings: list[str],
) -> ChangeWatch:
    async def read_providers() -> None:
        readings.append("read")
        if len(readings) == 1:
            raise unavailable("no database")

    return ChangeWatch(engine, clock, callers, admins, lambda: True, read_providers)


@pytest.fixture
def readings() -> list[str]:
    """Return the readings of the stored providers, of which the first fails."""
    return []


async def test_changed_providers_are_read_until_that_succeeds(
    engine: AsyncEngine, clock: ManualClock, watch: ChangeWatch, readings: list[str]
) -> None:
    await watch.check()
    assert readings == []
    async with writing(engine) as connection:
        subject = Subject("provider", "acme")
        await record(connection, clock, ids.new_id, FIRST_START, "provider.create", subject)
    with pytest.raises(GatewayError):
        await watch.check()
    await watch.check()
    await watch.check()
    assert readings == ["read", "read"]


async def is_open(callers: CachingAuthenticator, key: str) -> bool:
    try:
        await callers(key)
    except GatewayError:
        return False
    return True


@pytest.mark.parametrize("change", ["revoke", "disable", "delete"])
async def test_a_key_that_was_changed_ends(
    change: str,
    watch: ChangeWatch,
    callers: CachingAuthenticator,
    keys: KeyAdministration,
    people: UserAdministration,
) -> None:
    made = await keys.create(NewKey("ada"))
    other = await keys.create(NewKey("bob"))
    await watch.check()
    assert await is_open(callers, made.key) and await is_open(callers, other.key)
    if change == "revoke":
        await keys.revoke(made.info.id)
    elif change == "disable":
        await keys.update(made.info.id, KeyChanges(disabled=True))
    else:
        await people.delete(made.info.user_id)
    assert await is_open(callers, made.key)  # as it is remembered
    await watch.check()
    assert not await is_open(callers, made.key)
    assert await is_open(callers, other.key)


async def test_new_limits_and_teams_count(
    watch: ChangeWatch,
    callers: CachingAuthenticator,
    keys: KeyAdministration,
    people: UserAdministration,
    engine: AsyncEngine,
    clock: ManualClock,
) -> None:
    made = await keys.create(NewKey("ada"))
    await callers(made.key)
    team = await TeamAdministration(engine, clock).create("lab", "team_pro")
    await people.update(made.info.user_id, "lab")
    await watch.check()
    assert (await callers(made.key)).team_id == team.id
    limits = LimitAdministration(engine, clock)
    await limits.set(SubjectKind.TEAM, team.id, UsageLimits(requests_per_minute=5))
    await watch.check()
    assert [one.requests_per_minute for one in (await callers(made.key)).limits] == [5]


async def test_a_changed_model_group_counts(
    watch: ChangeWatch,
    callers: CachingAuthenticator,
    keys: KeyAdministration,
    engine: AsyncEngine,
    clock: ManualClock,
) -> None:
    made = await keys.create(NewKey("ada"))
    groups = ModelGroupAdministration(engine, clock)
    await groups.set("cheap", ["small"])
    limits = UsageLimits(allowed_models=("own",), allowed_model_groups=("cheap",))
    await LimitAdministration(engine, clock).set(SubjectKind.KEY, made.info.id, limits)
    await watch.check()
    for models in (["small"], ["own", "tiny-*"]):
        await groups.set("cheap", models)
        await watch.check()
        [one] = (await callers(made.key)).limits
        assert {*one.allowed_models.patterns} == {"own", *models}
        assert len(one.allowed_models.patterns) == 2


async def test_entries_that_come_late_count_and_once(
    watch: ChangeWatch,
    callers: CachingAuthenticator,
    keys: KeyAdministration,
    clock: ManualClock,
) -> None:
    made = await keys.create(NewKey("ada"))
    clock.now_s += 50
    await watch.check()
    await callers(made.key)
    # A machine whose clock is late, or a transaction that took long.
    clock.now_s -= 40
    await keys.revoke(made.info.id)
    clock.now_s += 40
    await watch.check()
    assert not await is_open(callers, made.key)


async def test_what_is_known_stays_so_without_changes(
    watch: ChangeWatch, callers: CachingAuthenticator, keys: KeyAdministration
) -> None:
    made = await keys.create(NewKey("ada"))
    await watch.check()
    cached = await callers(made.key)
    await watch.check()
    assert await callers(made.key) is cached


async def test_a_new_key_in_use_stays_known(
    watch: ChangeWatch, callers: CachingAuthenticator, keys: KeyAdministration
) -> None:
    made = await keys.create(NewKey("ada"))
    cached = await callers(made.key)
    await watch.check()
    assert await callers(made.key) is cached


async def test_a_revoked_admin_key_ends(
    watch: ChangeWatch, admins: AdminAuthenticator, engine: AsyncEngine, clock: ManualClock
) -> None:
    stored = AdminKeyRepository(engine, clock)
    key, stays = await stored.create("ops"), await stored.create("other")
    first = (await stored.list_all())[0]
    assert (await admins(f"Bearer {key}")).key_id == first.id
    await stored.revoke(first.id)
    assert (await admins(f"Bearer {key}")).key_id == first.id
    assert admins.is_in_use
    await watch.check()
    with pytest.raises(GatewayError):
        await admins(f"Bearer {key}")
    await admins(f"Bearer {stays}")
