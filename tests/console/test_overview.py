"""The overview: spending, limits with what is left of them, and activity as charts."""

import pytest
from playwright.async_api import expect

from tests.console.accessibility import serious_violations, serious_violations_in_the_dark
from tests.console.conftest import opened
from tests.console.used_gateway import change_limits, opened_by_administrator

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_new_user_is_told_what_to_do(browser, new_caller):
    async with opened(browser, await new_caller(), "/console/overview", alone=True) as page:
        await expect(page.get_by_text("There were no requests in this time")).to_be_visible()
        await expect(page.get_by_text("has a limit")).to_be_visible()
        split = page.get_by_role("combobox", name="By", exact=True)
        await expect(split).not_to_contain_text("User")


async def test_activity_is_charted_zoomed_and_saved(browser, used_gateway):
    path = "/console/overview?scope=everyone"
    async with opened_by_administrator(browser, used_gateway, path, alone=True) as page:
        requests = page.get_by_role("figure", name="Requests")
        await expect(requests.locator("canvas")).to_be_visible()
        spend = page.get_by_role("figure", name="Spend")
        await spend.get_by_text("Spend as a table").click()
        await expect(spend.get_by_role("region", name="Spend")).to_contain_text("$0.50")

        # The last hour, by keyboard.
        plot = requests.get_by_role("img")
        await plot.focus()
        await page.keyboard.press("ArrowLeft")
        await expect(requests.get_by_role("status")).to_contain_text("dear 2")
        line = requests.get_by_role("button", name="dear")
        await line.click()
        await expect(line).to_have_attribute("aria-pressed", "false")

        box = await plot.bounding_box()
        await page.mouse.move(box["x"] + 150, box["y"] + 60)
        await page.mouse.down()
        await page.mouse.move(box["x"] + 300, box["y"] + 60, steps=3)
        await page.mouse.up()
        whole = requests.get_by_role("button", name="Whole period")
        await whole.click()
        await expect(whole).to_have_count(0)

        async with page.expect_download() as downloading:
            await requests.get_by_role("button", name="CSV").click()
        rows = (await (await downloading.value).path()).read_text().splitlines()
        assert rows[0].split(",")[0] == "Time"
        assert set(rows[0].split(",")[1:]) == {"dear", "broken"}
        assert sum(int(value) for row in rows[1:] for value in row.split(",")[1:]) == 3

        await page.get_by_role("combobox", name="By", exact=True).select_option("user")
        await expect(requests.get_by_role("button", name="tester")).to_be_visible()
        await page.get_by_role("button", name="30 days").click()
        await expect(requests.locator("canvas")).to_be_visible()
        tags = page.get_by_role("region", name="Usage by tag").first
        await tags.get_by_label("Key of the tag").fill("project")
        await page.keyboard.press("Enter")
        await expect(tags.get_by_role("row").filter(has_text="alpha")).to_contain_text("$0.50")


async def test_budgets_are_bars_with_what_is_left(browser, used_gateway):
    async with change_limits(used_gateway, {"spend_per_month": "1", "allowed_models": ["dear"]}):
        narrow = {"width": 390, "height": 800}
        path = "/console/overview"
        async with opened(browser, used_gateway, path, alone=True, viewport=narrow) as page:
            bar = page.get_by_role("listitem").filter(has_text="Dollars a month")
            await expect(bar).to_contain_text("$0.50 of $1.00 (50%)")
            await expect(bar).to_contain_text("$0.50 left")
            await expect(page.get_by_text("Models that the user may use: dear")).to_be_visible()
            await expect(page.get_by_role("figure").first).to_be_visible()
            assert await serious_violations(page) == []
            assert await serious_violations_in_the_dark(page) == []
            assert await page.evaluate("document.documentElement.scrollWidth") <= 390
        path = "/console/people?tab=limits"
        async with opened_by_administrator(browser, used_gateway, path, alone=True) as page:
            await expect(page.get_by_role("list", name="All limits")).to_contain_text("user tester")
