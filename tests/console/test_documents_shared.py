"""Documents that others edit at the same time, and sessions that are over."""

import pytest
import pytest_asyncio
from playwright.async_api import expect

from tests.console.conftest import opened
from tests.console.documents import Editor, saved, text, write
from tests.gateway_in_process import running_gateway
from tests.manual_clock import ManualClock

pytestmark = pytest.mark.asyncio(loop_scope="session")

MARKDOWN = "Markdown of the document"


@pytest_asyncio.fixture(loop_scope="session")
async def editor(gateway):
    return await Editor.create(gateway)


async def hide(page):
    """Show the page as one of a hidden tab: it asks for changes only where it edits."""
    await page.evaluate(
        "Object.defineProperty(document, 'hidden', {get: () => true, configurable: true})"
    )


async def test_edits_of_another_client_appear(browser, gateway, editor):
    async with opened(browser, gateway, editor.path) as page:
        await expect(page.get_by_text("The document is empty")).to_be_visible()
        first, second = await editor.insert(text("h1", "One"), text("paragraph", "Two"))
        await expect(page.get_by_role("heading", name="One")).to_be_visible()
        await editor.call("block/text/append", blockId=second, text=" and three")
        await expect(page.get_by_label(MARKDOWN)).to_have_text("# One\n\nTwo and three")
        await editor.call("block/delete", blockId=first)
        await expect(page.get_by_label(MARKDOWN)).to_have_text("Two and three")
        await editor.call("reference/add", reference={"id": "r", "title": "A source"})
        await editor.call("block/cite", blockId=second, cite="r")
        await expect(page.get_by_role("link", name="[1]")).to_be_visible()


async def test_a_change_of_what_is_written_is_a_conflict(browser, gateway, editor):
    first, second = await editor.insert(text("paragraph", "old"), text("paragraph", "two"))
    async with opened(browser, gateway, editor.path) as page:
        alert = page.get_by_role("alert")
        # The page is not told of the other's change before it has written itself.
        await hide(page)
        for choice, expected in (("Save mine over it", "old mine"), ("Give mine up", "theirs")):
            await write(page)
            await page.keyboard.type(" mine")
            await editor.call("block/text/replace", blockId=first, children="theirs")
            await expect(alert).to_contain_text("Somebody changed this block")
            await expect(alert).to_contain_text("theirs")
            await expect(page.locator(".written .kind-paragraph").nth(1)).to_contain_text(" mine")
            assert (await editor.texts())[0] == "theirs"
            await page.get_by_role("button", name=choice).click()
            await expect(alert).to_have_count(0)
            await saved(page)
            assert (await editor.texts())[0] == expected
        await write(page, at=1)
        await page.keyboard.type(" mine")
        await editor.call("block/delete", blockId=second)
        await expect(alert).to_contain_text("Somebody deleted this block")
        await page.get_by_role("button", name="Save as a new block").click()
        await saved(page)
    assert await editor.texts() == ["theirs", "two mine"]


async def test_changes_of_others_come_in_around_the_caret(browser, gateway, editor):
    first, second = await editor.insert(text("paragraph", "one"), text("paragraph", "two words"))
    async with opened(browser, gateway, editor.path) as page:
        await write(page, at=1)
        await page.keyboard.type(", mine")
        await editor.call("block/text/append", blockId=first, text=" theirs")
        edits = [{"old": "two", "new": "2"}]
        await editor.call("block/text/edit", edits=edits, blockId=second)
        await editor.insert(text("h1", "Above"))
        await expect(page.get_by_role("heading", name="Above")).to_be_visible()
        await expect(page.locator(".written")).to_contain_text("2 words, mine")
        await page.keyboard.type(" alone")
        await saved(page)
    assert await editor.texts() == ["# Above", "one theirs", "2 words, mine alone"]


async def test_an_expired_session_is_opened_again(browser, tmp_path):
    clock = ManualClock()
    async with running_gateway(tmp_path, clock=clock) as gateway:
        editor = await Editor.create(gateway)
        await editor.insert(text("paragraph", "old"))
        async with opened(browser, gateway, editor.path) as page:
            await hide(page)
            await write(page)
            clock.now_s += 601
            async with page.expect_request("**/article/v1/session/create"):
                await page.keyboard.type(" new")
            await expect(page.get_by_label(MARKDOWN)).to_have_text("old new")
            await expect(page.get_by_role("alert")).to_have_count(0)


async def test_a_document_deleted_by_others_says_so(browser, gateway, editor):
    async with opened(browser, gateway, editor.path) as page:
        await expect(page.get_by_text("The document is empty")).to_be_visible()
        await editor.call("doc/delete", docId=editor.document_id)
        await expect(page.get_by_role("alert")).to_contain_text("deleted")


async def test_closing_ends_the_session(browser, gateway, editor):
    async with opened(browser, gateway, editor.path) as page:
        await expect(page.get_by_text("The document is empty")).to_be_visible()
        client_id = await page.evaluate("sessionStorage.getItem('gateway.document-client')")
        await page.get_by_role("button", name="Close").click()
        await expect(page.get_by_role("heading", name="Documents")).to_be_visible()
    async with gateway.http.post(
        f"{gateway.url}/article/v1/session/create",
        json={"docId": editor.document_id, "clientId": client_id},
        headers=gateway.api_key(),
    ) as answer:
        assert (await answer.json())["data"]["reused"] is False


async def test_a_page_that_was_left_asks_no_more(browser, gateway, editor):
    async with opened(browser, gateway, "/console/documents", alone=True) as page:
        await page.clock.install()
        async with page.expect_response("**/article/v1/doc/changes"):
            await page.goto(editor.path)
        async with page.expect_response("**/article/v1/doc/changes"):
            await page.clock.fast_forward(2_000)
        await page.get_by_role("link", name="All documents").click()
        await expect(page.get_by_role("article").first).to_be_visible()
        asked = []
        page.on("request", lambda request: asked.append(request.url))
        await page.clock.fast_forward(120_000)
        assert asked == []


async def test_a_hidden_page_asks_again_when_it_is_shown(browser, gateway, editor):
    async with opened(browser, gateway, "/console/documents", alone=True) as page:
        await page.clock.install()
        await page.goto(editor.path)
        await expect(page.get_by_text("The document is empty")).to_be_visible()
        await hide(page)
        asked = []
        page.on("request", lambda request: asked.append(request.url))
        await page.clock.fast_forward(120_000)
        assert asked == []
        await editor.insert(text("paragraph", "new"))
        await page.evaluate(
            """delete document.hidden;
            document.dispatchEvent(new Event("visibilitychange"));"""
        )
        await expect(page.get_by_role("group", name="Paragraph")).to_be_visible()
