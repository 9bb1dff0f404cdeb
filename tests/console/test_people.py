"""The page of people and keys: users, teams, keys, their limits, and the log of changes."""

import re

import pytest
import pytest_asyncio
from playwright.async_api import Locator, Page, expect

from services.accounts.admin.admin_keys import make_admin_key
from tests.console.accessibility import serious_violations, serious_violations_in_the_dark
from tests.console.conftest import opened
from tests.console.used_gateway import ADMIN_KEY, admin, opened_by_administrator

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest_asyncio.fixture(loop_scope="session")
async def people(browser, used_gateway):
    async with opened_by_administrator(browser, used_gateway, "/console/people") as page:
        yield page


async def confirm(card: Locator, label: str) -> None:
    await card.get_by_role("button", name=label).first.click()
    await card.page.get_by_role("dialog").get_by_role("button", name=label).click()


async def test_a_wrong_admin_key_is_asked_for_again(browser, used_gateway):
    async with opened(browser, used_gateway, "/console/people") as page:
        await page.get_by_label("Admin key").fill(make_admin_key(b"\x01" * 32))
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("alert").first).to_contain_text("key")
        await page.get_by_label("Admin key").fill(ADMIN_KEY)
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("list", name="Keys")).to_be_visible()


async def status_of(gateway, key: str) -> int:
    address = f"{gateway.url}/beta/v1/models"
    headers = {"Authorization": f"Bearer {key}"}
    async with gateway.http.get(address, headers=headers) as answer:
        return answer.status


async def test_a_key_is_made_rotated_disabled_and_revoked(people: Page, used_gateway):
    form = people.get_by_role("form", name="Create key")
    await form.get_by_label("User").fill("grace")
    await form.get_by_label("Name").fill("laptop")
    await form.get_by_label("Expires").fill("2099-01-02T03:04")
    await form.get_by_role("button", name="Create key").click()
    secret = people.locator(".secret")
    key = await secret.locator("code").inner_text()
    assert re.fullmatch(r"gw-[\w-]{43}", key)
    assert await status_of(used_gateway, key) == 200
    cards = people.get_by_role("article", name="laptop")
    await expect(cards).to_contain_text("expires Jan 2, 2099")
    await confirm(cards, "Rotate")
    await expect(cards).to_have_count(2)
    assert await secret.locator("code").inner_text() != key
    await secret.get_by_role("button", name="I have copied it").click()
    await expect(secret).to_have_count(0)
    await cards.last.get_by_role("button", name="Disable").click()
    await expect(cards.last).to_contain_text("disabled")
    await confirm(cards.first, "Revoke")
    await expect(cards.first).to_contain_text("revoked")
    assert key not in await people.content()


