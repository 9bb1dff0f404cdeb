"""Comments and suggestions beside a document, and the dialog that shares it."""

import pytest
import pytest_asyncio
from playwright.async_api import expect

from services.accounts.repository import AccountRepository
from services.common.settings import Storage
from services.common.storage.database import open_engine
from tests.console.accessibility import serious_violations
from tests.console.conftest import opened
from tests.console.documents import Editor, text, write

pytestmark = pytest.mark.asyncio(loop_scope="session")

MARKDOWN = "Markdown of the document"


@pytest_asyncio.fixture(loop_scope="session")
async def editor(gateway):
    return await Editor.create(gateway)


async def test_suggestions_are_decided_beside_the_text(browser, gateway, editor):
    first, _ = await editor.insert(text("paragraph", "The moon pulls"), text("paragraph", "x"))
    edits = [{"old": "moon", "new": "sun"}]
    await editor.call("block/text/edit", edits=edits, suggest=True)
    await editor.call("block/delete", blockId=first, suggest=True)
    async with opened(browser, gateway, editor.path) as page:
        await page.get_by_role("button", name="Comments").click()
        cards = page.get_by_role("article", name="Suggestion of You")
        await expect(cards).to_have_count(2)
        await expect(cards.nth(0).locator("ins")).to_have_text("sun")
        await cards.nth(0).get_by_role("button", name="Accept").click()
        await expect(page.get_by_label(MARKDOWN)).to_have_text("The sun pulls\n\nx")
        # What it would delete has changed.
        await expect(cards).to_have_count(1)
        await expect(cards.get_by_role("button", name="Accept")).to_be_disabled()
        await cards.get_by_role("button", name="Withdraw").click()
        await expect(cards).to_have_count(0)
    assert await editor.texts() == ["The sun pulls", "x"]


async def test_suggestions_of_others_are_decided_in_the_text(browser, newcomer, new_user):
    editor = await Editor.create(newcomer)
    other = await editor.share(await new_user())
    marked = {"text": "bold", "bold": True}
    first, _, third, fourth = await editor.insert(
        text("paragraph", "The moon pulls the sea."),
        text("paragraph", "Nothing happens here."),
        text("paragraph", "It is needless."),
        text("paragraph", "A ", marked, " word."),
    )

    async def suggest(endpoint, **body):
        await other.call(endpoint, **body, suggest=True)

    await suggest("block/text/edit", edits=[{"old": "moon", "new": "red sun"}])
    await suggest("block/delete", blockId=third)
    await suggest("block/insert", path=[2], blocks=[text("paragraph", "It falls again.")])
    await suggest("block/text/edit", edits=[{"old": " word", "new": " letter"}])
    async with opened(browser, newcomer, editor.path) as page:
        cards = page.get_by_role("group", name="Suggested by user")
        await expect(cards).to_have_count(4)
        moon = page.locator(f'[data-block="{first}"]')
        await expect(moon.locator("del")).to_have_text("moon")
        await expect(moon.locator("ins")).to_have_text("red sun")
        needless = page.locator(f'[data-block="{third}"] .content')
        await expect(needless).to_have_css("text-decoration-line", "line-through")
        await expect(page.locator("ins.suggested-block")).to_have_text("It falls again.")
        # What is not plain text is compared as Markdown, below it.
        await expect(cards.nth(3).locator("del")).to_have_text("word")
        assert await serious_violations(page) == []
        # What is written meanwhile is no part of it.
        await write(page, at=1)
        await page.keyboard.type(" Yet.")
        await cards.first.get_by_role("button", name="Accept").click()
        await expect(cards).to_have_count(3)
        await expect(moon).to_have_text("The red sun pulls the sea.")
        await expect(moon.locator("ins, del")).to_have_count(0)
        await cards.nth(0).get_by_role("button", name="Accept").click()
        await expect(cards).to_have_count(2)
        await cards.nth(0).get_by_role("button", name="Reject").click()
        await expect(cards).to_have_count(1)
        await editor.call("block/text/replace", blockId=fourth, children="Another.")
        await expect(cards).to_contain_text("cannot be accepted")
        await expect(cards.locator("ins, del")).to_have_count(0)
        await cards.get_by_role("button", name="Reject").click()
        await expect(cards).to_have_count(0)
    texts = ["The red sun pulls the sea.", "Nothing happens here. Yet.", "It falls again."]
    assert await editor.texts() == [*texts, "It is needless.", "Another."]


async def test_a_comment_is_written_answered_and_resolved(browser, gateway, editor):
    await editor.insert(text("paragraph", "The moon pulls"))
    async with opened(browser, gateway, editor.path) as page:
        await page.get_by_role("button", name="Comments").click()
        await write(page)
        await page.get_by_label("Comment on the selected block").fill("Only it?")
        await page.get_by_role("button", name="Comment", exact=True).click()
        card = page.get_by_role("article", name="Comment of You")
        await expect(card).to_contain_text("Only it?")
        await card.get_by_label("Text of the reply").fill("And the sun.")
        await card.get_by_role("button", name="Reply").click()
        await expect(card).to_contain_text("And the sun.")
        assert await serious_violations(page) == []
        await card.get_by_role("button", name="Resolve").click()
        await expect(card).to_have_count(0)
    [thread] = (await editor.call("comment/list", resolved=True))["comments"]
    assert [thread["text"], *(one["text"] for one in thread["replies"])] == [
        "Only it?",
        "And the sun.",
    ]


async def test_a_document_is_shared_in_a_dialog(browser, newcomer, new_user, gateway_folder):
    editor = await Editor.create(newcomer)
    engine = open_engine(Storage(data_dir=gateway_folder))
    bob_id = (await AccountRepository(engine).identify((await new_user()).key)).user_id
    await engine.dispose()
    async with opened(browser, newcomer, editor.path) as page:
        await page.get_by_role("button", name="Share").click()
        dialog = page.get_by_role("dialog", name="Share")
        await dialog.get_by_label("Name of a new group").last.fill("Tides lab")
        await dialog.get_by_role("button", name="Create").click()
        await dialog.get_by_role("combobox").first.select_option("Tides lab")
        add = dialog.get_by_role("form", name="Id of a user to add")
        await add.get_by_role("textbox").fill("user_unknown")
        await add.get_by_role("button", name="Add").click()
        await expect(dialog.get_by_role("alert")).to_contain_text("no user has this id")
        await add.get_by_role("textbox").fill(bob_id)
        await add.get_by_role("button", name="Add").click()
        await expect(dialog.get_by_role("listitem")).to_have_count(2)
        assert await serious_violations(page) == []
        await dialog.get_by_role("button", name="Remove").click()
        await expect(dialog.get_by_role("listitem")).to_have_count(1)
        await dialog.get_by_role("textbox", name="Name of the document").fill("Of tides")
        await dialog.get_by_role("button", name="Rename").click()
        await dialog.get_by_role("button", name="Close").click()
        await expect(page.get_by_role("heading", name="Of tides", level=1)).to_be_visible()
