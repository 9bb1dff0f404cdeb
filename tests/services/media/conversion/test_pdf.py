"""PDFs and scans through a real worker: every word, in reading order."""

import io
import zlib

import pytest
from PIL import Image
from prometheus_client import CollectorRegistry

from services.common.errors import GatewayError
from services.common.settings import Limits
from services.media.conversion.parts import Ocr, Source
from services.media.conversion.pool import ConversionPool, PooledConverter
from tests.attacks import media_bombs
from tests.services.media.conversion import papers
from tests.thoroughness import sampled

pytestmark = pytest.mark.asyncio(loop_scope="session")

EVERYTHING = " ".join((papers.TITLE, papers.LEFT, *sum(papers.TABLE, ()), papers.RIGHT))
ROWS = [" ".join(row) for row in papers.TABLE]
ORDER = ["harbour master", "splashed happily through puddles", *ROWS, "clockmaker", "comforting"]


async def text(converter, content: bytes, *, ocr=Ocr.AUTO, pages=50) -> str:
    read_pages = await converter.pages_as_text(Source(content, ""), max_pages=pages, ocr=ocr)
    return "\n".join(page.text for page in read_pages)


async def refusal(converter, content: bytes, **options) -> str:
    with pytest.raises(GatewayError) as caught:
        await text(converter, content, **options)
    assert caught.value.code == "invalid_request"
    return caught.value.message


async def test_two_columns_are_read_one_after_the_other(converter):
    read_text = await text(converter, papers.two_columns())
    assert papers.recall(EVERYTHING, read_text) == 1
    assert papers.in_order([papers.TITLE, *ORDER], read_text)


async def test_broken_words_are_joined(converter):
    source = '#set page(width: 4cm)\n#set text(hyphenate: true, lang: "en")\n' + papers.LEFT
    assert papers.recall(papers.LEFT, await text(converter, papers.pdf(source))) == 1


async def test_columns_drawn_row_by_row_are_read_as_columns(converter):
    rows = zip(_lines(papers.LEFT), _lines(papers.RIGHT), strict=False)
    placed = "".join(
        f"#place(dx: {x}cm, dy: {number * 0.6}cm)[{line}]\n"
        for number, row in enumerate(rows)
        for x, line in zip((0, 9), row, strict=True)
    )
    read_text = await text(converter, papers.pdf("#set text(size: 9pt)\n" + placed))
    assert papers.in_order(["harbour master", "gulls circled", "clockmaker", "shavings"], read_text)


async def test_rows_of_a_table_stay_rows(converter):
    rows = "".join(
        f"#place(dx: {column * 4}cm, dy: {row * 0.6}cm)[{cell}]\n"
        for row, cells in enumerate(papers.TABLE * 3)
        for column, cell in enumerate(cells)
    )
    assert papers.in_order(ROWS * 3, await text(converter, papers.pdf(rows)))


async def test_scripts_of_all_directions_are_read(converter):
    source = f"""#set text(font: ("{papers.CJK_FONT}", "DejaVu Sans"))
{papers.CHINESE}

{papers.JAPANESE}

#text(lang: "ar", dir: rtl)[{papers.ARABIC}]

#text(lang: "he", dir: rtl)[{papers.HEBREW}]

$ integral_0^1 x^2 dif x $
"""
    read_text = await text(converter, papers.pdf(source))
    for part in (papers.CHINESE, papers.JAPANESE, papers.ARABIC, papers.HEBREW, "∫"):
        assert part in read_text


@pytest.mark.parametrize("part", ["end", pytest.param("all", marks=pytest.mark.soak)])
async def test_a_noisy_scan_turned_by_2_degrees_is_read(converter, part):
    left, right, order, size = papers.LEFT, papers.RIGHT, ORDER, 'paper: "a4"'
    if part == "end":
        # The last sentence of either column: every line takes a while.
        left, right = (text.split(". ")[-1] for text in (left, right))
        order, size = ["splashed happily through puddles", *ROWS, "comforting"], "height: 11cm"
    scan = papers.scan(papers.two_columns(left, right, size=size))
    (page,) = await converter.pages_as_text(
        Source(scan, "application/pdf"), max_pages=1, ocr=Ocr.AUTO
    )
    assert page.recognised
    everything = " ".join((papers.TITLE, left, *sum(papers.TABLE, ()), right))
    assert papers.recall(everything, page.text) >= 0.95
    assert papers.in_order([papers.TITLE, *order], page.text)


