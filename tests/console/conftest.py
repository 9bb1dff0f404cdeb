"""A browser, gateways that it opens, and what every page must hold to."""

import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, async_playwright, expect

from tests.gateway_in_process import Gateway, running_gateway

# The first is Chromium without its windows, which takes a third of the processor.
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
# On a busy machine a page takes a while; what does not come fails all the same.
expect.set_options(timeout=20_000)

# Its sandbox needs rights that root in a container has not, and there is no GPU to look for.
# A process less to draw in takes a fourteenth less of the processor.
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--in-process-gpu"]
BUILT = Path("facade/console/dist/index.html")


def executable() -> str:
    """Return the path of a Chromium; skip the test where there is none, but for CI."""
    assert BUILT.exists(), "run make console"
    browser = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if browser is None:
        message = "these tests need Chromium (Debian: apt-get install chromium-headless-shell)"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    return browser


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    """Run a browser for all tests of a worker."""
    path = executable()
    async with async_playwright() as playwright:
        running = await playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield running
        await running.close()


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def gateway(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Gateway]:
    """Run a gateway with the sandbox as its providers, for the tests of a module."""
    async with running_gateway(tmp_path_factory.mktemp("gateway")) as running:
        yield running


@asynccontextmanager
async def opened(
    browser: Browser, gateway: Gateway, path: str = "/console", *, signed_in: bool = True, **options
) -> AsyncIterator[Page]:
    """Open a page in a browser context of its own; it must break no rule of its policy.

    `options` are Playwright's of a context, such as `viewport` and `color_scheme`.
    """
    context = await browser.new_context(base_url=gateway.url, **options)
    context.set_default_timeout(60_000)
    page = await context.new_page()
    violations: list[str] = []
    page.on("pageerror", lambda error: violations.append(str(error)))
    page.on(
        "console",
        lambda message: (
            violations.append(message.text) if "Content Security Policy" in message.text else None
        ),
    )
    if signed_in:
        await page.add_init_script(
            f"sessionStorage.getItem('gateway.key') ?? "
            f"sessionStorage.setItem('gateway.key', '{gateway.key}')"
        )
    await page.goto(path)
    yield page
    await context.close()
    assert violations == []


@pytest_asyncio.fixture(loop_scope="session")
async def page(browser: Browser, gateway: Gateway) -> AsyncIterator[Page]:
    """Return a page of the console in which the tester is signed in."""
    async with opened(browser, gateway) as shown:
        yield shown
