"""Texts of documents written in the console: as one text, saved while it is written."""

import pytest
import pytest_asyncio
from playwright.async_api import expect

from tests.console.conftest import opened
from tests.console.documents import Editor, text

pytestmark = pytest.mark.asyncio(loop_scope="session")

MARKDOWN = "Markdown of the document"


@pytest_asyncio.fixture(loop_scope="session")
async def editor(gateway):
    return await Editor.create(gateway)


async def test_texts_are_split_and_joined_and_keep_their_ids(browser, gateway, editor):
    [first] = await editor.insert(text("h1", "Tides"))
    async with opened(browser, gateway, editor.path) as page:
        await page.get_by_role("heading", name="Tides", level=3).click()
        await page.keyboard.press("End")
        await page.keyboard.press("Enter")
        await page.keyboard.type("The sea rises.")
        await page.keyboard.press("Enter")
        await page.keyboard.type("It falls.")
        markdown = page.get_by_label(MARKDOWN)
        await expect(markdown).to_have_text("# Tides\n\nThe sea rises.\n\nIt falls.")
        order = (await editor.call("doc/changes"))["order"]
        assert order[0] == first
        await page.keyboard.press("Home")
        await page.keyboard.press("Backspace")
        await page.keyboard.type(" ")
        await expect(markdown).to_have_text("# Tides\n\nThe sea rises. It falls.")
        assert (await editor.call("doc/changes"))["order"] == order[:2]
        await page.keyboard.press("Control+z")
        await expect(markdown).to_have_text("# Tides\n\nThe sea rises.\n\nIt falls.")
        await page.keyboard.press("Control+y")
        await expect(markdown).to_have_text("# Tides\n\nThe sea rises. It falls.")