async def test_users_and_teams_are_made_moved_and_deleted(people: Page, used_gateway):
    await people.get_by_role("button", name="Teams").click()
    form = people.get_by_role("form", name="Add team")
    await form.get_by_label("Name").fill("lab")
    await form.get_by_label("Plan").select_option("team_pro")
    await form.get_by_role("button", name="Add team").click()
    team = people.get_by_role("article", name="lab")
    await expect(team).to_contain_text("0 users")
    await team.get_by_role("button", name="Limits").click()
    limits = team.get_by_role("form", name="Limits", exact=True)
    await limits.get_by_label("Dollars a month").fill("lots")
    await limits.get_by_role("button", name="Save limits").click()
    await expect(limits.get_by_role("alert")).to_contain_text("spend_per_month")
    await limits.get_by_label("Dollars a month").fill("12.50")
    await limits.get_by_label("Percent of a budget").fill("80")
    await limits.get_by_label("Models").first.fill("dear\ngpt-*")
    await limits.get_by_role("button", name="Save limits").click()
    await expect(limits.get_by_role("status")).to_contain_text("Saved")
    [lab] = (await admin(used_gateway, "teams", name="lab"))["data"]
    stored = await admin(used_gateway, f"teams/{lab['id']}/limits")
    assert (stored["spend_per_month"], stored["soft_limit_percent"]) == ("12.5", 80)
    assert stored["allowed_models"] == ["dear", "gpt-*"]

    budget = team.get_by_role("form", name="Budget", exact=True)
    await budget.get_by_label("Dollars to add").fill("2.25")
    await budget.get_by_role("button", name="Top up").click()
    await expect(budget.get_by_role("status")).to_contain_text("Added")
    state = team.get_by_role("row").filter(has_text="Dollars a month")
    await expect(state).to_contain_text("$14.75")
    await confirm(budget, "Reset")
    await expect(budget.get_by_role("status")).to_contain_text("counted from 0 on")

    await people.get_by_role("button", name="Users").click()
    form = people.get_by_role("form", name="Add user")
    await form.get_by_label("Name").fill("hedy")
    await form.get_by_role("button", name="Add user").click()
    await people.get_by_role("searchbox", name="Find a user by name").fill("hedy")
    await people.keyboard.press("Enter")
    user = people.get_by_role("article", name="hedy")
    await user.get_by_role("button", name="Team").click()
    await user.get_by_label("Team (empty for none)").fill("lab")
    await people.keyboard.press("Enter")
    await expect(user).to_contain_text("in lab")
    assert await serious_violations(people) == []
    await confirm(user, "Delete")
    await expect(people.get_by_text("No user has the name hedy")).to_be_visible()

    await people.get_by_role("button", name="Audit log").click()
    await people.get_by_label("Changes of").select_option("team")
    rows = people.get_by_role("region", name="Audit log").locator("tbody tr")
    await expect(rows.filter(has_text="budget.top_up")).to_contain_text("$14.75")
    await expect(rows.filter(has_text="limits.set")).to_contain_text("$12.50")
    await people.set_viewport_size({"width": 390, "height": 800})
    assert await serious_violations(people) == []
    assert await serious_violations_in_the_dark(people) == []
    assert await people.evaluate("document.documentElement.scrollWidth") <= 390


async def test_limits_of_tags_and_end_users_are_set(people: Page, used_gateway):
    await people.get_by_role("button", name="Limits", exact=True).click()
    section = people.get_by_role("region", name="Limits and budgets")
    subject = section.get_by_role("form", name="Subject")
    [tester] = (await admin(used_gateway, "users", name="tester"))["data"]
    of_user = f"users/{tester['id']}"
    rows = [
        ("tag", {"Key of the tag": "project", "Value": "alpha"}, "tags/project/alpha/limits"),
        (
            "end_user",
            {"User": "tester", "End user": "eve/b"},
            f"{of_user}/end-users/eve%2Fb/limits",
        ),
    ]
    for number, (kind, fields, path) in enumerate(rows):
        await subject.get_by_role("combobox", name="Of", exact=True).select_option(kind)
        for label, value in fields.items():
            await subject.get_by_label(label, exact=True).fill(value)
        await subject.get_by_role("button", name="Show").click()
        form = section.get_by_role("form", name="Limits", exact=True)
        await form.get_by_label("Dollars a month").fill(f"{number + 1000}.5")
        await form.get_by_role("button", name="Save limits").click()
        await expect(form.get_by_role("status")).to_contain_text("Saved")
        assert (await admin(used_gateway, path))["spend_per_month"] == f"{number + 1000}.5"
    await subject.get_by_role("combobox", name="Of", exact=True).select_option("end_users")
    await subject.get_by_label("User", exact=True).fill("nobody")
    await subject.get_by_role("button", name="Show").click()
    await expect(section.get_by_role("alert")).to_contain_text("nobody")
    await people.reload()
    bars = people.get_by_role("list", name="All limits")
    await expect(bars).to_contain_text("tag project=alpha · Dollars a month")
    await expect(bars).to_contain_text("end user eve/b · Dollars a month")
