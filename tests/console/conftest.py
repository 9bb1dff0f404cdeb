"""A browser, a gateway that it opens, and what every page must hold to.

A page costs a tenth of a browser context with its first page, as scripts are compiled once a
context: tests have pages of their own in contexts that they share, and users of their own at one
gateway. Tabs share no session storage, in which the console keeps what it knows, but the cookie of
the session: users who are signed in at the same time need contexts of their own (`alone`).
"""

import os
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path
from uuid import uuid4

import pytest
import pytest_asyncio
from playwright.async_api import (
    Browser,
    BrowserContext,
    Page,
    async_playwright,
    expect,
)

from services.accounts.repository import AccountRepository
from services.common.settings import Storage
from services.common.storage.database import open_engine
from tests.gateway_in_process import Gateway, running_gateway

# The first is Chromium without its windows, which takes a third of the processor.
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
# On a busy machine a page takes a while; what does not come fails all the same.
expect.set_options(timeout=20_000)

# Its sandbox needs rights that root in a container has not, and there is no GPU to look for.
# A process less to draw in takes a fourteenth less of the processor, and pages of one site need no
# processes of their own.
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--in-process-gpu", "--process-per-site"]
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


@pytest.fixture(scope="session")
def gateway_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the data folder of the gateway of a worker."""
    return tmp_path_factory.mktemp("gateway")


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def gateway(gateway_folder: Path) -> AsyncIterator[Gateway]:
    """Run a gateway with the sandbox as its providers, for all tests of a worker."""
    async with running_gateway(gateway_folder) as running:
        yield running


@pytest.fixture(scope="session")
def new_user(gateway: Gateway, gateway_folder: Path) -> Callable[[], Awaitable[Gateway]]:
    """Return a function that makes a user who has nothing yet: the gateway, with the user's key."""
    numbers = count(1)

    async def create() -> Gateway:
        engine = open_engine(Storage(data_dir=gateway_folder))
        key = await AccountRepository(engine).create_key(f"user-{next(numbers)}")
        await engine.dispose()
        return replace(gateway, key=key)

    return create


@pytest_asyncio.fixture(loop_scope="session")
async def newcomer(new_user: Callable[[], Awaitable[Gateway]]) -> Gateway:
    """Return the gateway with the key of a user who has nothing yet."""
    return await new_user()


@asynccontextmanager
async def opened(
    browser: Browser,
    gateway: Gateway,
    path: str = "/console",
    *,
    signed_in: bool = True,
    admin_key: str = "",
    alone: bool = False,
    **options,
) -> AsyncIterator[Page]:
    """Open a page; it must break no rule of its policy.

    `admin_key` unlocks the session. `alone` opens the page in a browser context of its own, for
    what a page changes in its context: its clock, or the theme. `options` are Playwright's of a
    context, such as `viewport` and `color_scheme`.
    """
    context = await (_new if alone else _shared)(browser, gateway.url, options)
    before = context.pages
    page = await context.new_page()
    violations: list[str] = []
    page.on("pageerror", lambda error: violations.append(str(error)))
    page.on(
        "console",
        lambda message: (
            violations.append(message.text) if "Content Security Policy" in message.text else None
        ),
    )
    await context.clear_cookies()
    if signed_in:
        await context.add_cookies([await session_cookie(gateway, admin_key)])
    try:
        await page.goto(path)
        yield page
    finally:
        if alone:
            await context.close()
        else:
            for one in context.pages:
                if one not in before:
                    await one.close()
    assert violations == []


async def session_cookie(gateway: Gateway, admin_key: str = "") -> dict[str, str]:
    """Return the cookie of a new session of the gateway's user, unlocked by an admin key."""
    address = f"{gateway.url}/console/session"
    async with gateway.http.post(address, json={"key": gateway.key}) as answer:
        assert answer.status == 200, await answer.text()
        (cookie,) = answer.cookies.values()
        csrf_token = (await answer.json())["session"]["csrf_token"]
    if admin_key:
        headers = {"x-csrf-token": csrf_token, "cookie": f"{cookie.key}={cookie.value}"}
        body = {"key": admin_key}
        async with gateway.http.post(f"{address}/unlock", json=body, headers=headers) as answer:
            assert answer.status == 200, await answer.text()
            (cookie,) = answer.cookies.values()
    return {"name": cookie.key, "value": cookie.value, "url": gateway.url}


# By the gateway's address and the options; those of a gateway that is gone stay empty.
_CONTEXTS: dict[tuple[str, str], BrowserContext] = {}


async def _shared(browser: Browser, url: str, options) -> BrowserContext:
    """Return the browser context of a gateway and options."""
    key = (url, repr(sorted(options.items())))
    if key not in _CONTEXTS:
        _CONTEXTS[key] = await _new(browser, url, options)
    return _CONTEXTS[key]


async def _new(browser: Browser, url: str, options) -> BrowserContext:
    context = await browser.new_context(base_url=url, **options)
    context.set_default_timeout(60_000)
    return context


@pytest_asyncio.fixture(loop_scope="session")
async def page(browser: Browser, gateway: Gateway) -> AsyncIterator[Page]:
    """Return a page of the console in which the tester is signed in."""
    async with opened(browser, gateway) as shown:
        yield shown


@pytest.fixture(scope="session")
def used_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the data folder of `used_gateway`."""
    return tmp_path_factory.mktemp("used")


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def used_gateway(used_folder: Path) -> AsyncIterator[Gateway]:
    """Run a gateway with requests on record, for all tests of a worker."""
    # It opens pages as tests do, with a function of this file.
    from tests.console.used_gateway import running_used_gateway

    async with running_used_gateway(used_folder) as running:
        yield running


@pytest.fixture
def new_caller(used_gateway: Gateway, used_folder: Path) -> Callable[[], Awaitable[Gateway]]:
    """Return a function that returns `used_gateway` with the key of another, new user."""

    async def create() -> Gateway:
        engine = open_engine(Storage(data_dir=used_folder))
        key = await AccountRepository(engine).create_key(uuid4().hex)
        await engine.dispose()
        return replace(used_gateway, key=key)

    return create
