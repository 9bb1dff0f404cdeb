"""The page of operations: providers, activity, keys and limits."""

import re
import time

import pytest
import pytest_asyncio
from playwright.async_api import Locator, Page, expect

from services.accounts.admin.admin_keys import hash_admin_key, make_admin_key
from services.common.clock import Clock
from tests.console.accessibility import serious_violations, serious_violations_in_the_dark
from tests.console.conftest import opened
from tests.gateway_in_process import Gateway, running_gateway
from tests.manual_clock import ManualClock
from tests.waiting import until

pytestmark = pytest.mark.asyncio(loop_scope="session")

ADMIN_KEY = make_admin_key(bytes(32))
PRICE = {"input": 0, "output": 0, "request": 250}
SECTIONS = {
    "admin": {"key_sha256": hash_admin_key(ADMIN_KEY).hex()},
    "usage": {"write_every_s": 0.05, "tags": ["project"], "end_users": True},
    "limits": {"breaker_failures": 1},
    "models": [
        {"name": name, "provider": "openai", "upstream": upstream, "price": PRICE}
        for name, upstream in (("dear", "echo"), ("broken", "fail-500"))
    ],
}
REQUESTS = ("dear", "dear", "broken")


async def chat(gateway: Gateway, model: str) -> None:
    body = {
        "model": model,
        "fallback": "disabled",
        "messages": [{"role": "user", "content": "Hi"}],
        "metadata": {"project": "alpha"},
        "user": "ada",
    }
    address = f"{gateway.url}/beta/v1/chat/completions"
    async with gateway.http.post(address, json=body, headers=gateway.bearer()) as answer:
        await answer.read()


async def admin(gateway: Gateway, path: str, **query: str):
    headers = {"Authorization": f"Bearer {ADMIN_KEY}"}
    address = f"{gateway.url}/admin/v1/{path}"
    async with gateway.http.get(address, params=query, headers=headers) as answer:
        return await answer.json()


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def used_gateway(tmp_path_factory):
    """A gateway with two answers and a failure on record, all of the same moment.

    The page asks by the browser's clock, so that the moment is one of now; another hour or day may
    have begun meanwhile.
    """
    clock = ManualClock(time.time())
    folder = tmp_path_factory.mktemp("operations")
    async with running_gateway(folder, clock=Clock(now=clock.now), **SECTIONS) as running:
        for model in REQUESTS:
            await chat(running, model)
        clock.now_s += 1

        async def is_recorded() -> bool:
            rows = (await admin(running, "activity", by="day"))["data"]
            return sum(row["requests"] for row in rows) >= len(REQUESTS)

        await until(is_recorded, every_s=0.05)
        yield running


@pytest_asyncio.fixture(loop_scope="session")
async def operations(browser, used_gateway):
    async with opened(browser, used_gateway, "/console/operations") as page:
        await enter(page, ADMIN_KEY)
        yield page


async def enter(page: Page, key: str) -> None:
    await page.get_by_label("Admin key").fill(key)
    await page.keyboard.press("Enter")


async def test_a_wrong_admin_key_is_asked_for_again(browser, used_gateway):
    async with opened(browser, used_gateway, "/console/operations") as page:
        await enter(page, make_admin_key(b"\x01" * 32))
        await expect(page.get_by_role("alert").first).to_contain_text("key")
        await expect(page.get_by_label("Admin key")).to_be_visible()
        # The user is still signed in.
        await expect(page.get_by_role("navigation")).to_be_visible()


async def test_providers_and_breakers_are_shown(operations):
    openai = operations.get_by_role("article", name="openai", exact=True)
    broken = openai.get_by_role("row").filter(has_text="fail-500")
    await expect(broken).to_contain_text("open")
    await expect(broken).to_contain_text("broken")
    await expect(openai.get_by_role("row").filter(has_text="echo")).to_contain_text("closed")


