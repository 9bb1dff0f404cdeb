"""Markup, scripts and addresses in documents: shown as they were written, and without effect."""

import pytest
import pytest_asyncio
from playwright.async_api import expect

from tests.console.conftest import opened
from tests.console.documents import Editor, table, text

pytestmark = pytest.mark.asyncio(loop_scope="session")

MARKUP = "<img src=x onerror='window.ran = 1'><script>window.ran = 1</script>"
SCRIPT = "javascript:window.ran=1"
SVG = (
    "data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg' onload='parent.ran=1'>"
    "<script>parent.ran=1</script></svg>"
)
FORMULAS = (
    f"\\href{{{SCRIPT}}}{{x}}",
    f"\\url{{{SCRIPT}}}",
    "\\htmlClass{sheet}{x}",
    "\\htmlStyle{position:fixed}{x}",
    "\\htmlData{block=1}{x}",
    "\\includegraphics{https://example.org/x.png}",
    MARKUP,
    "\\def\\a{\\a\\a}\\a",
)
BLOCKS = [
    *(text(kind, MARKUP) for kind in ("title", "h1", "h2", "h3", "paragraph", "abstract", "label")),
    text("paragraph", {"type": "url", "text": MARKUP, "url": SCRIPT}),
    text("paragraph", {"type": "url", "text": "data", "url": f"data:text/html,{MARKUP}"}),
    text("paragraph", {"type": "url", "text": "own", "url": "/console"}),
    text("paragraph", {"type": "inlinecode", "text": MARKUP}),
    *(text("paragraph", {"type": "latex", "text": formula}) for formula in FORMULAS),
    *({"type": "equation", "equation": formula} for formula in FORMULAS),
    {"type": "list", "children": [text("list-item", MARKUP)]},
    table([MARKUP, SCRIPT]),
    {"type": "code", "code": MARKUP, "language": MARKUP[:60]},
    {"type": "image", "image": [{"url": SVG, "alt": MARKUP, "title": MARKUP}]},
    {"type": "image", "image": [{"url": "https://example.org/x.svg", "alt": MARKUP}]},
    {
        "type": "author",
        "author": [{"id": 1, "name": MARKUP, "institutionId": 1}],
        "institution": [{"id": 1, "name": MARKUP}],
    },
    {
        "type": "label",
        "children": [{"type": "label-item", "name": MARKUP, "children": [{"text": MARKUP}]}],
    },
]
REFERENCE = {
    "id": MARKUP,
    "title": MARKUP,
    "author": [MARKUP],
    "year": "<b>1687</b>",
    "url": SCRIPT,
    "doi": '"><script>window.ran=1</script>',
}
LEFT = """() => [
    window.ran,
    document.querySelectorAll("main script, main iframe, main object, main [onerror]").length,
    [...document.querySelectorAll("main img[src]")].map((image) => image.src.slice(0, 15)),
    [...new Set([...document.querySelectorAll("main a")].map((link) => link.protocol))],
    document.querySelectorAll(".katex a, .katex img, .katex .sheet").length,
]"""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def hostile(gateway):
    """A document with scripts wherever texts go."""
    editor = await Editor.create(gateway, MARKUP)
    await editor.call("reference/add", reference=REFERENCE)
    await editor.insert(*BLOCKS)
    cited = await editor.insert(text("paragraph", {"text": "cited", "cite": MARKUP}))
    await editor.call("block/style", blockId=cited[0], style={"backgroundColor": "red"})
    return editor


async def test_scripts_in_documents_do_nothing(browser, gateway, hostile):
    requests = []
    async with opened(browser, gateway, "/console/documents") as page:
        page.on("request", lambda request: requests.append(request.url))
        await page.goto(hostile.path)
        await expect(page.locator("[data-block]")).to_have_count(len(BLOCKS) + 1)
        await expect(page.get_by_role("heading", name=MARKUP, level=1)).to_be_visible()
        await expect(page.get_by_role("cell", name="javascript:")).to_have_count(0)
        await expect(page.get_by_role("columnheader", name=SCRIPT)).to_be_visible()
        for frame in await page.locator("[data-block]").all():
            await frame.scroll_into_view_if_needed()
        await expect(page.locator(".references li")).to_contain_text(MARKUP)
        await page.get_by_label("Citation style").select_option("years")
        ran, markup, images, schemes, from_formulas = await page.evaluate(LEFT)
        assert (ran, markup, from_formulas) == (None, 0, 0)
        assert images == ["data:image/svg+"]
        assert set(schemes) <= {"http:", "https:", "mailto:"}
        links = [await link.get_attribute("href") for link in await page.locator("main a").all()]
        assert not [href for href in links if href.lower().startswith(("javascript", "data"))]
        assert all(url.startswith((gateway.url, "data:")) for url in requests)


async def test_scripts_in_forms_do_nothing(browser, gateway, hostile):
    before = await hostile.markdown()
    async with opened(browser, gateway, hostile.path) as page:
        for name in ("Table", "Label", "Formula", "Figure"):
            await page.get_by_role("group", name=name, exact=True).last.dblclick()
            form = page.get_by_role("form", name="Edit the block")
            await expect(form).to_be_visible()
            assert (await page.evaluate(LEFT))[:2] == [None, 0]
            await form.get_by_role("button", name="Save").click()
            await expect(form).to_have_count(0)
    assert await hostile.markdown() == before


async def test_scripts_in_names_of_the_list_do_nothing(browser, gateway, hostile):
    async with opened(browser, gateway, "/console/documents") as page:
        card = page.get_by_role("article", name=MARKUP).first
        await expect(card.get_by_role("heading", name=MARKUP)).to_be_visible()
        assert (await page.evaluate(LEFT))[:3] == [None, 0, []]
