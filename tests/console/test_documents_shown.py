"""Documents in the console: every kind of block, references, Markdown."""

import re

import pytest
import pytest_asyncio
from playwright.async_api import expect

from tests.console.accessibility import serious_violations, serious_violations_in_the_dark
from tests.console.conftest import opened
from tests.console.documents import OF_PAPERS, Editor, saved, text, write

pytestmark = pytest.mark.asyncio(loop_scope="session")

FRAMES = """() => new Promise(
    (resolve) => requestAnimationFrame(() => requestAnimationFrame(() => resolve()))
)"""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def full(gateway):
    """A document with every kind of block."""
    editor = await Editor.create(gateway)
    await editor.insert_everything()
    return editor


async def test_every_kind_of_block_is_shown(browser, gateway, full):
    async with opened(browser, gateway, full.path) as page:
        sheet = page.get_by_role("region", name="Blocks")
        for level, name in ((2, "On tides"), (3, "Introduction"), (4, "Observations")):
            await expect(sheet.get_by_role("heading", name=name, level=level)).to_be_visible()
        await expect(sheet.locator(".kind-author")).to_contain_text("Ada Lovelace1*")
        await expect(sheet.locator(".kind-author")).to_contain_text("1 Analytical Society")
        await expect(sheet.locator(".kind-abstract")).to_have_text(
            "Abstract The sea rises and falls."
        )
        for tag, shown in {
            "strong": "bold",
            "em": "italic",
            "u": "underlined",
            "s": "struck",
            "code": "x = 1",
            "span.inked": "coloured",
        }.items():
            await expect(sheet.locator(f".kind-paragraph {tag}").first).to_have_text(shown)
        link = sheet.get_by_role("link", name="a link")
        await expect(link).to_have_attribute("href", "https://example.org/tides")
        await expect(link).to_have_attribute("rel", "noopener noreferrer")
        await expect(sheet.locator(".kind-paragraph .katex").first).to_be_visible()
        await expect(sheet.locator(".kind-equation .katex-display")).to_be_visible()
        await expect(sheet.locator("ul > li")).to_have_count(2)
        await expect(sheet.locator("ul li ol > li")).to_have_text(["first", "second"])
        await expect(sheet.get_by_role("columnheader", name="Range")).to_be_visible()
        await expect(sheet.get_by_role("cell", name="6 m")).to_be_visible()
        await expect(sheet.locator("pre")).to_have_text("def tide(t):\n    return sin(t)")
        chart = sheet.get_by_role("img", name="A chart of the sea")
        assert await chart.evaluate("image => image.decode().then(() => image.naturalWidth)") == 1
        await expect(sheet.locator("figcaption")).to_have_text("The sea")
        await expect(sheet.get_by_role("link", name="at example.org")).to_be_visible()
        await expect(sheet.locator("dt")).to_have_text("Moon")
        shown = page.get_by_label("Markdown of the document")
        await expect(shown).to_contain_text("**Moon** the satellite")
        text = await shown.evaluate("element => element.textContent")
        assert text.removesuffix("\n\n") == await full.markdown()


async def test_notes_references_and_captions_are_shown(browser, gateway):
    editor = await Editor.create(gateway)
    await editor.insert_everything()
    await editor.insert(*OF_PAPERS)
    async with opened(browser, gateway, editor.path) as page:
        sheet = page.get_by_role("region", name="Blocks")
        await expect(sheet.get_by_role("heading", name="Methods", level=6)).to_be_visible()
        paragraph = sheet.locator(".kind-paragraph", has_text="E = mc")
        await expect(paragraph.locator("sup")).to_have_text("2")
        await expect(paragraph).to_contain_text("[1, p. 3; 2]")
        await expect(paragraph.get_by_role("note")).to_have_text("A note")
        await expect(paragraph.get_by_role("link", name="Figure 1")).to_be_visible()
        await expect(paragraph.get_by_role("link", name="??")).to_be_visible()
        await expect(sheet.locator("blockquote")).to_have_text("The moon pulls.")
        await expect(sheet.locator(".caption").first).to_have_text("Figure 1. The moon")
        await expect(sheet.locator("ol[start='4'] > li")).to_have_text("fourth")
        await expect(sheet.get_by_role("cell", name="6 m").first).to_have_css("text-align", "end")
        # Writing keeps what it does not show.
        before = await editor.markdown()
        await paragraph.click()
        await page.keyboard.press("Home")
        await page.keyboard.type("!")
        await saved(page)
        assert await editor.markdown() == before.replace("E = mc", "!E = mc")


