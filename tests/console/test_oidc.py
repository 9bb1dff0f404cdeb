"""Signing in to the console at a real OpenID Connect issuer."""

import re

import pytest
from playwright.async_api import expect

from tests.console.accessibility import serious_violations
from tests.console.conftest import opened
from tests.issuer import gateway_with_issuer

pytestmark = pytest.mark.asyncio(loop_scope="session")

ACCOUNTS = {
    "ada": {"email": "ada@example.com", "groups": ["staff", "gateway-admins"]},
    "lea": {"email": "lea@example.com", "groups": ["leads"], "team": "lab"},
    "eve": {"email": "tester", "groups": ["gateway-admins"]},
}
OIDC = {
    "team_claim": "team",
    "role_claim": "groups",
    "roles": {"gateway-admins": "admin", "leads": "team_admin"},
}


async def sign_in_at_issuer(page, name: str) -> None:
    await page.get_by_placeholder("Enter any login").fill(name)
    await page.get_by_placeholder("and password").fill("any")
    await page.get_by_role("button", name="Sign-in").click()
    await page.get_by_role("button", name="Continue").click()


async def test_an_issuer_signs_an_administrator_in(browser, tmp_path):
    async with (
        gateway_with_issuer(tmp_path, ACCOUNTS, OIDC) as (gateway, _),
        opened(browser, gateway, "/console/overview", signed_in=False, alone=True) as page,
    ):
        assert await serious_violations(page) == []
        await page.get_by_role("link", name="Sign in with Example ID").click()
        await sign_in_at_issuer(page, "ada")
        # Back on the page that was opened, with the operations of an administrator.
        await expect(page.get_by_role("heading", name="Overview", level=1)).to_be_visible()
        assert page.url == f"{gateway.url}/console/overview"
        sidebar = page.get_by_role("complementary", name="Console")
        await expect(sidebar).to_contain_text("Signed in as ada@example.com, administrator")
        await page.get_by_role("navigation").get_by_role("link", name="People and keys").click()
        await expect(page.get_by_role("form", name="Create key")).to_be_visible()
        # The session ends while something is written; another tab signs in.
        await page.get_by_role("navigation").get_by_role("link", name="Chat", exact=True).click()
        await page.get_by_label("Model", exact=True).fill("sandbox/echo")
        await page.get_by_label("Message", exact=True).fill("Still here?")
        await page.context.clear_cookies(name=re.compile("gateway_session"))
        await page.keyboard.press("Enter")
        async with page.context.expect_page() as opening:
            await page.get_by_role("link", name="Sign in with Example ID").click()
        other = await opening.value
        await expect(other.get_by_role("heading", name="You are signed in")).to_be_visible()
        answer = page.get_by_role("article", name="Answer")
        await expect(answer).to_contain_text("Still here?")
        await expect(answer).to_contain_text("tokens")


async def test_an_issuer_gives_nobody_anothers_name(browser, tmp_path):
    async with (
        gateway_with_issuer(tmp_path, ACCOUNTS, OIDC) as (gateway, _),
        opened(browser, gateway, signed_in=False, alone=True) as page,
    ):
        await page.get_by_role("link", name="Sign in with Example ID").click()
        await sign_in_at_issuer(page, "eve")
        await expect(page.get_by_role("status")).to_contain_text("You may not sign in here")
        assert page.url == f"{gateway.url}/console"


async def test_a_team_administrator_sees_what_is_open(browser, tmp_path):
    async with (
        gateway_with_issuer(tmp_path, ACCOUNTS, OIDC) as (gateway, _),
        opened(browser, gateway, "/console/requests", signed_in=False, alone=True) as page,
    ):
        refused: list[str] = []
        page.on("response", lambda one: refused.append(one.url) if one.status == 403 else None)
        await page.get_by_role("link", name="Sign in with Example ID").click()
        await sign_in_at_issuer(page, "lea")
        await expect(page.get_by_role("heading", name="Requests", level=1)).to_be_visible()
        await expect(page.get_by_role("button", name="Everyone")).to_have_count(0)
        pages = page.get_by_role("navigation", name="Pages", exact=True)
        await expect(pages.get_by_role("link", name="Providers")).to_have_count(0)
        await pages.get_by_role("link", name="People and keys").click()
        form = page.get_by_role("form", name="Create key")
        await form.get_by_label("User").fill("intern")
        await form.get_by_role("button", name="Create key").click()
        await expect(page.get_by_role("list", name="Keys")).to_contain_text("intern in lab")
        await expect(page.get_by_role("button", name="Limits")).to_have_count(0)
        tabs = page.get_by_role("group", name="What to show").get_by_role("button")
        assert await tabs.all_inner_texts() == ["Keys", "Users", "Invitations"]
        await tabs.last.click()
        await page.get_by_role("form", name="Invite").get_by_role("button").click()
        link = page.locator(".secret code")
        await expect(link).to_contain_text("#invitation=")
        await tabs.nth(1).click()
        user = page.get_by_role("article", name="intern")
        await expect(user.get_by_role("link", name="Keys")).to_be_visible()
        await expect(user.get_by_role("button")).to_have_count(0)
        assert refused == []
