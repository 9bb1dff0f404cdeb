"""What the console does with whole documents: moves, searches, history, and who else is here."""

import re

import pytest
import pytest_asyncio
from playwright.async_api import expect

from tests.console.accessibility import serious_violations
from tests.console.conftest import opened
from tests.console.documents import Editor, block, saved, table, text, write

pytestmark = pytest.mark.asyncio(loop_scope="session")

MARKDOWN = "Markdown of the document"


@pytest_asyncio.fixture(loop_scope="session")
async def editor(gateway):
    return await Editor.create(gateway)


async def order(editor):
    return (await editor.call("doc/changes"))["order"]


async def test_blocks_are_dragged_and_moved_by_keys(browser, gateway, editor):
    ids = await editor.insert(
        text("h1", "a"), text("paragraph", "b"), text("h1", "c"), text("paragraph", "d")
    )
    async with opened(browser, gateway, editor.path) as page:
        markdown = page.get_by_label(MARKDOWN)
        await block(page, "Heading 1", 1).hover()
        handle = block(page, "Heading 1", 1).locator(".handle")
        await handle.drag_to(block(page, "Heading 1"), target_position={"x": 60, "y": 3})
        # A heading takes its section along.
        await expect(markdown).to_have_text("# c\n\nd\n\n# a\n\nb")
        assert await order(editor) == [ids[2], ids[3], ids[0], ids[1]]
        await write(page, "Paragraph", 1)
        await page.keyboard.press("Alt+ArrowUp")
        await saved(page)
        assert await editor.texts() == ["# c", "d", "b", "# a"]
        await page.keyboard.press("Control+z")
        await page.keyboard.press("Control+z")
        await expect(markdown).to_have_text("# a\n\nb\n\n# c\n\nd")
        redo = page.get_by_role("button", name="Redo")
        await redo.click()
        await expect(markdown).to_have_text("# c\n\nd\n\n# a\n\nb")
        await redo.click()
        await expect(redo).to_be_disabled()
        assert await order(editor) == [ids[2], ids[3], ids[1], ids[0]]


async def test_texts_are_found_and_replaced(browser, gateway, editor):
    await editor.insert(
        text("paragraph", "The sea, the Sea"), table(["sea", "range"]), text("paragraph", "6 m")
    )
    async with opened(browser, gateway, editor.path) as page:
        await page.get_by_role("button", name="Find", exact=True).click()
        bar = page.get_by_role("search", name="Find and replace")
        await expect(bar.get_by_label("Find", exact=True)).to_be_focused()
        await page.keyboard.type("sea")
        await page.keyboard.press("Enter")
        await expect(bar.get_by_role("status")).to_contain_text("1 of 3")
        await bar.get_by_role("button", name="Previous").click()
        await expect(bar.get_by_role("status")).to_contain_text("3 of 3")
        await expect(block(page, "Table")).to_have_class(re.compile("selected"))
        await bar.get_by_label("Replace by").fill("ocean")
        await bar.get_by_role("button", name="Replace everywhere").click()
        await expect(bar.get_by_role("status")).to_contain_text("Replaced in 2 blocks.")
        assert (await editor.texts())[0] == "The ocean, the Sea"
        await bar.get_by_label("Regular expression").check()
        await bar.get_by_label("Find", exact=True).fill(r"\d+ m$")
        await page.keyboard.press("Enter")
        await expect(bar.get_by_role("status")).to_contain_text("1 of 1: 6 m")
        assert await serious_violations(page) == []


async def test_history_shows_changes_and_restores(browser, gateway, editor):
    [first] = await editor.insert(text("paragraph", "The moon pulls"))
    await editor.call("block/text/append", blockId=first, text=" the sea")
    async with opened(browser, gateway, editor.path) as page:
        await page.get_by_role("button", name="History").click()
        card = page.get_by_role("article", name="Revision 2", exact=True)
        await card.get_by_role("button", name="Show changes").click()
        await expect(card.locator("ins")).to_have_text(" the sea")
        await expect(card.locator("del")).to_have_count(0)
        card = page.get_by_role("article", name="Revision 1", exact=True)
        await card.get_by_role("button", name="Restore").click()
        await page.get_by_role("dialog").get_by_role("button", name="Restore").click()
        await expect(page.get_by_label(MARKDOWN)).to_have_text("The moon pulls")
        await expect(page.get_by_role("article", name="Revision 3", exact=True)).to_be_visible()
        await page.get_by_role("button", name="Undo").click()
        await expect(page.get_by_label(MARKDOWN)).to_have_text("The moon pulls the sea")


@pytest.mark.soak
async def test_rows_and_columns_are_changed_in_place(browser, gateway, editor):
    [shown] = await editor.insert(table(["a", "b"], ["c", "d"]))
    before = (await editor.call("doc/read-block", blockId=shown))["block"]["children"]
    async with opened(browser, gateway, editor.path) as page:
        await block(page, "Table").click()
        await page.get_by_label("Row", exact=True).fill("2")
        cells = page.get_by_label("Rows, columns and cells")
        await cells.select_option("Insert a row above")
        await expect(page.get_by_label(MARKDOWN)).to_have_text(
            "| a | b |\n| --- | --- |\n|  |  |\n| c | d |"
        )
        await page.get_by_label("Column", exact=True).fill("2")
        await cells.select_option("Delete the column")
        await expect(page.get_by_label(MARKDOWN)).to_have_text("| a |\n| --- |\n|  |\n| c |")
    after = (await editor.call("doc/read-block", blockId=shown))["block"]["children"]
    assert [after[0]["id"], after[2]["id"]] == [row["id"] for row in before]
    assert after[0]["children"][0] == before[0]["children"][0]


async def test_it_says_who_else_is_here(browser, gateway, editor):
    await editor.call("doc/read")
    created = {"docId": editor.document_id, "clientId": "reviewer"}
    async with gateway.http.post(
        f"{gateway.url}/article/v1/session/create", json=created, headers=gateway.api_key()
    ) as answer:
        assert answer.status == 200
    async with opened(browser, gateway, editor.path) as page:
        here = page.get_by_role("status", name="Who else is here")
        await expect(here).to_have_text("Also here: reviewer, a program of yours")
