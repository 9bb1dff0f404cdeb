"""`/docs` in a browser, under its policy."""

import pytest
from playwright.async_api import Browser, expect

from tests.console.conftest import opened
from tests.gateway_in_process import Gateway

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_section_is_found_by_its_address(browser: Browser, gateway: Gateway) -> None:
    async with opened(browser, gateway, "/docs#files", signed_in=False) as page:
        await expect(page.locator("#files")).to_be_in_viewport()
        upload = page.locator("#files details").first
        await upload.locator("summary").click()
        await expect(upload.locator("pre")).to_be_visible()
        assert await upload.evaluate("element => getComputedStyle(element).borderTopWidth") == "1px"
