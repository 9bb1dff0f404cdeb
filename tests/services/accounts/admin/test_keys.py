"""Administration of keys, on SQLite and on PostgreSQL."""

import asyncio

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.accounts.v1 import admin_pb2
from services.accounts.admin.key_rows import NewKey
from services.accounts.admin.keys import MAX_GRACE_S, KeyAdministration, KeyChanges
from services.accounts.admin.limits import LimitAdministration
from services.accounts.keys import hash_key
from services.accounts.limits.rules import SubjectKind, UsageLimits
from services.accounts.repository import AccountRepository
from services.common.errors import GatewayError
from tests.manual_clock import ManualClock
from tests.services.accounts.expected_errors import conflict, invalid, not_found

UNKNOWN = ("", "key_999", "ada", "key_000'; DROP TABLE users", "a\0b", "é")


async def is_valid(repository: AccountRepository, key: str) -> bool:
    return await repository.find_caller(hash_key(key)) is not None


def now_ms(clock: ManualClock) -> int:
    return int(1000 * clock.now_s)


async def test_a_key_is_valid_until_it_expires(
    repository: AccountRepository, keys: KeyAdministration, clock: ManualClock
) -> None:
    made = await keys.create(NewKey("ada", expires_at_ms=now_ms(clock) + 5000))
    assert made.info.state == admin_pb2.KEY_STATE_ACTIVE
    clock.now_s += 4.9
    assert await is_valid(repository, made.key)
    clock.now_s += 0.1
    assert not await is_valid(repository, made.key)
    assert (await keys.get(made.info.id)).state == admin_pb2.KEY_STATE_EXPIRED


async def test_an_expiry_is_in_the_future(keys: KeyAdministration, clock: ManualClock) -> None:
    made = await keys.create(NewKey("ada"))
    for at_ms in (-1, 1, now_ms(clock), 1 << 60):
        with invalid("expires_at_ms", "future"):
            await keys.create(NewKey("ada", expires_at_ms=at_ms))
        with invalid("expires_at_ms", "future"):
            await keys.update(made.info.id, KeyChanges(expires_at_ms=at_ms))


async def test_an_expired_key_is_valid_again_without_an_expiry(
    repository: AccountRepository, keys: KeyAdministration, clock: ManualClock
) -> None:
    made = await keys.create(NewKey("ada", expires_at_ms=now_ms(clock) + 1))
    clock.now_s += 1
    changed = await keys.update(made.info.id, KeyChanges(expires_at_ms=0))
    assert not changed.HasField("expires_at_ms")
    assert await is_valid(repository, made.key)


async def test_a_disabled_key_is_valid_once_it_is_enabled(
    repository: AccountRepository, keys: KeyAdministration
) -> None:
    made = await keys.create(NewKey("ada"))
    disabled = await keys.update(made.info.id, KeyChanges(disabled=True))
    assert disabled.state == admin_pb2.KEY_STATE_DISABLED
    assert not await is_valid(repository, made.key)
    assert await keys.update(made.info.id, KeyChanges(disabled=False)) == made.info
    assert await is_valid(repository, made.key)


async def test_what_is_not_changed_stays(keys: KeyAdministration, clock: ManualClock) -> None:
    made = await keys.create(NewKey("ada", name="ci", expires_at_ms=now_ms(clock) + 9000))
    changed = await keys.update(made.info.id, KeyChanges(name="cd"))
    made.info.name = "cd"
    assert changed == made.info
    with invalid("name", "at least one"):
        await keys.update(made.info.id, KeyChanges())


@pytest.mark.parametrize("name", ["a" * 129, "a\nb", "a\0b"])
async def test_names_of_keys_are_printable_and_short(keys: KeyAdministration, name: str) -> None:
    made = await keys.create(NewKey("ada", name="n" * 128))
    with invalid("name", "printable"):
        await keys.create(NewKey("ada", name=name))
    with invalid("name", "printable"):
        await keys.update(made.info.id, KeyChanges(name=name))


