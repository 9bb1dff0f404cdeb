"""Models that write in a document: what they write is a suggestion, which a person decides on."""

import pytest
import pytest_asyncio
from playwright.async_api import Page, expect

from tests.console.accessibility import serious_violations
from tests.console.conftest import opened
from tests.console.documents import Editor, block, saved, select_left, text, write
from tests.console.scripted_upstream import HOSTILE, ScriptedUpstream
from tests.e2e.searxng import searxng
from tests.gateway_in_process import running_gateway

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.fixture(scope="module")
def upstream():
    return ScriptedUpstream()


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def gateway(upstream, tmp_path_factory):
    """Run a gateway whose models are scripted, and whose search engine finds one page."""
    names = ("held", "brief", "rewriter", "researcher", "broken", "hostile")
    models = [{"name": name, "provider": "openai", "upstream": name} for name in names]
    with searxng() as engine:
        search = {"web_search": {"backend": "searxng", "url": engine.url}}
        folder = tmp_path_factory.mktemp("assisted")
        async with running_gateway(folder, upstream.app, models=models, tools=search) as gateway:
            yield gateway


async def choose(page: Page, model: str) -> None:
    field = page.get_by_label("Model of the document")
    await field.fill(model)
    await field.press("Escape")


async def suggested(editor: Editor) -> list[list[tuple[str | None, str | None]]]:
    """Return what each suggestion changes: blocks before and after."""
    listed = (await editor.call("suggestion/list"))["suggestions"]
    return [[(one.get("before"), one.get("after")) for one in each["blocks"]] for each in listed]


async def test_a_model_writes_and_is_stopped_and_undone(browser, gateway, upstream):
    upstream.reset()
    editor = await Editor.create(gateway)
    await editor.insert(text("title", "Tides"), text("paragraph", "The sea rises."))
    async with opened(browser, gateway, editor.path) as page:
        panel = page.get_by_role("region", name="Help of a model")
        await write(page)
        await page.keyboard.press("Enter")
        await page.keyboard.type("/ask a model")
        await page.keyboard.press("Enter")
        await panel.get_by_label("What should the model write here?").fill("about ebb")
        await choose(page, "held")
        await panel.get_by_role("button", name="Ask", exact=True).click()
        await expect(panel).to_contain_text("The first part")
        prompt = upstream.bodies[-1]["messages"][-1]["content"]
        assert "The sea rises.\n\n<here/>" in prompt.replace("\n\n\n\n", "\n\n")
        assert prompt.endswith("about ebb")
        # One goes on writing meanwhile, and stops the model from there.
        await write(page)
        await page.keyboard.type(" It falls.")
        await page.keyboard.press("Escape")
        await expect(panel).to_contain_text("Stopped. What was written so far is a suggestion.")
        assert await suggested(editor) == [[("", None), (None, "The first part")]]
        upstream.may_end.set()
        await panel.get_by_role("button", name="Try again").click()
        accept = panel.get_by_role("button", name="Accept")
        await expect(panel).to_contain_text("The first part and the rest.")
        await expect(accept).to_be_visible()
        assert await serious_violations(page) == []
        assert await suggested(editor) == [[("", None), (None, "The first part and the rest.")]]
        before = ["# Tides", "The sea rises. It falls."]
        assert await editor.texts() == [*before, ""]
        await accept.click()
        await expect(panel).to_have_count(0)
        assert await editor.texts() == [*before, "The first part and the rest."]
        await page.keyboard.press("Control+z")
        await expect(page.locator(".written")).not_to_contain_text("The first part")
        assert await editor.texts() == [*before, ""]
        await page.keyboard.press("Control+y")
        await expect(page.locator(".written")).to_contain_text("The first part")


