"""Documents in the console: the list, and editing of blocks."""

import pytest
import pytest_asyncio
from playwright.async_api import expect

from tests.console.conftest import opened
from tests.console.documents import Editor, block, saved, table, text, write

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest_asyncio.fixture(loop_scope="session")
async def editor(gateway):
    return await Editor.create(gateway)


async def test_the_list_opens_and_deletes_documents(browser, gateway):
    named = await Editor.create(gateway, "To be deleted")
    async with opened(browser, gateway, "/console/documents") as page:
        card = page.get_by_role("article", name="To be deleted")
        await card.get_by_role("link").click()
        await expect(page).to_have_url(gateway.url + named.path)
        await page.get_by_role("link", name="All documents").click()
        await card.get_by_role("button", name="Delete").click()
        await page.get_by_role("dialog").get_by_role("button", name="Delete").click()
        await expect(page.get_by_role("heading", name="Documents")).to_be_visible()
        await expect(card).to_have_count(0)
        await page.goto(named.path)
        await expect(page.get_by_text("There is no such document")).to_be_visible()


async def test_an_empty_list_says_what_to_do(browser, newcomer):
    async with opened(browser, newcomer, "/console/documents") as page:
        await expect(page.get_by_text("There are no documents yet")).to_be_visible()


async def test_blocks_move_change_type_and_go_and_come_back(browser, gateway, editor):
    await editor.insert(text("h1", "a"), text("paragraph", "b"), text("paragraph", "c"))
    async with opened(browser, gateway, editor.path) as page:
        markdown = page.get_by_label("Markdown of the document")
        undo = page.get_by_role("button", name="Undo")
        await write(page, "Paragraph", 1)
        await page.get_by_role("button", name="Move up").click()
        await expect(markdown).to_have_text("# a\n\nc\n\nb")
        await page.get_by_label("Type of the block").select_option("h2")
        await expect(markdown).to_have_text("# a\n\n## c\n\nb")
        await page.get_by_role("button", name="Move up").click()
        await expect(markdown).to_have_text("## c\n\n# a\n\nb")
        await page.get_by_role("button", name="Delete", exact=True).click()
        await expect(markdown).to_have_text("# a\n\nb")
        for shown in ("## c\n\n# a\n\nb", "# a\n\n## c\n\nb", "# a\n\nc\n\nb", "# a\n\nb\n\nc"):
            await undo.click()
            await expect(markdown).to_have_text(shown)
        await expect(undo).to_be_disabled()
        assert await editor.texts() == ["# a", "b", "c"]


async def test_undo_of_a_text_that_others_changed_is_refused(browser, gateway, editor):
    [first] = await editor.insert(text("paragraph", "one"))
    async with opened(browser, gateway, editor.path) as page:
        await write(page)
        await page.keyboard.type(" two")
        await expect(page.get_by_role("button", name="Undo")).to_be_enabled()
        await editor.call("block/text/append", blockId=first, text=" three")
        await expect(block(page, "Paragraph")).to_contain_text("one two three")
        await page.get_by_role("button", name="Undo").click()
        await expect(page.get_by_role("alert")).to_contain_text("40903")
        assert await editor.texts() == ["one two three"]


FORMS = {
    "table": (
        {
            "type": "table",
            "children": [
                {
                    "type": "table-row",
                    "children": [text("table-cell", "a"), text("table-cell", "b")],
                }
            ],
        },
        "Table",
        "Row 1, column 2",
        "| a | b! |\n| --- | --- |",
    ),
    "code": (
        {"type": "code", "code": "x = 1", "language": "python"},
        "Code",
        "Code",
        "```python\nx = 1!\n```",
    ),
    "equation": ({"type": "equation", "equation": "a"}, "Formula", "LaTeX", "$$\na!\n$$"),
    "author": (
        {"type": "author", "author": [{"id": 1, "name": "Ada"}]},
        "Authors",
        "Author 1",
        "Ada!",
    ),
    "label": (
        {
            "type": "label",
            "children": [{"type": "label-item", "name": "Moon", "children": [{"text": "far"}]}],
        },
        "Label",
        "Text 1",
        "**Moon** far!",
    ),
    "image": (
        {"type": "image", "image": [{"url": "https://example.org/a", "alt": "A map"}]},
        "Figure",
        "Description, for those who do not see it",
        "![A map!](https://example.org/a)",
    ),
}


async def test_each_kind_of_block_is_edited_in_its_form(browser, gateway, editor):
    await editor.insert(*(made for made, *_ in FORMS.values()))
    async with opened(browser, gateway, editor.path) as page:
        for _, name, field, _ in FORMS.values():
            await block(page, name).locator(".content").click(position={"x": 2, "y": 2})
            await page.keyboard.press("Enter")
            await page.get_by_role("textbox", name=field, exact=True).press("End")
            await page.keyboard.type("!")
            await page.keyboard.press("Control+Enter")
            await expect(page.get_by_role("form", name="Edit the block")).to_have_count(0)
        expected = [markdown for *_, markdown in FORMS.values()]
        assert await editor.texts() == expected
        shown = page.get_by_label("Markdown of the document")
        await expect(shown).to_have_text("\n\n".join(expected))


