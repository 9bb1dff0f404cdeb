"""The page of requests: one's own and everyone's, found, followed, and one in all its parts."""

import pytest
from playwright.async_api import expect

from tests.console.accessibility import serious_violations, serious_violations_in_the_dark
from tests.console.conftest import opened
from tests.console.used_gateway import REQUESTS, chat, opened_by_administrator

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_requests_are_found_followed_and_opened(browser, used_gateway):
    async with opened(browser, used_gateway, "/console/requests", alone=True) as page:
        rows = page.get_by_role("region", name="Requests").locator("tbody tr")
        # The console's own requests name no model.
        await expect(rows).to_have_count(3)
        assert await serious_violations(page) == []
        form = page.get_by_role("form", name="Search requests")
        await form.get_by_label("Text").fill("LIGHTHOUSE")
        await page.keyboard.press("Enter")
        await expect(rows).to_have_count(1)
        assert "text=LIGHTHOUSE" in page.url
        await page.get_by_role("button", name="Clear filters").click()
        await form.get_by_label("Status").select_option("5xx")
        await expect(rows).to_have_count(1)
        await expect(rows).to_contain_text("502")
        await page.go_back()
        await expect(rows).to_have_count(3)

        await page.get_by_label("Follow new requests").check()
        # One that is refused counts in no sum.
        await chat(used_gateway, 3, {**REQUESTS[0], "model": "none"})
        await expect(rows).to_have_count(4)


async def test_a_request_is_shown_and_opened_in_chat(browser, used_gateway):
    async with opened(browser, used_gateway, "/console/requests?status=2xx", alone=True) as page:
        row = page.locator("tbody tr").filter(has_text="2 attempts")
        await row.get_by_role("link").press("Enter")
        spans = page.get_by_role("list", name="What happened").get_by_role("listitem")
        await expect(spans.first).to_contain_text("openai/fail-500 500 · upstream_error")
        await expect(spans.last).to_contain_text("openai/dear answered")
        await expect(page.get_by_role("region", name="Headers added")).to_contain_text("second")
        body = page.get_by_role("region", name="Request body")
        await expect(body).to_contain_text("<b>Is it far?</b>")
        assert await page.locator("main b").count() == 0
        assert await serious_violations(page) == []
        assert await serious_violations_in_the_dark(page) == []
        await page.set_viewport_size({"width": 390, "height": 800})
        assert await page.evaluate("document.documentElement.scrollWidth") <= 390
        await page.get_by_role("button", name="Open in chat").click()
        message = page.get_by_label("Message", exact=True)
        await expect(message).to_have_value("<b>Is it far?</b>")
        await expect(page.get_by_label("Model", exact=True)).to_have_value("broken")


async def test_everyones_requests_need_the_admin_key(browser, used_gateway, new_caller):
    other = await new_caller()
    async with opened(browser, other, "/console/requests", alone=True) as page:
        await expect(page.get_by_text("No requests yet")).to_be_visible()
        await page.get_by_role("button", name="Everyone").click()
        await expect(page.get_by_label("Admin key")).to_be_visible()
    path = "/console/requests?scope=everyone&min_cost=0.2"
    async with opened_by_administrator(browser, other, path, alone=True) as page:
        rows = page.get_by_role("region", name="Requests").locator("tbody tr")
        await expect(rows.first).to_contain_text("tester")
        await page.get_by_role("combobox", name="User").select_option(label="tester")
        await expect(rows.first).to_contain_text("tester")
        assert "user_id=user_" in page.url