async def test_a_chinese_scan_is_read(converter):
    source = "#set page(height: 7cm)\n"
    source += f'#set text(font: "{papers.CJK_FONT}", size: 14pt)\n{papers.CHINESE}\n\n'
    read_text = await text(converter, papers.scan(papers.pdf(source + papers.JAPANESE)))
    expected = papers.CHINESE + papers.JAPANESE
    assert sum(char in read_text for char in expected) >= 0.95 * len(expected)


async def test_ocr_is_done_when_asked_for_alone(converter):
    scan = papers.scan(papers.pdf("#set page(height: 3cm)\nOnly a picture"))
    assert await text(converter, scan, ocr=Ocr.NEVER) == ""
    digital = papers.pdf("#set page(height: 3cm)\nReal text")
    (page,) = await converter.pages_as_text(Source(digital, ""), max_pages=1, ocr=Ocr.ALWAYS)
    assert page.recognised and "Real text" in page.text


async def test_ocr_leaves_no_file(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    pool = ConversionPool(Limits(), CollectorRegistry())
    scan = papers.scan(papers.pdf("#set page(height: 3cm)\nOnly a picture"))
    assert "Only a picture" in await text(PooledConverter(pool, lambda: "someone"), scan)
    await pool.close()
    assert not list(tmp_path.iterdir())


async def test_a_page_with_nothing_is_empty(converter):
    (page,) = await converter.pages_as_text(
        Source(papers.pdf("#page[]"), ""), max_pages=1, ocr=Ocr.AUTO
    )
    assert (page.text, page.recognised) == ("", False)


async def test_pages_become_pictures(converter):
    document = papers.pdf('#set page(paper: "a4")\nOne #pagebreak() Two')
    first, second = await converter.pages_as_pictures(Source(document, ""), max_pages=2)
    assert (first.number, second.number, first.mime_type) == (1, 2, "image/png")
    image = Image.open(io.BytesIO(first.content))
    assert max(image.size) == 1568


async def test_a_page_of_noise_is_a_jpeg(converter):
    noise = papers.packed(Image.effect_noise((1500, 1500), 100).convert("RGB"), "PDF")
    (picture,) = await converter.pages_as_pictures(Source(noise, ""), max_pages=1)
    assert picture.mime_type == "image/jpeg"
    assert Image.open(io.BytesIO(picture.content)).format == "JPEG"


async def test_filled_form_fields_are_read(converter):
    assert "typed into a field" in await text(converter, _form("typed into a field"))


async def test_too_many_pages_are_refused(converter):
    message = await refusal(converter, papers.pdf("a #pagebreak() b #pagebreak() c"), pages=2)
    assert "3 pages" in message and "at most 2" in message


async def test_an_encrypted_pdf_is_refused(converter):
    assert "encrypted" in await refusal(converter, papers.encrypted())


@pytest.mark.parametrize("content", [b"%PDF-1.7\nnothing", papers.pdf("x")[:400]])
async def test_a_damaged_pdf_is_refused(converter, content):
    assert "damaged" in await refusal(converter, content)


def _lines(text: str) -> list[str]:
    every = text.split()
    return [" ".join(every[place : place + 5]) for place in range(0, len(every), 5)]


def _form(text: str) -> bytes:
    """Return a PDF with a field that is filled in; it has no table of its objects."""
    shown = f"BT /F 12 Tf 2 4 Td ({text}) Tj ET"
    font = "<< /F << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >>"
    objects = (
        "<< /Type /Catalog /Pages 2 0 R /AcroForm << /Fields [4 0 R] >> >>",
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 300 100] /Annots [4 0 R] >>",
        "<< /Type /Annot /Subtype /Widget /FT /Tx /T (name) /V (" + text + ") /F 4 "
        "/Rect [20 40 280 60] /AP << /N 5 0 R >> >>",
        f"<< /Type /XObject /Subtype /Form /BBox [0 0 260 20] /Resources << /Font {font} >> "
        f"/Length {len(shown)} >>\nstream\n{shown}\nendstream",
    )
    body = "".join(f"{number} 0 obj\n{one}\nendobj\n" for number, one in enumerate(objects, 1))
    return f"%PDF-1.7\n{body}trailer\n<< /Root 1 0 R /Size 6 >>\n%%EOF\n".encode()


