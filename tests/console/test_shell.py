"""Finding one's way, and what holds for every page of the console."""

import re

import pytest
from playwright.async_api import Page, expect

from tests.console.accessibility import serious_violations, serious_violations_in_the_dark
from tests.console.conftest import opened
from tests.waiting import until

pytestmark = pytest.mark.asyncio(loop_scope="session")

PAGES = {
    "Chat": "/console",
    "Chats": "/console/chats",
    "Documents": "/console/documents",
    "Files": "/console/files",
    "Memory": "/console/memory",
    "Overview": "/console/overview",
    "Requests": "/console/requests",
    "People and keys": "/console/people",
    "Providers and models": "/console/providers",
}
NARROW = {"width": 360, "height": 640}


async def check_page(page: Page, name: str) -> None:
    """Check that everybody can use the page that is shown, on narrow screens too."""
    await expect(page.get_by_role("heading", name=name, level=1)).to_be_visible()
    await expect(page).to_have_title(f"{name} · Gateway console")
    assert await serious_violations(page) == [], name
    assert await serious_violations_in_the_dark(page) == [], name
    await page.set_viewport_size(NARROW)
    assert await page.evaluate("document.documentElement.scrollWidth") <= NARROW["width"], name
    await page.set_viewport_size({"width": 1280, "height": 720})


async def test_pages_are_reached_by_keyboard_and_usable(browser, newcomer):
    async with opened(browser, newcomer) as page:
        for name, path in PAGES.items():
            link = page.get_by_role("navigation").get_by_role("link", name=name, exact=True)
            await link.focus()
            await page.keyboard.press("Enter")
            await expect(page).to_have_url(re.compile(f"{path}$"))
            await expect(link).to_have_attribute("aria-current", "page")
            await check_page(page, name)


async def test_narrow_screens_have_a_bar_and_a_menu(browser, gateway):
    async with opened(browser, gateway, "/console/chats", viewport=NARROW) as page:
        bar = page.get_by_role("navigation", name="Pages")
        await expect(bar).to_be_in_viewport(ratio=1)
        await bar.get_by_role("link", name="Files").click()
        await expect(page.get_by_role("heading", name="Files", level=1)).to_be_visible()
        await bar.get_by_role("button", name="More").click()
        menu = page.get_by_role("dialog", name="Menu")
        assert await serious_violations(page) == []
        await menu.get_by_role("link", name="Overview").click()
        await expect(menu).to_have_count(0)
        await expect(page.get_by_role("heading", name="Overview", level=1)).to_be_visible()


async def test_a_theme_is_chosen_for_all_tabs(browser, gateway):
    async with opened(browser, gateway, alone=True, color_scheme="light") as page:
        root = page.locator("html")
        await expect(root).to_have_css("color-scheme", "light dark")
        await page.get_by_role("button", name="Dark").click()
        await expect(root).to_have_css("color-scheme", "dark")
        other = await page.context.new_page()
        await other.goto("/console")
        await expect(other.locator("html")).to_have_css("color-scheme", "dark")
        await page.get_by_role("button", name="System").click()
        await expect(root).to_have_css("color-scheme", "light dark")


async def test_the_palette_and_the_keys_open_by_keyboard(page):
    await expect(page.get_by_role("heading", name="Chat", exact=True)).to_be_visible()
    await page.keyboard.press("Control+k")
    palette = page.get_by_role("dialog", name="Go to")
    await expect(palette.get_by_role("option")).not_to_have_count(0)
    assert await serious_violations(page) == []
    await page.keyboard.type("page ove")
    await expect(palette.get_by_role("option")).to_have_count(1)
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="Overview", level=1)).to_be_visible()
    await expect(palette).to_have_count(0)
    await page.keyboard.press("?")
    keys = page.get_by_role("dialog", name="Keyboard shortcuts")
    await expect(keys).to_contain_text("Ctrl+K")
    assert await serious_violations(page) == []
    await page.keyboard.press("Escape")
    await expect(keys).to_have_count(0)


async def test_a_first_visit_transfers_less_than_200_kb(browser, gateway):
    async with opened(browser, gateway, alone=True) as page:
        devtools = await page.context.new_cdp_session(page)
        await devtools.send("Network.enable")
        await devtools.send("Network.setCacheDisabled", {"cacheDisabled": True})
        sizes: list[float] = []
        devtools.on(
            "Network.loadingFinished", lambda event: sizes.append(event["encodedDataLength"])
        )
        for path in PAGES.values():
            sizes.clear()
            await page.goto(path)
            await expect(page.get_by_role("heading", level=1)).to_be_visible()
            await until(lambda: len(sizes) > 3)
            assert sum(sizes) < 200_000, path
