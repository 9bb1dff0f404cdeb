"""Texts of documents written in the console: as one text, saved while it is written."""

import pytest
import pytest_asyncio
from playwright.async_api import expect

from tests.console.accessibility import serious_violations, serious_violations_in_the_dark
from tests.console.conftest import opened
from tests.console.documents import Editor, block, saved, select_left, text, write

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest_asyncio.fixture(loop_scope="session")
async def editor(gateway):
    return await Editor.create(gateway)


async def order(editor):
    return (await editor.call("doc/changes"))["order"]


async def press(page, *keys):
    for key in keys:
        await page.keyboard.press(key)


async def test_a_document_is_made_and_written_by_keyboard(page, gateway):
    await page.goto("/console/documents")
    await page.get_by_label("Name of a new document").focus()
    await page.keyboard.type("Written by keyboard")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="Written by keyboard")).to_be_visible()
    await expect(page.get_by_text("The document is empty")).to_be_visible()
    await page.get_by_role("textbox", name="Text of the document").focus()
    await page.keyboard.type("/tit")
    await expect(page.get_by_role("listbox").get_by_role("option", name="Title")).to_be_visible()
    assert await serious_violations(page) == []
    assert await serious_violations_in_the_dark(page) == []
    await page.keyboard.press("Enter")
    await page.keyboard.type("On tides")
    await page.keyboard.press("Enter")
    await page.keyboard.type("## Seas")
    await page.keyboard.press("Enter")
    await page.keyboard.type("It **rises** `twice` by $a^2$ and")
    await page.keyboard.press("Shift+Enter")
    await page.keyboard.type("falls")
    await page.keyboard.press("Enter")
    await page.keyboard.type("- spring")
    await page.keyboard.press("Enter")
    await page.keyboard.press("Tab")
    await page.keyboard.type("neap")
    await press(page, "Enter", "Enter", "Enter")
    await page.keyboard.type("> Newton")
    await press(page, "Enter", "Enter")
    await page.keyboard.type("/formula")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("textbox", name="LaTeX")).to_be_focused()
    await page.keyboard.type("x")
    await page.keyboard.press("Control+Enter")
    await expect(block(page, "Formula")).to_have_class("block of-equation selected", timeout=9_000)
    await page.keyboard.press("ArrowDown")
    await page.keyboard.type("The end")
    await saved(page)
    shown = page.get_by_label("Markdown of the document")
    await expect(shown).to_contain_text("The end")
    assert (await shown.text_content()).rstrip() == (
        "# On tides\n\n## Seas\n\nIt **rises** `twice` by $a^2$ and\\\nfalls\n\n"
        "- spring\n  - neap\n\n> Newton\n\n$$\nx\n$$\n\nThe end"
    )


async def test_texts_are_split_and_joined_and_keep_their_ids(browser, gateway, editor):
    lists = {"type": "list", "children": [text("list-item", "a"), text("list-item", "b")]}
    ids = await editor.insert(
        text("h1", "Seas"), text("paragraph", "The sea rises. It falls."), lists
    )
    async with opened(browser, gateway, editor.path) as page:
        await write(page)
        await select_left(page, len(" It falls."))
        await page.keyboard.press("Enter")
        await saved(page)
        assert await editor.texts() == ["# Seas", "The sea rises.", "&#32;It falls.", "- a\n- b"]
        split = await order(editor)
        assert [*split[:2], split[3]] == ids
        # Above a text stands a new one; what is joined is the first.
        await press(page, "Home", "Enter")
        await saved(page)
        assert (await order(editor))[3] == split[2]
        await press(page, "Backspace", "Backspace")
        await page.keyboard.type("!")
        await saved(page)
        assert await editor.texts() == ["# Seas", "The sea rises.! It falls.", "- a\n- b"]
        assert await order(editor) == ids
        written = page.locator(".written")
        await press(page, "Control+z", "Control+z")
        await expect(written).to_contain_text("The sea rises. It falls.")
        await press(page, "Control+y", "Control+y")
        await expect(written).to_contain_text("The sea rises.! It falls.")
        await page.get_by_text("b", exact=True).click()
        await press(page, "Home", "Backspace")
        await page.keyboard.type("c")
        await saved(page)
        assert await editor.texts() == ["# Seas", "The sea rises.! It falls.", "- a", "cb"]
        assert (await order(editor))[:3] == ids


async def test_what_is_written_survives_reloads_and_failures(browser, gateway, editor):
    ids = await editor.insert(text("paragraph", "one"), text("paragraph", "two"))
    async with opened(browser, gateway, editor.path) as page:
        await write(page)
        stored = []

        async def lose(route):
            # The edit is stored, but nobody hears of it.
            stored.append((await route.fetch()).status)
            await route.abort()

        await page.route("**/article/v1/edits/apply", lose)
        await page.keyboard.type(" mine")
        await page.keyboard.press("Enter")
        await page.keyboard.type("new")
        state = page.get_by_role("status", name="State of the text")
        await expect(state).to_have_text("Not saved")
        assert stored == [200]
        await page.keyboard.type("er")
        await editor.call("block/text/append", blockId=ids[1], text=" theirs")
        await page.unroute("**/article/v1/edits/apply")
        await page.reload()
        await expect(page.locator(".written")).to_contain_text("newer")
        await saved(page)
        assert await editor.texts() == ["one mine", "newer", "two theirs"]
        # Leaving the page saves.
        await write(page)
        await page.keyboard.type(" last")
        await page.get_by_role("link", name="All documents").click()
        await page.get_by_role("article").first.wait_for()
        await page.goto(editor.path)
        await expect(page.locator(".written")).to_contain_text("one mine last")
        await saved(page)
        assert (await editor.texts())[0] == "one mine last"


