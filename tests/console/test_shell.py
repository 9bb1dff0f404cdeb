"""Signing in, finding one's way, and what holds for every page of the console."""

import re

import pytest
from playwright.async_api import expect

from tests.console.accessibility import serious_violations
from tests.console.conftest import opened
from tests.grid import each_row
from tests.waiting import until

pytestmark = pytest.mark.asyncio(loop_scope="session")

PAGES = {
    "Playground": "/console",
    "Files": "/console/files",
    "Memory": "/console/memory",
    "Documents": "/console/documents",
    "Usage": "/console/usage",
    "Operations": "/console/operations",
}


async def test_the_root_leads_to_the_sign_in(browser, gateway):
    async with opened(browser, gateway, "/", signed_in=False) as page:
        await expect(page).to_have_url(f"{gateway.url}/console")
        await expect(page.get_by_role("heading", name="Gateway console")).to_be_visible()


async def test_a_key_signs_in_for_its_tab_alone(browser, gateway):
    async with opened(browser, gateway, signed_in=False) as page:
        await page.get_by_label("API key").fill(gateway.key)
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("heading", name="Playground")).to_be_visible()
        assert gateway.key not in page.url
        other = await page.context.new_page()
        await other.goto("/console")
        await expect(other.get_by_label("API key")).to_be_visible()


async def test_a_wrong_key_is_refused_with_the_reason(browser, gateway):
    async with opened(browser, gateway, signed_in=False) as page:
        await page.get_by_label("API key").fill("gw-wrong")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("alert")).to_contain_text("API key")
        await expect(page.get_by_label("API key")).to_be_visible()


@pytest.mark.parametrize("name", PAGES)
async def test_pages_are_reached_by_keyboard(page, name):
    link = page.get_by_role("navigation").get_by_role("link", name=name)
    await link.focus()
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(re.compile(f"{PAGES[name]}$"))
    await expect(page.get_by_role("heading", name=name, level=1)).to_be_visible()
    await expect(link).to_have_attribute("aria-current", "page")


@each_row("scheme", ["light", "dark"])
@each_row("path", ["sign-in", *PAGES.values()])
async def test_pages_are_accessible(browser, gateway, path, scheme):
    is_signed_in = path != "sign-in"
    async with opened(
        browser,
        gateway,
        path if is_signed_in else "/console",
        signed_in=is_signed_in,
        color_scheme=scheme,
    ) as page:
        await expect(page.get_by_role("heading", level=1)).to_be_visible()
        assert await serious_violations(page) == []


@pytest.mark.parametrize("path", PAGES.values())
async def test_pages_fit_a_narrow_screen(browser, gateway, path):
    async with opened(browser, gateway, path, viewport={"width": 360, "height": 640}) as page:
        await expect(page.get_by_role("heading", level=1)).to_be_visible()
        assert await page.evaluate("document.documentElement.scrollWidth") <= 360


@pytest.mark.parametrize("path", PAGES.values())
async def test_a_first_visit_transfers_less_than_200_kb(browser, gateway, path):
    async with opened(browser, gateway, path) as page:
        devtools = await page.context.new_cdp_session(page)
        await devtools.send("Network.enable")
        await devtools.send("Network.setCacheDisabled", {"cacheDisabled": True})
        sizes: list[float] = []
        devtools.on(
            "Network.loadingFinished", lambda event: sizes.append(event["encodedDataLength"])
        )
        await page.reload()
        await expect(page.get_by_role("heading", level=1)).to_be_visible()
        await until(lambda: len(sizes) > 3)
        assert sum(sizes) < 200_000
