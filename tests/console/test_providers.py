"""The page of providers and models, and the steps that set a gateway up."""

import base64
import re

import pytest
from playwright.async_api import expect

from services.accounts.admin.admin_keys import hash_admin_key
from tests.console.accessibility import serious_violations, serious_violations_in_the_dark
from tests.console.used_gateway import ADMIN_KEY, opened_by_administrator
from tests.facade.test_stored_providers import ROTATED, SECRET, KeyedUpstream
from tests.gateway_in_process import running_gateway, serving

pytestmark = pytest.mark.asyncio(loop_scope="session")

PATH = "/console/providers"
SECTIONS = {
    "admin": {"key_sha256": hash_admin_key(ADMIN_KEY).hex()},
    "providers": {},
    "stored_providers": {
        "encryption_keys": base64.b64encode(bytes(32)).decode(),
        "internal_addresses": True,
    },
}


async def test_a_new_gateway_is_set_up(browser, tmp_path):
    upstream = KeyedUpstream()
    async with (
        serving(upstream.app) as address,
        running_gateway(tmp_path, **SECTIONS) as gateway,
        opened_by_administrator(browser, gateway, "/console") as page,
    ):
        setup = page.get_by_role("region", name="Set up the gateway")
        await setup.get_by_role("link", name="Add a provider").click()
        form = page.get_by_role("form", name="Add a provider")
        await form.get_by_label("Provider").select_option("Another server…")
        await form.get_by_label("Name").fill("acme")
        await form.get_by_label("Address").fill(f"{address}/v1")
        await form.get_by_label("Key").fill(ROTATED)
        await form.get_by_role("button", name="Test").click()
        await expect(page.get_by_text("The key is rejected")).to_be_visible()
        await form.get_by_label("Key").fill(SECRET)
        await form.get_by_role("button", name="Test").click()
        await expect(page.get_by_text("The key works")).to_be_visible()
        await expect(page.get_by_text("2 models")).to_be_visible()
        assert await serious_violations(page) == []
        await form.get_by_role("button", name="Add").click()
        acme = page.get_by_role("article", name="acme")
        await expect(acme).to_contain_text("key set")
        await expect(form.get_by_label("Key")).to_have_value("")

        # A key that the provider rejects does not replace one that works.
        await acme.get_by_role("button", name="Rotate key").click()
        await acme.get_by_label("New key", exact=True).fill(ROTATED)
        await acme.get_by_role("button", name="Test and save").click()
        await expect(acme).to_contain_text("The key is rejected")
        upstream.accepted = {ROTATED}
        await acme.get_by_role("button", name="Test and save").click()
        await expect(acme.get_by_label("New key", exact=True)).to_have_count(0)
        await acme.get_by_role("button", name="Test").click()
        await expect(acme).to_contain_text("The key works")
        assert not {SECRET, ROTATED} & {*re.findall(r"sk-[\w-]+", await page.content())}

        await page.get_by_role("button", name="Models", exact=True).click()
        await expect(page.get_by_role("row").filter(has_text="acme/m-1")).to_be_visible()
        await page.set_viewport_size({"width": 390, "height": 800})
        assert await serious_violations_in_the_dark(page) == []
        assert await page.evaluate("document.documentElement.scrollWidth") <= 390
        await page.set_viewport_size({"width": 1440, "height": 800})

        await expect(setup).to_contain_text("Add a provider of models (done)")
        await setup.get_by_role("link", name="Try a chat").click()
        await page.get_by_label("Model", exact=True).fill("acme/m-1")
        await page.get_by_label("Message", exact=True).fill("Hi")
        await page.get_by_role("button", name="Send").click()
        await expect(setup).to_have_count(0)

        await page.goto(PATH)
        await acme.get_by_role("button", name="Remove").click()
        await page.get_by_role("dialog").get_by_role("button", name="Remove").click()
        await expect(acme).to_have_count(0)


async def test_the_file_rules(browser, used_gateway):
    """The settings of this gateway have providers, and no key to encrypt those of others."""
    async with opened_by_administrator(browser, used_gateway, PATH) as page:
        openai = page.get_by_role("article", name="openai", exact=True)
        broken = openai.get_by_role("row").filter(has_text="fail-500")
        await expect(broken).to_contain_text(re.compile("open"))
        await expect(openai.get_by_role("row").filter(has_text="echo")).to_contain_text("closed")
        await expect(openai).to_contain_text("which rule")
        await expect(openai.get_by_role("button", name="Remove")).to_have_count(0)
        await openai.get_by_role("button", name="Test").click()
        await expect(openai).to_contain_text("The key works")
        form = page.get_by_role("form", name="Add a provider")
        await form.get_by_label("Provider").select_option("groq")
        await form.get_by_role("button", name="Show the lines").click()
        lines = '[providers.groq]\napi_key_env = "GROQ_API_KEY"'
        await expect(page.locator(".secret pre")).to_have_text(lines)
        assert await serious_violations(page) == []