async def test_citations_have_numbers_and_lead_to_the_list(browser, gateway, full):
    async with opened(browser, gateway, full.path) as page:
        entries = page.locator(".references li")
        await expect(entries).to_contain_text(["[1] George", "[2] Isaac Newton", "Not cited “Of"])
        citation = page.get_by_role("link", name="[2]")
        await citation.click()
        await expect(page).to_have_url(re.compile("#reference-2$"))
        await expect(page.locator("#reference-2")).to_be_in_viewport()
        await page.get_by_label("Citation style").select_option("years")
        await expect(page.get_by_role("link", name="(Newton, 1687)")).to_be_visible()
        await page.reload()
        await expect(page.get_by_role("link", name="(Newton, 1687)")).to_be_visible()


async def test_a_reference_is_added_cited_changed_and_deleted(browser, gateway):
    editor = await Editor.create(gateway)
    await editor.insert(text("paragraph", "A claim"))
    async with opened(browser, gateway, editor.path) as page:
        await page.get_by_role("button", name="Add a reference").click()
        await page.get_by_role("textbox", name="Title").fill("Principia")
        await page.get_by_label("Authors, with semicolons").fill("Isaac Newton; Edmond Halley")
        await page.get_by_role("button", name="Save the reference").click()
        await expect(page.locator(".references li")).to_contain_text("Isaac Newton, Edmond Halley.")
        await write(page)
        await page.get_by_label("Cite with the whole block").select_option(label="Principia")
        await expect(page.get_by_role("link", name="[1]")).to_be_visible()
        assert await editor.texts() == ["A claim[1]"]
        await page.get_by_role("button", name="Edit Principia").click()
        await page.get_by_role("textbox", name="Year").fill("1687")
        await page.get_by_label("Authors, with semicolons").fill("")
        await page.get_by_role("button", name="Save the reference").click()
        await expect(page.locator(".references li")).to_contain_text("[1] “Principia”. 1687.")
        [stored] = (await editor.call("doc/read"))["reference"]
        assert stored == {"id": stored["id"], "title": "Principia", "year": "1687"}
        await page.get_by_role("button", name="Delete Principia").click()
        await page.get_by_role("dialog").get_by_role("button", name="Delete").click()
        await expect(page.locator(".references li")).to_have_count(0)
        await expect(page.get_by_role("link", name="[1]")).to_have_count(0)
        assert await editor.texts() == ["A claim"]


async def test_selected_text_is_cited(browser, gateway):
    editor = await Editor.create(gateway)
    await editor.call("reference/add", reference={"id": "r", "title": "R"})
    await editor.insert(text("paragraph", "one two"))
    async with opened(browser, gateway, editor.path) as page:
        await write(page)
        await page.keyboard.press("Home")
        for _ in "one":
            await page.keyboard.press("Shift+ArrowRight")
        await page.wait_for_function("getSelection().toString() === 'one'")
        # The page is told of a selection with the next frame.
        await page.evaluate(FRAMES)
        await page.get_by_label("Cite a reference").select_option("r")
        await expect(page.get_by_role("link", name="[1]")).to_be_visible()
        await saved(page)
        assert await editor.texts() == ["one[1] two"]


async def test_a_full_document_is_accessible(browser, gateway, full):
    async with opened(browser, gateway, full.path) as page:
        await expect(page.locator(".kind-equation .katex")).to_be_visible()
        assert await serious_violations(page) == []
        await page.get_by_role("group", name="Table").dblclick()
        await page.get_by_text("spring", exact=True).click()
        await page.get_by_role("button", name="Style", exact=True).click()
        await page.get_by_role("button", name="Add a reference").click()
        await expect(page.get_by_role("textbox", name="Title")).to_be_visible()
        assert await serious_violations(page) == []
        assert await serious_violations_in_the_dark(page) == []


async def test_a_full_document_fits_a_narrow_screen(browser, gateway, full):
    async with opened(browser, gateway, full.path, viewport={"width": 360, "height": 640}) as page:
        # Formulas are set once they are near the part of the page that is shown.
        await page.locator(".kind-equation").scroll_into_view_if_needed()
        await expect(page.locator(".kind-equation .katex")).to_be_visible()
        await page.get_by_role("button", name="Markdown").click()
        await page.get_by_role("group", name="Table").dblclick()
        await page.get_by_text("spring", exact=True).click()
        await page.get_by_role("button", name="Style of the document").click()
        assert await page.evaluate("document.documentElement.scrollWidth") <= 360
