"""Pages of stored documents over HTTP: pictures of PDF and DOCX, texts of PPTX and XLSX."""

import asyncio
import io
from collections.abc import Mapping

import aiohttp
import openpyxl
import pptx
import pypdfium2 as pdfium
import pytest
import pytest_asyncio
from PIL import Image

from facade.routes.file_pages import EXAMPLE
from services.accounts.repository import AccountRepository
from services.common.settings import Storage
from services.common.storage.database import open_engine
from tests.gateway_in_process import Gateway, running_gateway
from tests.grid import Grid
from tests.services.media.conversion.office import docx, paragraph, zipped
from tests.services.media.conversion.papers import encrypted, pdf

pytestmark = pytest.mark.asyncio(loop_scope="module")

FILES = "/beta/v1/files"
# Pages that are told apart by the colour that fills them.
COLOURS = ((255, 0, 0), (0, 128, 0), (0, 0, 255))
COLOURED = "\n#pagebreak()\n".join(
    f"#set page(width: 200pt, height: 400pt, fill: rgb{colour})\n~" for colour in COLOURS
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("gateway")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(folder):
    async with running_gateway(folder) as one:
        yield one


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def coloured(gateway):
    return await stored(gateway, pdf(COLOURED), "coloured.pdf")


async def stored(gateway: Gateway, content: bytes, name: str) -> str:
    """Store a file; return its id."""
    form = aiohttp.FormData()
    form.add_field("purpose", "user_data")
    form.add_field("file", io.BytesIO(content), filename=name)
    async with gateway.http.post(
        gateway.url + FILES, data=form, headers=gateway.bearer()
    ) as answer:
        return (await answer.json())["id"]


async def page(
    gateway: Gateway,
    file_id: str,
    number: object = 1,
    caller: Mapping[str, str] | None = None,
    **headers: str,
) -> tuple[aiohttp.ClientResponse, bytes]:
    """Return a page; `number` may have a query behind it."""
    url = f"{gateway.url}{FILES}/{file_id}/pages/{number}"
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    async with gateway.http.get(url, headers={**(caller or gateway.bearer()), **named}) as answer:
        return answer, await answer.read()


def converted(gateway: Gateway, conversion: str) -> float:
    labels = {"conversion": conversion, "outcome": "converted"}
    return gateway.counters.get_sample_value("gateway_conversions_total", labels) or 0.0


def picture(content: bytes) -> Image.Image:
    return Image.open(io.BytesIO(content)).convert("RGB")


def saved(document) -> bytes:
    packed = io.BytesIO()
    document.save(packed)
    return packed.getvalue()


def blank_pages(count: int) -> bytes:
    document = pdfium.PdfDocument.new()
    for _ in range(count):
        document.new_page(100, 100)
    return saved(document)


async def test_each_page_of_a_pdf_is_a_picture_of_it(gateway, coloured):
    for number, colour in enumerate(COLOURS, start=1):
        answer, content = await page(gateway, coloured, number)
        assert (answer.status, answer.content_type) == (200, "image/png")
        assert answer.headers["x-gateway-page-count"] == "3"
        assert answer.headers["x-content-type-options"] == "nosniff"
        shown = picture(content)
        assert shown.size == (784, 1568)
        assert shown.getpixel((392, 784)) == colour
    _, content = await page(gateway, coloured, "2?size=thumbnail")
    small = picture(content)
    assert small.size == (160, 320)
    assert small.getpixel((80, 160)) == COLOURS[1]


async def test_a_page_is_converted_once_and_then_unchanged(gateway):
    file_id = await stored(gateway, pdf("#set page(fill: rgb(9, 9, 9))\n~"), "once.pdf")
    before = converted(gateway, "page_picture")
    answers = await asyncio.gather(*(page(gateway, file_id) for _ in range(5)))
    assert len({content for _, content in answers}) == 1
    etag = answers[0][0].headers["etag"]
    for tags in (etag, f'"other", W/{etag}', "*"):
        answer, content = await page(gateway, file_id, If_None_Match=tags)
        assert (answer.status, content, answer.headers["etag"]) == (304, b"", etag)
    answer, _ = await page(gateway, file_id, If_None_Match='"other"')
    assert answer.status == 200
    assert converted(gateway, "page_picture") == before + 1
    answer, _ = await page(gateway, file_id, "1?size=thumbnail")
    assert answer.headers["etag"] != etag


async def test_a_docx_is_set_once_for_all_its_pages(gateway):
    long = docx("".join(paragraph(f"Line {number} of the log.") for number in range(120)))
    file_id = await stored(gateway, long, "log.docx")
    before = converted(gateway, "docx_as_pdf")
    pictures = []
    for number in (1, 2, "1?size=thumbnail"):
        answer, content = await page(gateway, file_id, number)
        assert answer.status == 200, content
        assert int(answer.headers["x-gateway-page-count"]) >= 3
        pictures.append(picture(content))
    assert pictures[0].size == pictures[1].size == (1109, 1568)
    assert pictures[0].tobytes() != pictures[1].tobytes()
    assert pictures[2].size == (227, 320)
    assert all(one.convert("L").getextrema()[0] < 200 for one in pictures)  # letters
    assert converted(gateway, "docx_as_pdf") == before + 1


async def test_sheets_and_slides_are_texts(gateway):
    book = openpyxl.Workbook()
    book.active.title = "Tides"
    for row in (("port", "high"), ("Aberdeen", "12:04")):
        book.active.append(row)
    book.create_sheet("Long").append(["x" * 500])
    for _ in range(400):
        book["Long"].append(["y" * 500])
    sheets = await stored(gateway, saved(book), "tides.xlsx")
    deck = pptx.Presentation()
    for title in ("Harbours", "Winds"):
        deck.slides.add_slide(deck.slide_layouts[5]).shapes.title.text = title
    slides = await stored(gateway, saved(deck), "harbours.pptx")
    before = converted(gateway, "pages_as_text")
    answer, content = await page(gateway, sheets)
    assert answer.headers["content-type"] == "text/markdown; charset=utf-8"
    assert (content.decode(), answer.headers["x-gateway-page-count"]) == (EXAMPLE, "2")
    for size, most in (("full", 64 << 10), ("thumbnail", 2 << 10)):
        _, content = await page(gateway, sheets, f"2?size={size}")
        assert most - 520 < len(content) < most + 30
        assert content.decode().endswith(" |\n\n… the page goes on")
    for number, title in enumerate(("Harbours", "Winds"), start=1):
        answer, content = await page(gateway, slides, number)
        assert (content.decode(), answer.headers["x-gateway-page-count"]) == (f"# {title}", "2")
    assert converted(gateway, "pages_as_text") == before + 2


async def test_only_the_owner_sees_pages(gateway, coloured, folder):
    database = open_engine(Storage(data_dir=folder))
    key = await AccountRepository(database).create_key("stranger")
    await database.dispose()
    stranger = {"Authorization": f"Bearer {key}"}
    seen, body = await page(gateway, coloured, caller=stranger)
    unknown = f"file-{'0' * 26}"
    missing, of_missing = await page(gateway, unknown, caller=stranger)
    assert (seen.status, missing.status) == (404, 404)
    assert body.replace(coloured.encode(), unknown.encode()) == of_missing
    seen, _ = await page(gateway, coloured, caller=stranger, If_None_Match="*")
    assert seen.status == 404


async def test_hostile_and_other_files_are_refused(gateway):
    bomb = {"word/document.xml": "<w:p/>" * 1_000_001}
    cases = {
        "bomb.docx": (zipped(bomb), 1, "more than 1,000,000 XML tags"),
        "damaged.pdf": (b"%PDF-1.7\n" + b"\0garbage" * 999, 1, "it is damaged"),
        "encrypted.pdf": (encrypted(), 1, "is encrypted"),
        "cut.docx": (docx(paragraph("x"))[:-30], 1, "is damaged"),
        "cut.xlsx": (zipped({"xl/workbook.xml": "<"}), 1, "is damaged"),
        "notes.txt": (b"High tide.", 1, "text/plain have no pages"),
        "many.pdf": (blank_pages(10_000), 501, "must be 1 to 500"),
        "other.pdf": (blank_pages(1), "x", "from 1"),
        "zero.pdf": (blank_pages(1), 0, "from 1"),
        "size.pdf": (blank_pages(1), "1?size=huge", "must be full or thumbnail"),
    }

    with Grid() as grid:
        for name, (content, number, message) in cases.items():
            with grid.row(name):
                file_id = await stored(gateway, content, name)
                answer, body = await page(gateway, file_id, number)
                assert answer.status == 400, body
                assert message in body.decode()
                assert b'"invalid_request_error"' in body
                _, body = await page(gateway, file_id, number, gateway.api_key())
                assert b'"type":"error"' in body
    many = await stored(gateway, blank_pages(10_000), "many.pdf")
    answer, _ = await page(gateway, many, 500)
    assert (answer.status, answer.headers["x-gateway-page-count"]) == (200, "10000")
    answer, body = await page(gateway, await stored(gateway, blank_pages(1), "one.pdf"), 2)
    assert answer.status == 404
    assert b"the file has no page 2; it has 1" in body
