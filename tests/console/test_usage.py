"""The page of usage: what is left of the caller's limits, and what was used."""

import pytest
from playwright.async_api import expect

from services.accounts.limits.repository import LimitRepository
from services.accounts.limits.rules import SubjectKind, UsageLimits
from services.accounts.repository import AccountRepository
from services.common.clock import Clock
from services.common.settings import Storage
from services.common.storage.database import open_engine
from tests.console.accessibility import serious_violations
from tests.console.conftest import opened

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_without_limits_it_says_so(browser, gateway):
    async with opened(browser, gateway, "/console/usage") as page:
        await expect(page.get_by_text("Nothing is limited")).to_be_visible()
        await expect(page.get_by_role("region", name="Used").get_by_role("row")).to_have_count(3)


async def test_limits_are_shown_with_what_is_left(browser, newcomer, gateway_folder):
    engine = open_engine(Storage(data_dir=gateway_folder))
    owner = await AccountRepository(engine).identify(newcomer.key)
    limits = UsageLimits(
        spend_per_week_pusd=2 * 10**12,
        soft_limit_percent=80,
        allowed_models=("sandbox/*",),
    )
    await LimitRepository(engine, Clock()).set(SubjectKind.USER, owner.user_id, limits)
    await engine.dispose()
    async with opened(browser, newcomer, "/console/usage") as page:
        row = page.get_by_role("region", name="Limits").get_by_role("row").nth(1)
        await expect(row).to_contain_text("Dollars a week: $2")
        await expect(page.get_by_text("Models of the user: sandbox/*")).to_be_visible()
        assert await serious_violations(page) == []
