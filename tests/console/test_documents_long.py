"""A document of 600 blocks, in `make soak` of 2,000, in the console."""

import asyncio
import re

import pytest
import pytest_asyncio
from playwright.async_api import expect

from tests.console.conftest import opened
from tests.console.documents import Editor, saved, text
from tests.thoroughness import is_soak

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.thorough]

_BLOCKS = 2_000 if is_soak() else 600

# How long a busy machine may take to show all blocks.
LONGEST_MS = 120_000

# Ids of the blocks in which anything on the page changes, from now on.
WATCH = """() => {
    window.changed = new Set();
    new MutationObserver((records) => {
        for (const { target, type } of records) {
            // That the text has the focus is no change of a block.
            if (type === "attributes" && target.matches(".written")) continue;
            if (!target.isConnected) continue;
            const element = target instanceof Element ? target : target.parentElement;
            const { block } = element.closest("[data-block]")?.dataset ?? {};
            window.changed.add(block ?? `${type} of ${element.className}`);
        }
    }).observe(document.querySelector(".sheet"), {
        subtree: true, childList: true, characterData: true, attributes: true,
    });
}"""

# Classes of the elements of blocks that have layers, but of the selected block and of formulas.
LAYERED = """() => [...document.querySelectorAll(".block:not(.selected), .block *:not(.formula *)")]
    .filter((element) => {
        const { position, contain } = getComputedStyle(element);
        return position !== "static" || contain !== "none";
    })
    .map((element) => element.className)"""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def long(gateway):
    editor = await Editor.create(gateway)
    blocks = [
        {"type": "equation", "equation": f"x_{{{n}}}"} if n % 10 == 0 else text("paragraph", f"{n}")
        for n in range(1, _BLOCKS)
    ]
    await editor.insert(text("title", "Long"))
    for start in range(0, len(blocks), 500):
        await editor.insert(*blocks[start : start + 500], at=start + 1)
    return editor


async def test_its_first_blocks_come_before_the_others_are_read(browser, gateway, long):
    async with opened(browser, gateway, "/console/documents") as page:
        asked = []

        async def hold(route):
            asked.append(len(route.request.post_data_json["blockIds"]))
            if len(asked) == 1:
                await route.continue_()

        await page.route("**/article/v1/doc/read-blocks", hold)
        await page.goto(long.path)
        await expect(page.get_by_role("heading", name="Long", level=2)).to_be_visible(
            timeout=LONGEST_MS
        )
        await expect(page.get_by_role("group", name="Formula")).to_have_count(9, timeout=LONGEST_MS)
        assert asked[0] == 100


async def test_its_end_is_written_on_before_it_has_been_read(browser, gateway, long):
    async with opened(browser, gateway, "/console/documents") as page:
        may_read = asyncio.Event()

        async def hold(route):
            if len(route.request.post_data_json["blockIds"]) > 100:
                await may_read.wait()
            await route.continue_()

        await page.route("**/article/v1/doc/read-blocks", hold)
        await page.goto(long.path)
        text = page.get_by_role("textbox", name="Text of the document")
        await text.focus(timeout=LONGEST_MS)
        last = page.locator("[data-block]").last
        await expect(last).to_have_class(re.compile("unread"), timeout=LONGEST_MS)
        await page.keyboard.press("Control+End")
        may_read.set()
        await expect(last).to_have_text(f"{_BLOCKS - 1}", timeout=LONGEST_MS)
        await page.keyboard.type("!")
        await expect(last).to_have_text(f"{_BLOCKS - 1}!")
        await page.keyboard.press("Backspace")
        await saved(page)


async def test_its_last_block_is_edited_and_no_other_changes(browser, gateway, long):
    async with opened(browser, gateway, long.path) as page:
        blocks = page.locator("[data-block]")
        await expect(blocks).to_have_count(_BLOCKS, timeout=LONGEST_MS)
        await page.get_by_role("textbox", name="Text of the document").focus()
        await page.keyboard.press("Control+End")
        await expect(blocks.last).to_be_in_viewport(timeout=LONGEST_MS)
        # Formulas near it are set, of which it is the last that comes near.
        formula = page.get_by_role("group", name="Formula").last
        await expect(formula.locator(".katex")).to_be_visible(timeout=LONGEST_MS)
        last = await blocks.last.get_attribute("data-block")
        await page.evaluate(WATCH)
        async with page.expect_response("**/article/v1/doc/read-blocks") as read:
            await page.keyboard.type(" edited")
        assert (await read.value).request.post_data_json["blockIds"] == [last]
        await expect(blocks.last).to_contain_text(f"{_BLOCKS - 1} edited", timeout=LONGEST_MS)
        assert await page.evaluate("[...window.changed]") == [last]
        assert (await long.texts())[-1] == f"{_BLOCKS - 1} edited"


async def test_its_formulas_are_set_as_they_come_near(browser, gateway, long):
    async with opened(browser, gateway, long.path) as page:
        blocks = page.locator("[data-block]")
        await expect(blocks).to_have_count(_BLOCKS, timeout=LONGEST_MS)
        await expect(page.locator(".katex").first).to_be_visible(timeout=LONGEST_MS)
        assert await page.locator(".formula .katex").count() < 100
        formula = await page.get_by_role("group", name="Formula").last.element_handle()
        before = await formula.bounding_box()
        await formula.scroll_into_view_if_needed()
        await formula.wait_for_selector(".katex", timeout=LONGEST_MS)
        # What is below stays where it is.
        after = await formula.bounding_box()
        assert after["height"] == before["height"]


async def test_no_block_of_it_has_a_layer(browser, gateway, long):
    async with opened(browser, gateway, long.path) as page:
        await expect(page.locator("[data-block]")).to_have_count(_BLOCKS, timeout=LONGEST_MS)
        await expect(page.locator(".katex").first).to_be_visible(timeout=LONGEST_MS)
        # The browser looks through all layers whenever the page moves.
        assert await page.evaluate(LAYERED) == []
