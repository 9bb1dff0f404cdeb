"""The list of subjects that have limits."""

import pytest

from services.accounts.admin.key_rows import NewKey
from services.accounts.admin.keys import KeyAdministration
from services.accounts.admin.limited_subjects import LimitedSubjects
from services.accounts.admin.limits import LimitAdministration
from services.accounts.limits.rules import SubjectKind, UsageLimits
from services.accounts.repository import AccountRepository
from services.common.clock import Clock
from services.common.errors import GatewayError

DOLLAR = 10**12


async def test_all_subjects_are_listed_in_pages(engine) -> None:
    accounts = AccountRepository(engine)
    created = await KeyAdministration(engine).create(NewKey("ada", "lab", name="ci"))
    owner = await accounts.identify(created.key)
    administration = LimitAdministration(engine)
    budget = UsageLimits(spend_per_month_pusd=5 * DOLLAR)
    subjects = {
        (SubjectKind.KEY, owner.key_id): "ci",
        (SubjectKind.USER, owner.user_id): "ada",
        (SubjectKind.TEAM, owner.team_id): "lab",
        (SubjectKind.TAG, "project=alpha"): "project=alpha",
        (SubjectKind.END_USER, f"{owner.user_id}/eve"): "eve",
        (SubjectKind.END_USERS, owner.user_id): "ada",
    }
    for kind, subject_id in subjects:
        await administration.set(kind, subject_id, budget)

    listed = LimitedSubjects(engine, Clock())
    pages, token = [], ""
    while True:
        page, token = await listed.page(4, token)
        pages.append(page)
        if not token:
            break
    assert [len(page) for page in pages] == [4, 2]
    found = [one for page in pages for one in page]
    kinds = [SubjectKind.of_proto(one.limits.kind) for one in found]
    assert kinds == sorted(kinds)
    assert {
        (kind, one.limits.id): one.name for kind, one in zip(kinds, found, strict=True)
    } == subjects
    for kind, one in zip(kinds, found, strict=True):
        assert one.limits.spend_per_month_pusd == 5 * DOLLAR
        states = [(state.id, state.limit) for state in one.usage]
        expected = [] if kind == SubjectKind.END_USERS else [(one.limits.id, 5 * DOLLAR)]
        assert states == expected
    for token in ("x", "key", "key/", "none/a", "key/\0"):
        with pytest.raises(GatewayError):
            await listed.page(1, token)