async def test_rows_and_columns_are_added(browser, gateway, editor):
    await editor.insert(table(["a"]))
    async with opened(browser, gateway, editor.path) as page:
        await block(page, "Table").dblclick()
        await page.get_by_role("button", name="Add a row").click()
        await page.get_by_role("button", name="Add a column").click()
        await page.get_by_role("textbox", name="Row 2, column 2").fill("d")
        await page.get_by_role("button", name="Save").click()
        # The form closes once the edit is stored; it has cells too.
        await expect(page.get_by_role("form", name="Edit the block")).to_have_count(0)
        await expect(page.get_by_role("cell", name="d")).to_be_visible()
    assert await editor.texts() == ["| a |  |\n| --- | --- |\n|  | d |"]


async def test_marks_are_kept_and_set(browser, gateway, editor):
    leaves = [
        {"text": "bold", "bold": True},
        {"type": "url", "text": "link", "url": "https://example.org/"},
        {"type": "latex", "text": "x^2"},
        {"text": "red", "color": "red", "textDecoration": "underline"},
    ]
    [first] = await editor.insert(text("paragraph", *leaves))
    async with opened(browser, gateway, editor.path) as page:
        await write(page)
        await page.keyboard.press("Home")
        await page.keyboard.type("more ")
        await saved(page)
        stored = (await editor.call("doc/read-block", blockId=first))["block"]["children"]
        assert [leaf["text"] for leaf in stored] == ["more bold", "link", "x^2", "red"]
        assert [{**leaf, "text": ""} for leaf in stored] == [
            {"type": "default", **leaf, "text": ""} for leaf in leaves
        ]
        for name, expected in (("Italic", "*"), ("Code", "`"), ("No marks", "e")):
            await page.keyboard.press("Control+a")
            await page.get_by_role("button", name=name, exact=True).click()
            await saved(page)
            [shown] = await editor.texts()
            assert shown.count(expected) > 1
    assert await editor.texts() == [r"more boldlinkx\^2red"]


async def test_a_refused_edit_says_why_and_keeps_the_text(browser, gateway, editor):
    await editor.insert({"type": "image", "image": []})
    async with opened(browser, gateway, editor.path) as page:
        await block(page, "Figure").dblclick()
        await page.get_by_role("button", name="Add an address").click()
        await page.get_by_label("Address", exact=True).fill("ftp://example.org/a.png")
        await page.get_by_role("button", name="Save").click()
        await expect(page.get_by_role("alert")).to_contain_text("/image/0/url")
        await expect(page.get_by_label("Address", exact=True)).to_have_value(
            "ftp://example.org/a.png"
        )


async def test_styles_of_blocks_and_of_the_document_are_set(browser, gateway, editor):
    await editor.insert(text("paragraph", "A"))
    async with opened(browser, gateway, editor.path) as page:
        await write(page)
        await page.get_by_role("button", name="Style", exact=True).click()
        await page.get_by_label("Indent the first line").check()
        await page.get_by_label("Font size").fill("40px")
        await page.keyboard.press("Enter")
        shown = page.locator("p", has_text="A").and_(page.locator(".kind-paragraph"))
        await expect(shown).to_have_css("font-size", "40px")
        await expect(shown).to_have_css("text-indent", "80px")
        await page.get_by_role("button", name="Undo").click()
        await expect(shown).to_have_css("font-size", "16px")
        await page.get_by_role("button", name="Style of the document").click()
        await page.get_by_label("Paper").select_option("A5")
        await expect(page.get_by_role("button", name="Undo")).to_have_attribute(
            "title", "Undo the change of the document's style"
        )
    assert (await editor.call("doc/read"))["style"] == {"global": {"paperSize": "A5"}}


async def test_captions_labels_notes_and_columns_are_edited(browser, gateway):
    editor = await Editor.create(gateway)
    for reference_id in ("newton", "darwin"):
        await editor.call("reference/add", reference={"id": reference_id, "title": reference_id})
    shown, written = await editor.insert(table(["a", "b"]), text("paragraph", "The moon pulls"))
    async with opened(browser, gateway, editor.path) as page:
        await block(page, "Table").dblclick()
        form = page.get_by_role("form", name="Edit the block")
        await form.get_by_role("textbox", name="Caption").fill("Heights of tides")
        await form.get_by_label("Label, by which texts refer to it").fill("tab-x")
        await form.get_by_label("Alignment of column 2").select_option("Right")
        await form.get_by_role("button", name="Save").click()
        await expect(form).to_have_count(0)
        await write(page)
        await page.keyboard.press("Shift+Home")
        await page.get_by_label("Place in the reference to cite").fill("p. 3")
        await page.get_by_label("Cite a reference").select_option("newton")
        await page.get_by_label("Cite a reference").select_option("darwin")
        await page.get_by_label("Refer to a block").select_option("Table 1")
        await page.keyboard.press("Home")
        for _ in "The":
            await page.keyboard.press("Shift+ArrowRight")
        await page.get_by_role("button", name="Footnote").click()
        await saved(page)
        read = await editor.call("doc/read-blocks", blockIds=[shown, written])
        first, second = [one["block"] for one in read["blocks"]]
        assert (first["label"], first["align"]) == ("tab-x", [None, "end"])
        assert first["caption"][0]["text"] == "Heights of tides"
        note, words, ref = second["children"]
        assert (note["type"], note["children"][0]["text"]) == ("note", "The")
        assert words["text"] == " moon pulls"
        assert words["cite"] == [{"id": "newton", "locator": "p. 3"}, {"id": "darwin"}]
        assert (ref["type"], ref["ref"]) == ("ref", "tab-x")
        await page.get_by_role("button", name="Undo").click()
        await expect(page.get_by_role("note")).to_have_count(0)