async def test_passages_are_rewritten_and_sources_cited(browser, gateway, upstream):
    upstream.may_end.set()
    editor = await Editor.create(gateway)
    bold = {"text": "moon", "bold": True}
    await editor.insert(
        text("paragraph", "The sea, the sea, and the ", bold, "."),
        {"type": "list", "children": [text("list-item", "spring")]},
    )
    async with opened(browser, gateway, editor.path) as page:
        panel = page.get_by_role("region", name="Help of a model")
        accept = panel.get_by_role("button", name="Accept")
        again = panel.get_by_role("button", name="Try again")
        menu = page.get_by_label("Ask a model…")
        await write(page)
        await select_left(page, len(", and the moon."))
        await select_left(page, len("the sea"), extend=True)
        await menu.select_option("Shorten")
        await choose(page, "broken")
        await again.click()
        await expect(panel.get_by_role("alert")).to_contain_text("before it was complete")
        await expect(panel).to_contain_text("Try again, or choose another model")
        await choose(page, "brief")
        await again.click()
        await accept.click()
        await expect(panel).to_have_count(0)
        # The second of the two, and what stands around it keeps its marks.
        assert (await editor.texts())[0] == "The sea, Understood., and the **moon**."
        await write(page)
        await menu.select_option("Improve the wording")
        await choose(page, "hostile")
        await again.click()
        await accept.click()
        await expect(panel).to_have_count(0)
        await expect(block(page, "Paragraph")).to_contain_text(HOSTILE)
        assert await page.evaluate("window.hacked") is None
        await page.keyboard.press("Control+z")
        await expect(block(page, "Paragraph")).to_contain_text("Understood.")
        await page.get_by_text("spring", exact=True).click()
        await menu.select_option("Find sources")
        await choose(page, "researcher")
        await again.click()
        await panel.get_by_role("button", name="Cite 1 source").click()
        await expect(panel).to_have_count(0)
        await saved(page)
        assert (await editor.texts())[1] == "- spring[1]"
        [reference] = (await editor.call("doc/read"))["reference"]
        assert reference["title"] == "Typst Documentation"
        assert await suggested(editor) == []


async def test_blocks_that_are_rewritten_keep_their_ids(browser, gateway, upstream):
    upstream.may_end.set()
    editor = await Editor.create(gateway)
    items = [text("list-item", "a sea"), text("list-item", "a lake")]
    ids = await editor.insert(
        {**text("h1", "Of the sea"), "label": "sea"},
        text("paragraph", "The ", {"text": "sea", "bold": True}, " rises."),
        text("paragraph", "It falls."),
        text("quote", "All seas do."),
        {"type": "list", "children": items},
        text("paragraph", "The end."),
    )
    await editor.call("comment/add", blockId=ids[1], text="Why?", quote="rises")
    async with opened(browser, gateway, editor.path) as page:
        panel = page.get_by_role("region", name="Help of a model")
        accept = panel.get_by_role("button", name="Accept")
        menu = page.get_by_label("Ask a model…")
        await write(page)
        await page.keyboard.press("Control+a")
        await menu.select_option("Improve the wording")
        await choose(page, "rewriter")
        await panel.get_by_role("button", name="Try again").click()
        await accept.click()
        await expect(panel).to_have_count(0)
        read = (await editor.call("doc/read"))["blocks"]
        assert [one["id"] for one in read] == ids
        assert [one["text"] for one in read] == [
            "# Of the ocean {#sea}",
            "The **ocean** rises.",
            "It falls.",
            "> All oceans do.",
            "- a ocean\n- a lake",
            "The end.",
        ]
        [thread] = (await editor.call("comment/list"))["comments"]
        assert not thread["orphaned"]
        # Where there is less than before, only what stays the same keeps its id.
        await write(page, at=1)
        await page.keyboard.press("Shift+ArrowDown")
        await page.keyboard.press("Shift+End")
        await menu.select_option("Shorten")
        await choose(page, "brief")
        await panel.get_by_role("button", name="Try again").click()
        await accept.click()
        await expect(panel).to_have_count(0)
        read = (await editor.call("doc/read"))["blocks"]
        assert [one["id"] for one in read][::4] == [ids[0], ids[5]]
        assert "Understood." in [one["text"] for one in read]