async def test_activity_is_charted_by_model_and_user(operations):
    requests = operations.get_by_role("figure").filter(has_text="Requests")
    await expect(requests.locator("canvas")).to_be_visible()
    await requests.get_by_text("Requests as a table").click()
    table = requests.get_by_role("region", name="Requests")
    await expect(table.get_by_role("columnheader", name="dear")).to_be_visible()
    await expect(table.get_by_role("row").nth(1)).to_contain_text("2")
    spend = operations.get_by_role("figure").filter(has_text="Spend")
    await spend.get_by_text("Spend as a table").click()
    await expect(spend.get_by_role("region", name="Spend")).to_contain_text("$0.50")
    await operations.get_by_role("combobox", name="By", exact=True).select_option("user")
    await expect(requests.get_by_text("tester").first).to_be_attached()
    await operations.get_by_label("Period").select_option("30 days")
    await expect(requests.locator("canvas")).to_be_visible()


async def test_usage_is_shown_by_the_values_of_a_tag(operations):
    section = operations.get_by_role("region", name="Usage by tag", exact=True).first
    await section.get_by_label("Key of the tag").fill("project")
    await section.get_by_role("button", name="Show").click()
    row = section.get_by_role("row").filter(has_text="alpha")
    await expect(row).to_contain_text("3")
    await expect(row).to_contain_text("$0.50")


async def test_a_new_key_opens_the_gateway_until_revoked(operations, used_gateway):
    form = operations.get_by_role("form", name="New key")
    await form.get_by_label("User").fill("grace")
    await form.get_by_label("Name").fill("laptop")
    await form.get_by_role("button", name="Create key").click()
    created = operations.get_by_text("shown this once").locator("code")
    key = await created.inner_text()
    assert re.fullmatch(r"gw-[\w-]{43}", key)
    address = f"{used_gateway.url}/beta/v1/models"
    headers = {"Authorization": f"Bearer {key}"}
    async with used_gateway.http.get(address, headers=headers) as answer:
        assert answer.status == 200
    entry = operations.get_by_role("article", name="laptop")
    await entry.get_by_role("button", name="Revoke").first.click()
    dialog = operations.get_by_role("dialog")
    await dialog.get_by_role("button", name="Revoke").click()
    await expect(entry).to_contain_text("revoked")


async def test_limits_are_set_and_refused_by_name(operations, used_gateway):
    keys = operations.get_by_role("list", name="Keys").get_by_role("article")
    listed = keys.filter(has_text="user tester")
    await listed.get_by_role("button", name="Limits").click()
    form = operations.get_by_role("form", name="Limits", exact=True)
    await form.get_by_label("Requests a minute").fill("many")
    await form.get_by_role("button", name="Save limits").click()
    await expect(form.get_by_role("alert")).to_contain_text("requests_per_minute")
    await form.get_by_label("Requests a minute").fill("1000")
    await form.get_by_label("Dollars a month").fill("12.50")
    await form.get_by_label("Dollars a period").fill("40")
    await form.get_by_label("Days of a period").fill("30")
    await form.get_by_label("Percent of a budget").fill("80")
    await form.get_by_label("Models").fill("dear\ngpt-*")
    await form.get_by_role("button", name="Save limits").click()
    await expect(form.get_by_role("status")).to_contain_text("Saved")
    (key,) = [one for one in (await admin(used_gateway, "keys"))["data"] if one["user"] == "tester"]
    limits = await admin(used_gateway, f"keys/{key['id']}/limits")
    assert limits["requests_per_minute"] == 1000
    assert limits["spend_per_month"] == "12.5"
    assert limits["allowed_models"] == ["dear", "gpt-*"]
    assert (limits["spend_per_period"], limits["period_days"]) == ("40", 30)
    assert limits["soft_limit_percent"] == 80
    states = operations.get_by_role("region", name="Limits", exact=True).get_by_role("row")
    await expect(states.filter(has_text="Dollars a period: $40.00")).to_be_visible()
    await form.get_by_role("button", name="Remove limits").click()
    await operations.get_by_role("dialog").get_by_role("button", name="Remove limits").click()
    await expect(form.get_by_label("Requests a minute")).to_have_value("")
    limits = await admin(used_gateway, f"keys/{key['id']}/limits")
    assert (limits["requests_per_minute"], limits["allowed_models"]) == (None, None)


