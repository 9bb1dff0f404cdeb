"""Links that sign in once."""

import time

import pytest
from playwright.async_api import expect

from services.common.storage.sign_in_codes import issue
from tests.console.conftest import opened
from tests.gateway_in_process import running_gateway

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_link_signs_in_once(browser, tmp_path):
    async with running_gateway(tmp_path) as gateway:
        (tmp_path / "dev.key").write_text(gateway.key)
        link = f"/console#code={issue(str(tmp_path), time.time())}"
        async with opened(browser, gateway, link, signed_in=False) as page:
            await expect(page.get_by_role("heading", name="Playground")).to_be_visible()
            assert page.url == f"{gateway.url}/console"
        async with opened(browser, gateway, link, signed_in=False) as page:
            await expect(page.get_by_label("API key")).to_be_visible()
            await expect(page.get_by_role("status")).to_contain_text("used or has expired")
            assert page.url == f"{gateway.url}/console"
