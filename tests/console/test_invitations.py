"""Inviting a person on the page of people, and accepting in another browser."""

import pytest
from playwright.async_api import expect

from tests.console.accessibility import serious_violations
from tests.console.conftest import opened
from tests.console.used_gateway import admin, opened_by_administrator

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_an_invited_person_becomes_a_user(browser, used_gateway):
    async with opened_by_administrator(
        browser, used_gateway, "/console/people?tab=invitations"
    ) as page:
        form = page.get_by_role("form", name="Invite")
        await form.get_by_label("Role").select_option("viewer")
        await form.get_by_role("textbox", name="Team").fill("guests")
        await form.get_by_role("button", name="Invite").click()
        secret = page.locator(".secret code")
        await expect(secret).to_contain_text(f"{used_gateway.url}/console#invitation=gwinvite-")
        link = await secret.inner_text()
        assert await serious_violations(page) == []
        # The form begins anew.
        await expect(form.get_by_label("Role")).to_have_value("user")
        await expect(form.get_by_label("Ends in")).to_have_value("7")
        await page.get_by_role("button", name="I have copied it").click()
        card = page.get_by_role("article", name="Whoever has the link")
        await expect(card).to_contain_text("open")

        async with opened(browser, used_gateway, link, signed_in=False, alone=True) as guest:
            await expect(guest.get_by_text("as viewer of the team guests")).to_be_visible()
            assert "gwinvite" not in guest.url
            assert await serious_violations(guest) == []
            # Another look, in a tab that is loaded again.
            await guest.reload()
            await guest.get_by_label("Your user name").fill("tester")
            await guest.get_by_role("button", name="Accept the invitation").click()
            await expect(guest.get_by_role("alert")).to_contain_text("already exists")
            await guest.get_by_label("Your user name").fill("mary")
            await guest.keyboard.press("Enter")
            await expect(guest.get_by_role("heading", name="Welcome, mary")).to_be_visible()
            key = await guest.locator(".secret code").inner_text()
            await guest.get_by_role("button", name="I have kept it").click()
            sidebar = guest.get_by_role("complementary", name="Console")
            await expect(sidebar).to_contain_text("Signed in as mary, viewer")
            await guest.get_by_role("button", name="Sign out").click()
            await guest.get_by_label("API key").fill(key)
            await guest.get_by_role("button", name="Sign in").click()
            await expect(sidebar).to_contain_text("Signed in as mary, viewer")

            # The administrator makes her a user, and her open page may write.
            await page.get_by_role("button", name="Users").click()
            await page.get_by_label("Role of mary").select_option("user")
            await expect(page.get_by_role("article", name="mary")).to_contain_text("User ·")
            [mary] = (await admin(used_gateway, "users", name="mary"))["data"]
            assert (mary["role"], mary["team"]) == ("user", "guests")
            await guest.reload()
            await expect(sidebar).to_contain_text("Signed in as mary")
            await expect(sidebar).not_to_contain_text("viewer")

            # The link is used up.
            await guest.goto(link)
            await expect(guest.get_by_role("alert")).to_contain_text("ask for another one")
            await guest.get_by_role("button", name="Go to the console").click()
            await expect(guest.get_by_label("Message", exact=True)).to_be_visible()
        await page.get_by_role("button", name="Invitations").click()
        await expect(card).to_contain_text("accepted")
        await page.set_viewport_size({"width": 390, "height": 800})
        assert await page.evaluate("document.documentElement.scrollWidth") <= 390