async def change_budget(section: Locator, subject: Locator) -> None:
    """Add to the budget of a user that has spent a part of it, and count it from 0 on."""
    await subject.get_by_role("combobox", name="Of", exact=True).select_option("user")
    await subject.get_by_label("User", exact=True).fill("tester")
    await subject.get_by_role("button", name="Show").click()
    form = section.get_by_role("form", name="Budget", exact=True)
    await form.get_by_label("Dollars to add").fill("lots")
    await form.get_by_role("button", name="Top up").click()
    await expect(form.get_by_role("alert")).to_contain_text("amount")
    await form.get_by_label("Dollars to add").fill("2.25")
    await form.get_by_role("button", name="Top up").click()
    await expect(form.get_by_role("status")).to_contain_text("Added")
    state = section.get_by_role("row").filter(has_text="Dollars a month")
    await expect(state).to_contain_text("$3.25")
    await form.get_by_role("button", name="Reset").click()
    dialog = section.page.get_by_role("dialog")
    await dialog.get_by_role("button", name="Reset").click()
    await expect(state).not_to_contain_text("$0.50")


async def test_limits_of_tags_and_end_users_are_set(operations, used_gateway):
    section = operations.get_by_role("region", name="Limits and budgets")
    subject = section.get_by_role("form", name="Subject")
    [tester] = (await admin(used_gateway, "users", name="tester"))["data"]
    of_user = f"users/{tester['id']}"
    rows = [
        ("user", {"User": "tester"}, f"{of_user}/limits", "$0.50"),
        ("tag", {"Key of the tag": "project", "Value": "alpha"}, "tags/project/alpha/limits", ""),
        (
            "end_user",
            {"User": "tester", "End user": "ada/b"},
            f"{of_user}/end-users/ada%2Fb/limits",
            "$0.00",
        ),
        ("end_users", {"User": "tester"}, f"{of_user}/end-user-limits", ""),
    ]
    for number, (kind, fields, path, used) in enumerate(rows):
        await subject.get_by_role("combobox", name="Of", exact=True).select_option(kind)
        for label, value in fields.items():
            await subject.get_by_label(label, exact=True).fill(value)
        await subject.get_by_role("button", name="Show").click()
        form = section.get_by_role("form", name="Limits", exact=True)
        await form.get_by_label("Dollars a month").fill(f"{number + 1}.5")
        await form.get_by_role("button", name="Save limits").click()
        await expect(form.get_by_role("status")).to_contain_text("Saved")
        assert (await admin(used_gateway, path))["spend_per_month"] == f"{number + 1}.5"
        if used:
            state = section.get_by_role("row").filter(has_text=f"Dollars a month: ${number + 1}.50")
            await expect(state).to_contain_text(used)
    await change_budget(section, subject)
    await subject.get_by_role("combobox", name="Of", exact=True).select_option("end_users")
    await subject.get_by_label("User", exact=True).fill("nobody")
    await subject.get_by_role("button", name="Show").click()
    await expect(section.get_by_role("alert")).to_contain_text("nobody")
    await expect(section.get_by_role("form", name="Limits", exact=True)).to_have_count(0)
    assert await serious_violations(operations) == []


async def test_operations_are_accessible(browser, used_gateway):
    narrow = {"width": 360, "height": 800}
    async with opened(browser, used_gateway, "/console/operations", viewport=narrow) as page:
        await enter(page, ADMIN_KEY)
        await expect(page.get_by_role("figure").first).to_be_visible()
        assert await serious_violations(page) == []
        assert await serious_violations_in_the_dark(page) == []
        assert await page.evaluate("document.documentElement.scrollWidth") <= 360


async def test_without_requests_it_says_what_to_do(browser, tmp_path):
    async with (
        running_gateway(tmp_path, admin=SECTIONS["admin"]) as gateway,
        opened(browser, gateway, "/console/operations") as page,
    ):
        await enter(page, ADMIN_KEY)
        await expect(page.get_by_text("There were no requests")).to_be_visible()
