"""The page of memory: conversations, turns, summary, search and the profile."""

import pytest
import pytest_asyncio
from playwright.async_api import expect

from tests.console.accessibility import serious_violations
from tests.console.conftest import opened
from tests.gateway_in_process import Gateway
from tests.waiting import until

pytestmark = pytest.mark.asyncio(loop_scope="session")

SCRIPT = "<img src=x onerror=document.title='hacked'>"


async def chat(gateway: Gateway, memory_id: str, text: str, **config) -> None:
    """Say something in a remembered conversation, whose older turns are soon summarised."""
    body = {
        "model": "sandbox/echo",
        "messages": [{"role": "user", "content": text}],
        "memory_id": memory_id,
        "memory_config": {"history_window": 5, **config},
    }
    address = f"{gateway.url}/beta/v1/chat/completions"
    async with gateway.http.post(address, json=body, headers=gateway.bearer()) as answer:
        assert answer.status == 200, await answer.text()


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def remembering(new_user):
    user = await new_user()
    for text in ("My name is Ada.", "I live in Turin.", f"**Bold** and {SCRIPT}"):
        await chat(user, "trip", text)
    await chat(user, "b/c d?&", "Another conversation")
    return user


async def test_without_memories_it_says_what_to_do(browser, newcomer):
    async with opened(browser, newcomer, "/console/memory") as page:
        await expect(page.get_by_text("Nothing is remembered yet")).to_be_visible()
        await expect(page.get_by_text("Nothing is known about you yet")).to_be_visible()


async def test_conversations_and_turns_are_shown(browser, remembering):
    async with opened(browser, remembering, "/console/memory") as page:
        listed = page.get_by_role("list", name="Conversations")
        await expect(listed.get_by_role("listitem")).to_have_count(2)
        await listed.get_by_role("link", name="trip").click()
        await expect(page.get_by_role("heading", name="trip", level=1)).to_be_visible()
        turns = page.get_by_role("list", name="Turns").get_by_role("article")
        await expect(turns).to_have_count(3)
        await expect(turns.last).to_contain_text("My name is Ada.")
        assert await serious_violations(page) == []
        turn = page.get_by_role("article", name="Turn 3")
        await expect(turn.locator("strong").first).to_have_text("Bold")
        await expect(turn).to_contain_text(SCRIPT)
        assert await turn.locator("img, [onerror]").count() == 0
        assert await page.title() == "trip · Gateway console"
        await page.go_back()
        await expect(page.get_by_role("heading", name="Memory", level=1)).to_be_visible()
        # Ids may have any characters.
        await page.get_by_role("link", name="b/c d?&").click()
        await expect(page.get_by_role("list", name="Turns")).to_contain_text("Another conversation")
        await page.goto("/console/memory?id=nobody")
        await expect(page.get_by_role("alert").first).to_contain_text("no such memory")


async def test_archived_turns_are_found_with_scores(browser, newcomer):
    for number in range(16):
        await chat(newcomer, "shelves", f"Shelf {number} holds jar {number}.")

    async def are_archived() -> bool:
        address = f"{newcomer.url}/beta/v1/memories/shelves"
        async with newcomer.http.get(address, headers=newcomer.bearer()) as answer:
            return (await answer.json())["summarised"] >= 4

    await until(are_archived)
    async with opened(browser, newcomer, "/console/memory?id=shelves") as page:
        await expect(page.get_by_role("heading", name="Summary").locator("+ *")).to_contain_text(
            "jar 0"
        )
        await page.get_by_role("searchbox").fill("shelf 3")
        await page.keyboard.press("Enter")
        first = page.get_by_role("list", name="Results").get_by_role("listitem").first
        await expect(first).to_contain_text("Shelf 3 holds jar 3.")
        await expect(first).to_contain_text("Turn 4")
        await expect(first.get_by_text("score")).to_be_visible()
        await page.get_by_role("searchbox").fill("volcano")
        await page.keyboard.press("Enter")
        await expect(page.get_by_text("Nothing of the earlier turns")).to_be_visible()


async def test_facts_are_corrected_and_forgotten_one_by_one(browser, newcomer):
    await chat(newcomer, "facts", "My name is Ada and I live in Turin.", personal_memory=True)

    async def known() -> list[str]:
        address = f"{newcomer.url}/beta/v1/memory/profile"
        async with newcomer.http.get(address, headers=newcomer.bearer()) as answer:
            return sorted(fact["value"] for fact in (await answer.json())["facts"])

    async def are_known() -> bool:
        return len(await known()) == 2

    await until(are_known)
    async with opened(browser, newcomer, "/console/memory") as page:
        facts = page.get_by_role("list", name="Facts")
        home = facts.get_by_role("article", name="You live in Turin.")
        await home.get_by_role("button", name="Correct").click()
        await home.get_by_label("Home, place").fill("Oslo")
        assert await serious_violations(page) == []
        await page.keyboard.press("Enter")
        home = facts.get_by_role("article", name="You live in Oslo.")
        await expect(home).to_be_visible()
        assert await known() == ["Ada", "Oslo"]
        await home.get_by_role("button", name="Forget").click()
        await page.get_by_role("dialog").get_by_role("button", name="Forget").click()
        await expect(facts.get_by_role("article")).to_have_count(1)
        await expect(facts).to_contain_text("Your name is Ada.")
        assert await known() == ["Ada"]
        await page.get_by_role("button", name="Forget everything").first.click()
        await page.get_by_role("dialog").get_by_role("button", name="Forget everything").click()
        await expect(page.get_by_text("Nothing is known about you yet")).to_be_visible()


async def test_a_conversation_goes_on_in_the_chat(browser, newcomer):
    await chat(newcomer, "voyage", "We sail on Monday.")
    async with opened(browser, newcomer, "/console/memory?id=voyage", alone=True) as page:
        await page.get_by_role("button", name="Continue in chat").click()
        await expect(page.get_by_role("article", name="You")).to_contain_text("on Monday")
        await page.get_by_label("Model", exact=True).fill("sandbox/echo")
        await page.get_by_label("Message", exact=True).fill("And return on Friday.")
        await page.keyboard.press("Enter")
        answer = page.get_by_role("article", name="Answer").last
        await expect(answer).to_contain_text("And return on Friday.")
        await expect(answer).to_contain_text("tokens")
        await page.goto("/console/memory?id=voyage")
        turns = page.get_by_role("list", name="Turns").get_by_role("article")
        await expect(turns).to_have_count(2)
        await expect(turns.first).to_contain_text("And return on Friday.")
