"""Signing in to the console once for all tabs, and going on after a session has ended."""

import re
import time

import pytest
from playwright.async_api import Page, expect

from services.common.storage.sign_in_codes import issue
from services.common.version import VERSION
from tests.console.accessibility import serious_violations, serious_violations_in_the_dark
from tests.console.conftest import opened

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def enter_key(page: Page, key: str) -> None:
    await page.get_by_label("API key").fill(key)
    await page.keyboard.press("Enter")


async def choose_echo(page: Page) -> None:
    await page.get_by_label("Model", exact=True).fill("sandbox/echo")


async def end_session(page: Page) -> None:
    """End the session as the gateway does, without the page."""
    await page.context.clear_cookies()


async def test_a_key_signs_in_once_for_all_tabs(browser, gateway):
    async with opened(browser, gateway, "/", signed_in=False) as page:
        await expect(page).to_have_url(f"{gateway.url}/console")
        await expect(page.get_by_role("heading", name="Gateway console")).to_be_visible()
        assert await serious_violations(page) == []
        assert await serious_violations_in_the_dark(page) == []
        other = await page.context.new_page()
        await other.goto("/console/overview")
        await expect(other.get_by_label("API key")).to_be_visible()
        await enter_key(page, "gw-wrong")
        await expect(page.get_by_role("alert")).to_contain_text("API key")
        await enter_key(page, gateway.key)
        await expect(page.get_by_role("heading", name="Chat", exact=True)).to_be_visible()
        sidebar = page.get_by_role("complementary", name="Console")
        await expect(sidebar).to_contain_text(f"Signed in as tester · version {VERSION}")
        # The tab beside it, and one that a link opens.
        await expect(other.get_by_role("heading", name="Overview", level=1)).to_be_visible()
        async with page.context.expect_page() as opening:
            link = page.get_by_role("navigation").get_by_role("link", name="Files")
            await link.click(modifiers=["Control"])
        third = await opening.value
        await expect(third.get_by_role("heading", name="Files", level=1)).to_be_visible()
        # Nothing that a script can read signs anybody in.
        kept = await page.evaluate(
            "JSON.stringify([localStorage, sessionStorage, document.cookie])"
        )
        assert gateway.key not in kept
        assert "gwsession" not in kept
        await third.get_by_role("button", name="Sign out").click()
        for tab in (page, other, third):
            await expect(tab.get_by_label("API key")).to_be_visible()


async def test_a_link_signs_an_open_tab_in_once(browser, gateway, gateway_folder):
    (gateway_folder / "dev.key").write_text(gateway.key)
    link = f"/console#code={issue(str(gateway_folder), time.time())}"
    async with opened(browser, gateway, signed_in=False) as page:
        await expect(page.get_by_label("API key")).to_be_visible()
        # Only the fragment changes: the page is not loaded again.
        await page.goto(link)
        await expect(page.get_by_role("heading", name="Chat", exact=True)).to_be_visible()
        assert page.url == f"{gateway.url}/console"
        await page.get_by_role("navigation").get_by_role("link", name="People and keys").click()
        await expect(page.get_by_role("heading", name="People and keys")).to_be_visible()
        # The owner of the machine is an administrator, without another secret.
        await expect(page.get_by_role("list", name="Keys")).to_contain_text("tester")
        await expect(page.get_by_label("Admin key")).to_have_count(0)
    async with opened(browser, gateway, link, signed_in=False) as page:
        await expect(page.get_by_label("API key")).to_be_visible()
        await expect(page.get_by_role("status")).to_contain_text("used or has expired")
        assert page.url == f"{gateway.url}/console"


async def test_an_ended_session_loses_nothing(browser, new_user):
    ada, bob = await new_user(), await new_user()
    async with opened(browser, ada) as page:
        await choose_echo(page)
        message = page.get_by_label("Message", exact=True)
        await message.fill("What was I going to ask?")
        await end_session(page)
        await page.keyboard.press("Enter")
        dialog = page.get_by_role("dialog", name="Sign in again")
        await expect(dialog).to_contain_text("Your sign-in has ended")
        assert await serious_violations(page) == []
        await page.keyboard.press("Escape")
        await expect(dialog).to_be_visible()
        await dialog.get_by_label("API key").fill(ada.key)
        await page.keyboard.press("Enter")
        await expect(dialog).to_have_count(0)
        answer = page.get_by_role("article", name="Answer")
        await expect(answer).to_contain_text("What was I going to ask?")
        await expect(answer).to_contain_text("tokens")
        chats = page.get_by_role("region", name="Recent chats").get_by_role("link")
        await expect(chats).to_have_count(2)
        # A reload keeps the draft; somebody else finds nothing of it.
        await message.fill("Nobody else may read this.")
        await page.reload()
        await expect(message).to_have_value("Nobody else may read this.")
        await message.fill("Nobody else may read this.")
        await end_session(page)
        await message.press("Enter")
        await dialog.get_by_label("API key").fill(bob.key)
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("complementary")).to_contain_text(re.compile("as user-"))
        await expect(page.get_by_text("Nothing has been said yet")).to_be_visible()
        await expect(message).to_have_value("")


async def test_two_tabs_on_a_chat_keep_both_texts(browser, new_user):
    ada = await new_user()
    async with opened(browser, ada) as page:

        async def ask(tab: Page, text: str) -> None:
            await tab.get_by_label("Message", exact=True).fill(text)
            await tab.keyboard.press("Enter")
            await expect(tab.get_by_role("article", name="Answer").last).to_contain_text(text)
            await expect(tab.get_by_role("button", name="Send")).to_be_visible()

        await choose_echo(page)
        await ask(page, "First question")
        chat = page.get_by_role("region", name="Recent chats").get_by_role("link").nth(1)
        address = await chat.get_attribute("href")
        assert address is not None
        other = await page.context.new_page()
        await other.goto(address)
        await expect(other.get_by_role("article", name="Answer")).to_contain_text("First question")
        # What one tab adds, the other shows; what is being written there stays.
        await other.get_by_label("Message", exact=True).fill("A draft beside it")
        await ask(page, "Second question")
        await expect(other.get_by_role("article", name="Answer").last).to_contain_text("Second")
        await expect(other.get_by_label("Message", exact=True)).to_have_value("A draft beside it")
        # Of a tab that has not heard of it, the question becomes a chat of its own.
        await page.evaluate("BroadcastChannel.prototype.postMessage = () => {}")
        await ask(page, "Third question")
        await ask(other, "Another question")
        await expect(other.get_by_text("kept as a chat of its own")).to_be_visible()
        titles = other.get_by_role("region", name="Recent chats").get_by_role("link")
        await expect(titles.nth(1)).to_contain_text("First question (apart)")
        await page.reload()
        await expect(page.get_by_role("article", name="Answer").last).to_contain_text("Third")
