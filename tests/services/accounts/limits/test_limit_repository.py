import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from services.accounts.limits.repository import LimitRepository, delete_end_user_limits
from services.accounts.limits.rules import ACCOUNTS, MAX_AMOUNT, SubjectKind, UsageLimits
from services.accounts.repository import AccountRepository
from services.common.clock import Clock
from services.common.labels import end_user_subject
from services.common.storage.database import writing

ALL = UsageLimits(
    requests_per_minute=1,
    tokens_per_minute=MAX_AMOUNT,
    concurrent_requests=3,
    spend_per_day_pusd=4_000_000_000_000,
    spend_per_month_pusd=0,
    allowed_models=("gpt-*", "claude-opus"),
)


@pytest.fixture
def limits(engine: AsyncEngine) -> LimitRepository:
    return LimitRepository(engine, Clock(now=lambda: 1_700_000_000.0))


async def test_limits_are_kept_replaced_and_removed(limits: LimitRepository) -> None:
    assert await limits.get(SubjectKind.USER, "user_1") is None
    for new_limits in (ALL, UsageLimits(concurrent_requests=1, allowed_models=())):
        await limits.set(SubjectKind.USER, "user_1", new_limits)
        assert await limits.get(SubjectKind.USER, "user_1") == new_limits
    await limits.set(SubjectKind.USER, "user_1", UsageLimits())
    assert await limits.get(SubjectKind.USER, "user_1") is None


async def test_subjects_of_other_kinds_and_ids_are_untouched(limits: LimitRepository) -> None:
    await limits.set(SubjectKind.KEY, "same", ALL)
    await limits.set(SubjectKind.TEAM, "same", UsageLimits(requests_per_minute=7))
    await limits.set(SubjectKind.KEY, "same", UsageLimits())
    assert await limits.get(SubjectKind.KEY, "same") is None
    assert await limits.get(SubjectKind.TEAM, "same") == UsageLimits(requests_per_minute=7)
    assert await limits.get(SubjectKind.TEAM, "other") is None


async def test_the_limits_of_a_caller_are_those_of_three_subjects(limits: LimitRepository) -> None:
    by_kind = {kind: UsageLimits(requests_per_minute=n) for n, kind in enumerate(ACCOUNTS)}
    for kind, of_kind in by_kind.items():
        await limits.set(kind, f"{kind}_1", of_kind)
        await limits.set(kind, f"{kind}_2", ALL)
    assert await limits.of_caller("key_1", "user_1", "team_1") == tuple(
        of_kind.to_proto(kind, f"{kind}_1") for kind, of_kind in by_kind.items()
    )
    [only] = await limits.of_caller("key_3", "user_2", "")
    assert only == ALL.to_proto(SubjectKind.USER, "user_2")
    assert await limits.of_caller("key_3", "user_3", "") == ()


async def test_a_key_is_identified_with_its_limits(
    repository: AccountRepository, limits: LimitRepository
) -> None:
    key = await repository.create_key("ada", "math")
    assert (await repository.identify(key)).limits == ()
    caller = await repository.identify(key)
    await limits.set(SubjectKind.TEAM, caller.team_id, ALL)
    await limits.set(SubjectKind.KEY, caller.key_id, UsageLimits(concurrent_requests=2))
    assert (await repository.identify(key)).limits == (
        UsageLimits(concurrent_requests=2).to_proto(SubjectKind.KEY, caller.key_id),
        ALL.to_proto(SubjectKind.TEAM, caller.team_id),
    )


async def test_limits_of_a_user_s_end_users_are_deleted(
    engine: AsyncEngine, limits: LimitRepository
) -> None:
    one = UsageLimits(requests_per_minute=1)
    for user_id in ("user_1", "user_12", "user.1"):
        await limits.set(SubjectKind.END_USERS, user_id, one)
        await limits.set(SubjectKind.END_USER, end_user_subject(user_id, "eve"), one)
    async with writing(engine) as connection:
        assert await delete_end_user_limits(connection, "user_1") == 2
    assert await limits.of_labels("user_1", {}, "eve") == ()
    for user_id in ("user_12", "user.1"):
        [own] = await limits.of_labels(user_id, {}, "eve")
        assert own.id == end_user_subject(user_id, "eve")
        [default] = await limits.of_labels(user_id, {"a": "b"}, "ada")
        assert default.id == end_user_subject(user_id, "ada")


async def test_limits_of_an_end_user_replace_the_default(limits: LimitRepository) -> None:
    own, default = UsageLimits(requests_per_minute=9), UsageLimits(requests_per_minute=1)
    await limits.set(SubjectKind.END_USERS, "user_1", default)
    await limits.set(SubjectKind.END_USER, end_user_subject("user_1", "eve"), own)
    for end_user, expected in (("eve", own), ("ada", default)):
        [one] = await limits.of_labels("user_1", {}, end_user)
        subject_id = end_user_subject("user_1", end_user)
        assert one == expected.to_proto(SubjectKind.END_USER, subject_id)