async def test_a_pdf_that_draws_without_end_is_refused(converter):
    many = papers.pdf("#for x in range(1000) { place(dx: x * 0.1pt, rect(width: 1pt)) }")
    stroke = b"0 0 m 9 9 l S "
    assert await converter.pages_as_pictures(Source(many, ""), max_pages=9)
    with pytest.raises(GatewayError, match="more than 200,000 objects"):
        await converter.pages_as_pictures(Source(drawing(stroke * 200_001), ""), max_pages=9)
    with pytest.raises(GatewayError, match="more than 1,000,000 objects"):
        await text(converter, drawing(stroke * 1_000_001))


@pytest.mark.parametrize("user_unit", [1, 75_000])
async def test_a_vast_page_is_scaled_down(converter, user_unit):
    source = Source(media_bombs.vast_pdf(user_unit), "")
    (picture,) = await converter.pages_as_pictures(source, max_pages=1)
    assert Image.open(io.BytesIO(picture.content)).size == (1568, 1568)


@pytest.mark.thorough
async def test_pictures_of_a_pdf_have_so_many_pixels(converter):
    async def pictures(*of, **options):
        document = media_bombs.picture_pdf(*of, **options)
        return await converter.pages_as_pictures(Source(document, ""), max_pages=1)

    assert await pictures(4_000, 2)
    assert await pictures(4_000, 2, is_annotation=True)
    with pytest.raises(GatewayError, match="a picture of 15,000 by 15,000 pixels"):
        await pictures(15_000, 1)
    for is_annotation in sampled((True, False), 2):
        with pytest.raises(GatewayError, match="more than 4,000 megapixels"):
            await pictures(4_000, 251, is_annotation=is_annotation)
    with pytest.raises(GatewayError, match="more than 4,000 megapixels"):
        await text(converter, media_bombs.picture_pdf(4_000, 251))


async def test_objects_in_forms_of_a_pdf_count(converter):
    # Each of 500 forms draws 500 lines.
    outer, inner = b"/F Do\n" * 500, b"0 0 m 9 9 l S\n" * 500
    head = b"/Type/XObject/Subtype/Form/BBox[0 0 600 800]"
    document = media_bombs.pdf(
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents 4 0 R"
        b"/Resources<</XObject<</F 5 0 R>>>>>>",
        b"<</Length %d>>stream\n%b\nendstream" % (len(outer), outer),
        b"<<%b/Length %d>>stream\n%b\nendstream" % (head, len(inner), inner),
    )
    with pytest.raises(GatewayError, match="more than 200,000 objects"):
        await converter.pages_as_pictures(Source(document, ""), max_pages=1)


def drawing(content: bytes) -> bytes:
    """Return a PDF of one page, whose stream draws."""
    packed = zlib.compress(content)
    head = b"<</Length %d/Filter/FlateDecode>>" % len(packed)
    objects = (
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents 4 0 R/Resources<<>>>>",
        head + b"stream\n" + packed + b"\nendstream",
    )
    body = b"".join(
        b"%d 0 obj\n%b\nendobj\n" % (number, one) for number, one in enumerate(objects, start=1)
    )
    return b"%PDF-1.7\n" + body + b"trailer<</Size 5/Root 1 0 R>>\n%%EOF"