async def test_a_revoked_key_is_not_changed(keys: KeyAdministration) -> None:
    made = await keys.create(NewKey("ada"))
    await keys.revoke(made.info.id)
    with conflict("key_id", "revoked"):
        await keys.update(made.info.id, KeyChanges(disabled=False))
    with conflict("key_id", "valid"):
        await keys.rotate(made.info.id)


async def test_keys_that_are_not_there_are_not_found(keys: KeyAdministration) -> None:
    await keys.create(NewKey("ada"))
    for key_id in UNKNOWN:
        with not_found("key_id"):
            await keys.get(key_id)
        with not_found("key_id"):
            await keys.update(key_id, KeyChanges(name="x"))
        with not_found("key_id"):
            await keys.revoke(key_id)
        with not_found("key_id"):
            await keys.rotate(key_id)


async def test_both_keys_are_valid_for_the_grace_time(
    repository: AccountRepository, keys: KeyAdministration, clock: ManualClock
) -> None:
    old = await keys.create(NewKey("ada", "lab", name="ci"))
    new = await keys.rotate(old.info.id, 60)
    assert new.replaced.expires_at_ms == now_ms(clock) + 60_000
    assert (new.info.user, new.info.team, new.info.name) == ("ada", "lab", "ci")
    assert new.info.replaces == old.info.id
    assert not new.info.HasField("expires_at_ms")
    clock.now_s += 59
    assert await is_valid(repository, old.key) and await is_valid(repository, new.key)
    clock.now_s += 1
    assert not await is_valid(repository, old.key)
    assert await is_valid(repository, new.key)


async def test_a_rotated_key_expires_no_later_than_before(
    keys: KeyAdministration, clock: ManualClock
) -> None:
    soon = now_ms(clock) + 10_000
    old = await keys.create(NewKey("ada", expires_at_ms=soon))
    new = await keys.rotate(old.info.id, 60)
    assert new.replaced.expires_at_ms == new.info.expires_at_ms == soon


async def test_without_a_grace_time_the_old_key_ends_at_once(
    repository: AccountRepository, keys: KeyAdministration
) -> None:
    old = await keys.create(NewKey("ada"))
    new = await keys.rotate(old.info.id, 0)
    assert new.replaced.state == admin_pb2.KEY_STATE_EXPIRED
    assert not await is_valid(repository, old.key)


async def test_a_new_key_has_the_limits_of_the_old_one(
    keys: KeyAdministration, limits: LimitAdministration
) -> None:
    old = await keys.create(NewKey("ada"))
    own_limits = UsageLimits(requests_per_minute=7, allowed_models=("gpt-*",))
    await limits.set(SubjectKind.KEY, old.info.id, own_limits)
    new = await keys.rotate(old.info.id)
    for key_id in (old.info.id, new.info.id):
        assert await limits.get(SubjectKind.KEY, key_id) == own_limits


async def test_a_grace_time_is_bounded(keys: KeyAdministration) -> None:
    made = await keys.create(NewKey("ada"))
    for grace_s in (-1, MAX_GRACE_S + 1):
        with invalid("grace_s", "seconds"):
            await keys.rotate(made.info.id, grace_s)


async def test_a_key_is_rotated_once_however_many_ask(engine: AsyncEngine) -> None:
    keys = KeyAdministration(engine)
    made = await keys.create(NewKey("ada"))
    outcomes = await asyncio.gather(
        *(keys.rotate(made.info.id) for _ in range(5)), return_exceptions=True
    )
    refused = [outcome for outcome in outcomes if isinstance(outcome, GatewayError)]
    assert [error.code for error in refused] == ["conflict"] * 4
    assert len(await keys.page(10)) == 2


async def test_keys_are_listed_page_by_page(keys: KeyAdministration) -> None:
    for user, team in (("ada", "lab"), ("bob", None), ("eve", "lab"), ("ada", None)):
        await keys.create(NewKey(user, team))
    first = await keys.page(2)
    assert [key.user for key in first] == ["ada", "bob"]
    second_page = await keys.page(9, first[-1].id)
    assert [key.user for key in second_page] == ["eve", "ada"]
    assert [key.user for key in await keys.page(9, user="ada")] == ["ada", "ada"]
    assert [key.user for key in await keys.page(9, team="lab")] == ["ada", "eve", "ada"]
