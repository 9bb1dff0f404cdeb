"""The page of files: what a visitor sees, uploads, reads and deletes."""

import asyncio
from io import BytesIO

import aiohttp
import openpyxl
import pytest
from playwright.async_api import Page, expect

from tests.console.accessibility import serious_violations
from tests.console.conftest import opened
from tests.gateway_in_process import Gateway
from tests.services.media.conversion.papers import pdf

pytestmark = pytest.mark.asyncio(loop_scope="session")

MIB = 1 << 20
PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de"
    "0000000c49444154789c63f8cfc0000003010100c9fe92ef0000000049454e44ae426082"
)
# What would run, were it taken for HTML.
SCRIPT = "<img src=x onerror=document.title='hacked'><script>document.title='hacked'</script>"
SVG = f'<svg xmlns="http://www.w3.org/2000/svg" onload="document.title=\'hacked\'">{SCRIPT}</svg>'


async def store(gateway: Gateway, content: bytes, name: str, mime_type: str) -> str:
    """Store a file as another client would; return its id."""
    form = aiohttp.FormData(quote_fields=False)
    form.add_field("purpose", "user_data")
    form.add_field("file", content, filename=name, content_type=mime_type)
    address = f"{gateway.url}/beta/v1/files"
    async with gateway.http.post(address, data=form, headers=gateway.bearer()) as answer:
        return (await answer.json())["id"]


def entry(page: Page, name: str):
    return page.get_by_role("article", name=name, exact=True)


async def test_without_files_it_says_what_to_do(browser, newcomer):
    async with opened(browser, newcomer, "/console/files") as page:
        await expect(page.get_by_text("There are no files yet")).to_be_visible()
        await expect(page.get_by_text("0 files take up 0 bytes of")).to_be_visible()


async def test_an_upload_of_50_mib_shows_its_progress(browser, newcomer, tmp_path):
    large = tmp_path / "large.bin"
    large.write_bytes(bytes(50 * MIB))
    async with opened(browser, newcomer, "/console/files") as page:
        devtools = await page.context.new_cdp_session(page)
        await devtools.send("Network.enable")
        slow = {"offline": False, "latency": 0, "downloadThroughput": -1}
        # It takes 45 s from the bar's beginning to near its end: as long a pause would be missed.
        await devtools.send("Network.emulateNetworkConditions", {**slow, "uploadThroughput": MIB})
        await page.get_by_label("Upload files").last.set_input_files(large)
        bar = page.get_by_role("progressbar", name="Upload of large.bin")
        # Playwright's own waiting evaluates text, which the page's policy forbids.
        await bar.evaluate(
            """bar => new Promise(resolve => {
                const look = () => 0.01 < bar.value && bar.value < 0.9
                    ? resolve() : requestAnimationFrame(look);
                look();
            })"""
        )
        await devtools.send("Network.emulateNetworkConditions", {**slow, "uploadThroughput": -1})
        await expect(entry(page, "large.bin")).to_be_visible(timeout=30_000)
        await expect(bar).to_have_count(0)
        await expect(page.get_by_text("1 file takes up 50 MB of")).to_be_visible()


async def test_a_cancelled_upload_stores_nothing(browser, newcomer, tmp_path):
    large = tmp_path / "large.bin"
    large.write_bytes(bytes(20 * MIB))
    async with opened(browser, newcomer, "/console/files") as page:
        devtools = await page.context.new_cdp_session(page)
        await devtools.send("Network.enable")
        slow = {"offline": False, "latency": 0, "downloadThroughput": -1}
        await devtools.send("Network.emulateNetworkConditions", {**slow, "uploadThroughput": MIB})
        await page.get_by_label("Upload files").last.set_input_files(large)
        await page.get_by_role("button", name="Cancel large.bin").click()
        await expect(page.get_by_role("progressbar")).to_have_count(0)
        await page.get_by_role("button", name="Refresh").click()
        await expect(page.get_by_text("There are no files yet")).to_be_visible()