OF_WORD = """<html><head><style>p {color: red}</style></head><body>
<h1 style='mso-x:y'>Methods</h1>
<p class=MsoNormal style='margin:0'>We <b>read</b> a <i>gauge</i><script>window.ran = 1</script>,
<a href="https://example.org/">here</a> and <a href="javascript:ran=1">there</a>.<o:p></o:p></p>
<p class=MsoListParagraph style='mso-list:l0 level1 lfo1'><![if !supportLists]><span
style='mso-list:Ignore'>·<span>&nbsp;</span></span><![endif]>spring</p>
<p class=MsoListParagraph style='mso-list:l0 level2 lfo1'>neap</p>
<blockquote><p>Newton<img src=x onerror="window.ran = 1"></p></blockquote></body></html>"""

PASTE = """(element, [html, plain]) => {
    const data = new DataTransfer();
    data.setData("text/html", html);
    data.setData("text/plain", plain);
    element.dispatchEvent(new ClipboardEvent(
        "paste", {clipboardData: data, bubbles: true, cancelable: true}));
}"""


async def test_texts_of_word_are_pasted_with_their_blocks(browser, gateway, editor):
    await editor.insert(text("paragraph", ""))
    async with opened(browser, gateway, editor.path) as page:
        await write(page)
        written = page.locator(".written")
        await written.evaluate(PASTE, [OF_WORD, "Methods"])
        await expect(page.get_by_role("heading", name="Methods")).to_be_visible()
        await saved(page)
        assert await editor.texts() == [
            "# Methods",
            "We **read** a *gauge*, [here](https://example.org/) and there.",
            "- spring\n  - neap",
            "> Newton",
        ]
        await page.keyboard.press("Control+End")
        await written.evaluate(PASTE, ["", "!\nsecond <b>"])
        await saved(page)
        assert (await editor.texts())[3:] == ["> Newton!", r"second \<b\>"]
        assert await page.evaluate("window.ran") is None


LATEX = r"""\section{Theory}
The tide is $h(t)$.
\begin{itemize}\item spring\end{itemize}
\begin{tabular}{lr} Port & Range \\ Brest & 6 \end{tabular}
"""
OF_A_SPREADSHEET = """<table data-made='{"type":"code"}'><colgroup><col></colgroup><tbody>
<tr><td colspan=9>Ports<script>window.ran = 1</script></td></tr>
<tr><th><p>Brest</p><p>west</p></th><td rowspan=9>6 <b>m</b></td></tr><tr><td>x</td></tr></table>"""


async def test_latex_and_tables_are_pasted_as_blocks(browser, gateway, editor):
    await editor.insert(text("title", "Tides"), text("paragraph", "Before after"))
    async with opened(browser, gateway, editor.path) as page:
        await write(page)
        await select_left(page, len(" after"))
        written = page.locator(".written")
        imported = page.expect_response("**/article/v1/doc/import")
        async with imported:
            await written.evaluate(PASTE, ["<pre>colours of an editor</pre>", LATEX])
        await expect(page.get_by_role("heading", name="Theory")).to_be_visible()
        theory = ["# Theory", "The tide is $h(t)$.", "- spring"]
        of_ports = "| Port | Range |\n| :--- | ---: |\n| Brest | 6 |"
        assert await editor.texts() == ["# Tides", "Before", *theory, of_ports, "&#32;after"]
        # All of it is one step.
        await page.keyboard.press("Control+z")
        await expect(page.get_by_role("heading", name="Theory")).to_have_count(0)
        await page.keyboard.press("Control+End")
        await page.keyboard.press("Enter")
        await written.evaluate(PASTE, [OF_A_SPREADSHEET, "Ports\t"])
        await expect(page.get_by_role("table")).to_be_visible()
        await saved(page)
        assert (await editor.texts())[3] == (
            '<table>\n<tr><th colspan="2">Ports</th></tr>\n'
            '<tr><td>Brest<br>west</td><td rowspan="2">6 <strong>m</strong></td></tr>\n'
            "<tr><td>x</td></tr>\n</table>"
        )
        await page.keyboard.press("Control+End")
        await page.keyboard.type("It costs")
        await written.evaluate(PASTE, ["", " $5, $6 or $x^2$"])
        await page.keyboard.press("Enter")
        await written.evaluate(PASTE, ["", 'a\tb\n"c\nd"\t$e'])
        await expect(page.get_by_role("table")).to_have_count(2)
        await saved(page)
        assert (await editor.texts())[4:] == [
            r"It costs \$5, \$6 or $x^2$",
            "| a | b |\n| --- | --- |\n| c<br>d | \\$e |",
        ]
        assert await page.evaluate("window.ran") is None