async def test_a_refused_upload_says_why(page, tmp_path):
    await page.goto("/console/files")
    large = tmp_path / "too-large.bin"
    large.write_bytes(bytes(50 * MIB + 1))
    await page.get_by_label("Upload files").last.set_input_files(large)
    await expect(page.get_by_role("alert")).to_contain_text("file", timeout=30_000)
    await page.get_by_role("button", name="Dismiss too-large.bin").click()
    await expect(page.get_by_role("alert")).to_have_count(0)


async def test_a_deleted_file_is_gone(page, gateway):
    file_id = await store(gateway, b"some text", "gone.txt", "text/plain")
    await page.goto("/console/files")
    await entry(page, "gone.txt").get_by_role("button", name="Delete").first.click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_role("button", name="Keep").click()
    await expect(entry(page, "gone.txt")).to_be_visible()
    await entry(page, "gone.txt").get_by_role("button", name="Delete").first.click()
    await dialog.get_by_role("button", name="Delete").click()
    await expect(entry(page, "gone.txt")).to_have_count(0)
    address = f"{gateway.url}/beta/v1/files/{file_id}"
    async with gateway.http.get(address, headers=gateway.bearer()) as answer:
        assert answer.status == 404


async def test_a_download_has_the_bytes_and_the_name(page, gateway):
    content = bytes(range(256)) * 10
    await store(gateway, content, "données.bin", "application/octet-stream")
    await page.goto("/console/files")
    async with page.expect_download() as started:
        await entry(page, "données.bin").get_by_role("button", name="Download").click()
    download = await started.value
    assert download.suggested_filename == "données.bin"
    saved = await download.path()
    assert await asyncio.to_thread(saved.read_bytes) == content


async def test_texts_markdown_and_images_are_previewed(page, gateway):
    await store(gateway, b"one <b>two</b>", "words.txt", "text/plain")
    await store(gateway, b"# A title\n\n| a | b |\n|-|-|\n| 1 | 2 |", "read.md", "text/markdown")
    await store(gateway, PNG, "dot.png", "image/png")
    await page.goto("/console/files")
    for name in ("words.txt", "read.md", "dot.png"):
        await entry(page, name).get_by_role("button", name="Preview").click()
        shown = entry(page, name)
        if name == "words.txt":
            await expect(shown.locator("pre")).to_have_text("one <b>two</b>")
        elif name == "read.md":
            await expect(shown.get_by_role("heading", name="A title")).to_be_visible()
            await expect(shown.get_by_role("cell", name="2")).to_be_visible()
        else:
            image = shown.get_by_role("img", name="dot.png")
            await expect(image).to_be_visible()
            assert await image.evaluate("image => image.decode().then(() => image.naturalWidth)")


async def test_documents_are_shown_page_by_page(browser, newcomer):
    fills = ("red", "green", "blue", *["white"] * 30)
    sheets = openpyxl.Workbook()
    sheets.active.append(["port", "high tide"])
    sheets.active.append(["Aberdeen", SCRIPT])
    packed = BytesIO()
    sheets.save(packed)
    pages = "\n#pagebreak()\n".join(f"#set page(fill: {fill})\n~" for fill in fills)
    await store(newcomer, pdf(pages), "colours.pdf", "application/pdf")
    await store(newcomer, packed.getvalue(), "tides.xlsx", "")
    await store(newcomer, b"%PDF-1.7 cut off", "damaged.pdf", "application/pdf")
    async with opened(browser, newcomer, "/console/files") as page:
        asked = []
        page.on("request", lambda request: asked.append(request.url))
        colours, tides, damaged = (
            entry(page, name) for name in ("colours.pdf", "tides.xlsx", "damaged.pdf")
        )
        await expect(colours.locator(".thumbnail img")).to_be_visible(timeout=30_000)
        await expect(tides.locator(".thumbnail")).to_contain_text("Aberdeen")
        await expect(damaged.locator(".thumbnail")).to_have_text("pdf")
        await colours.get_by_role("button", name="Preview").click()
        shown = page.get_by_role("region", name="Pages of colours.pdf")
        await expect(shown.get_by_role("img", name="Page 1 of 33")).to_be_visible()
        await shown.get_by_label("Page 2 of 33", exact=True).scroll_into_view_if_needed()
        await expect(shown.get_by_role("img", name="Page 2 of 33")).to_be_visible()
        assert not any("/pages/20" in url for url in asked)
        await shown.get_by_label("Page 33 of 33", exact=True).scroll_into_view_if_needed()
        await expect(shown.get_by_role("img", name="Page 33 of 33")).to_be_visible()
        await expect(shown.get_by_role("img", name="Page 2 of 33")).to_have_count(0)
        assert await serious_violations(page) == []
        await colours.get_by_role("button", name="Preview").click()
        await tides.get_by_role("button", name="Preview").click()
        await expect(tides.get_by_role("cell", name="Aberdeen").first).to_be_visible()
        assert await tides.locator("script, [onerror]").count() == 0
        assert await serious_violations(page) == []
        await damaged.get_by_role("button", name="Preview").click()
        await expect(damaged.get_by_role("alert")).to_contain_text("it is damaged")
        assert await page.title() == "Files · Gateway console"


HOSTILE = [
    (f"{SCRIPT.replace('/', '')}.txt", "text/plain", SCRIPT),
    ("page.html", "text/html", f"<html><body>{SCRIPT}</body></html>"),
    ("image.svg", "image/svg+xml", SVG),
    ("text.md", "text/markdown", f"{SCRIPT}\n\n[a](javascript:alert(1)) <b onclick=x>b</b>"),
]


async def test_scripts_in_files_do_nothing(browser, newcomer):
    for name, mime_type, content in HOSTILE:
        await store(newcomer, content.encode(), name, mime_type)
    async with opened(browser, newcomer, "/console/files") as page:
        await expect(page.get_by_role("article")).to_have_count(len(HOSTILE))
        for shown in await page.get_by_role("article").all():
            await shown.get_by_role("button", name="Preview").click()
            await expect(shown.locator("img, pre, .markdown").first).to_be_visible()
            assert await shown.locator("script, [onerror], [onload], [onclick]").count() == 0
            assert await shown.locator("a[href^=javascript]").count() == 0
        assert await page.title() == "Files · Gateway console"


async def test_files_are_found_sorted_and_deleted_together(browser, newcomer):
    for number in range(51):
        await store(newcomer, b"x" * (number + 1), f"note {number}.txt", "text/plain")
    await store(newcomer, PNG, "dot.png", "image/png")
    await store(newcomer, b"%PDF-1.7", "paper.pdf", "application/pdf")
    async with opened(browser, newcomer, "/console/files") as page:
        cards = page.get_by_role("list", name="Files").get_by_role("article")
        picture = entry(page, "dot.png").locator(".thumbnail img")
        await expect(picture).to_be_visible()
        assert await picture.evaluate("image => image.decode().then(() => image.naturalWidth)")
        await expect(entry(page, "paper.pdf").locator(".thumbnail")).to_have_text("pdf")
        await expect(cards).to_have_count(50)
        await page.get_by_role("button", name="More files").click()
        await expect(cards).to_have_count(53)
        await expect(page.get_by_role("button", name="More files")).to_have_count(0)
        await page.reload()
        await expect(cards).to_have_count(50)
        # Files of later pages are found and sorted, too.
        await page.get_by_role("searchbox").fill("NOTE")
        await expect(cards).to_have_count(51)
        await page.get_by_label("Sort by").select_option("largest")
        await expect(cards.first.get_by_role("heading")).to_have_text("note 50.txt")
        await page.get_by_label("Sort by").select_option("name")
        await expect(cards.nth(2).get_by_role("heading")).to_have_text("note 2.txt")
        await page.get_by_label("Choose note 0.txt").check()
        await page.get_by_label("Choose note 1.txt").check()
        await expect(page.get_by_text("2 chosen")).to_be_visible()
        await page.get_by_role("button", name="Delete the chosen ones").first.click()
        dialog = page.get_by_role("dialog")
        await dialog.get_by_role("button", name="Delete the chosen ones").click()
        await expect(cards).to_have_count(49)
        await page.get_by_role("searchbox").fill("no such file")
        await expect(page.get_by_text("No file matches")).to_be_visible()
        await page.get_by_role("searchbox").fill("paper")
        await page.set_viewport_size({"width": 390, "height": 800})
        await expect(cards).to_have_count(1)
        assert await page.evaluate("document.documentElement.scrollWidth") <= 390
        assert await serious_violations(page) == []
