"""DOCX, PPTX and XLSX through a real worker: what they say, and what is refused."""

import datetime
import io
import zipfile

import openpyxl
import pptx
import pytest
from PIL import Image
from pptx.chart.data import CategoryChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.util import Inches

from services.common.errors import GatewayError
from services.media.conversion.parts import Ocr, Source
from tests.services.media.conversion import office, papers
from tests.services.media.conversion.office import paragraph, run

pytestmark = pytest.mark.asyncio(loop_scope="session")

RED = papers.packed(Image.new("RGB", (40, 40), "red"), "PNG")


async def pages(converter, content: bytes, *, most=50, ocr=Ocr.NEVER) -> list[str]:
    read_pages = await converter.pages_as_text(Source(content, ""), max_pages=most, ocr=ocr)
    assert [page.number for page in read_pages] == list(range(1, len(read_pages) + 1))
    return [page.text for page in read_pages]


async def refusal(converter, content: bytes, **options) -> str:
    with pytest.raises(GatewayError) as caught:
        await pages(converter, content, **options)
    assert caught.value.code == "invalid_request"
    return caught.value.message


def saved(document) -> bytes:
    written = io.BytesIO()
    document.save(written)
    return written.getvalue()


def letter() -> bytes:
    return office.docx(
        paragraph("A heading", "Heading1")
        + f"<w:p>{run('Plain and ')}{run('bold', '<w:b/>')}{office.inserted(' added')}"
        + f"{office.deleted(' removed')}{office.FOOTNOTE_MARK}</w:p>"
        + office.table(("Name", "Count"), ("Rope|s", "7"))
        + f"<w:p>{office.picture('rImage')}</w:p>"
        + paragraph("The end."),
        footnote="Said below.",
        image=RED,
    )


async def test_a_docx_becomes_markdown(converter):
    (text,) = await pages(converter, letter())
    assert text.startswith("# A heading\n\nPlain and **bold** added[1]")
    assert "removed" not in text
    assert "| Name | Count |\n| --- | --- |\n| Rope\\|s | 7 |" in text
    assert "[image: a red square]" in text
    assert text.endswith("The end.\n\n1. Said below.")


async def test_text_in_a_picture_of_a_docx_is_read(converter):
    picture = papers.rendered(papers.pdf("#set page(width: 6cm, height: 2cm)\nHarbour office"))
    body = f"<w:p>{office.picture('rImage')}</w:p>"
    content = office.docx(body, image=picture)
    assert await pages(converter, content) == ["[image: a red square]"]
    (text,) = await pages(converter, content, ocr=Ocr.AUTO)
    assert "it says: Harbour office" in text


async def test_a_docx_whose_picture_cannot_be_read_keeps_its_words(converter):
    body = paragraph("Before.") + f"<w:p>{office.picture('rImage')}</w:p>" + paragraph("After.")
    content = office.docx(body, image=RED)
    refused_fields = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as whole, zipfile.ZipFile(refused_fields, "w") as cut:
        held = whole.getinfo("word/media/image1.png")
        for name in whole.namelist():
            if name != held.filename:
                cut.writestr(name, whole.read(name))
    damaged = bytearray(content)
    # Its first byte, behind the local header, makes it no stream that can be unpacked.
    damaged[held.header_offset + 30 + len(held.filename)] = 0xFF
    for broken in (refused_fields.getvalue(), bytes(damaged)):
        (text,) = await pages(converter, broken, ocr=Ocr.AUTO)
        assert text == "Before.\n\n[image: a red square]\n\nAfter."


async def test_a_docx_becomes_pictures(converter):
    (picture,) = await converter.pages_as_pictures(Source(letter(), ""), max_pages=1)
    image = Image.open(io.BytesIO(picture.content)).convert("RGB")
    assert max(image.size) == 1568
    colours = {colour for _, colour in image.getcolors(1 << 20)}
    assert (255, 0, 0) in colours
    facts = await converter.image_facts(Source(picture.content, "image/png"))
    assert "bold added" in facts.text and "removed" not in facts.text
    assert "Said below" in facts.text


async def test_text_of_a_docx_is_no_typst_code(converter):
    hostile = '#panic("x") \\" ] ) $ #read("/etc/passwd") // */'
    content = office.docx(paragraph(hostile.replace('"', "&quot;")))
    (picture,) = await converter.pages_as_pictures(Source(content, ""), max_pages=1)
    facts = await converter.image_facts(Source(picture.content, ""))
    assert "panic" in facts.text and "passwd" in facts.text


async def test_a_linked_picture_is_not_read(converter, tmp_path):
    outside = tmp_path / "outside.png"
    outside.write_bytes(papers.rendered(papers.pdf("#set page(height: 2cm)\nSecret")))
    body = f"<w:p>{office.picture('rImage')}</w:p>".replace("r:embed", "r:link")
    content = office.docx(body, image=RED)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    links = parts["word/_rels/document.xml.rels"].decode()
    parts["word/_rels/document.xml.rels"] = links.replace(
        'Target="media/image1.png"', f'Target="{outside.as_uri()}" TargetMode="External"'
    )
    (text,) = await pages(converter, office.zipped(parts), ocr=Ocr.AUTO)
    assert "Secret" not in text


async def test_a_pptx_is_read_slide_by_slide(converter):
    deck = pptx.Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[1])
    slide.shapes.title.text = "First slide"
    slide.placeholders[1].text = "a point"
    slide.notes_slide.notes_text_frame.text = "to be said"
    slide = deck.slides.add_slide(deck.slide_layouts[5])
    slide.shapes.title.text = "Second slide"
    table = slide.shapes.add_table(2, 2, 0, Inches(2), Inches(4), Inches(1)).table
    for place, text in enumerate(("Item", "Count", "Ropes", "7")):
        table.cell(place // 2, place % 2).text = text
    group = slide.shapes.add_group_shape()
    group.shapes.add_textbox(0, Inches(4), Inches(2), Inches(1)).text_frame.text = "in a group"
    data = CategoryChartData()
    data.categories = ["North", "South"]
    data.add_series("Ships", (12, 30))
    slide.shapes.add_chart(XL_CHART_TYPE.BAR_CLUSTERED, 0, Inches(5), Inches(4), Inches(2), data)
    slide.shapes.add_picture(io.BytesIO(RED), 0, Inches(7)).name = "picture"
    first, second = await pages(converter, saved(deck))
    assert first == "# First slide\n\na point\n\nNotes: to be said"
    assert second.startswith("# Second slide\n\n| Item | Count |\n| --- | --- |\n| Ropes | 7 |")
    assert "in a group" in second and "| South | 30.0 |" in second and "[image" in second
    assert "2 slides" in await refusal(converter, saved(deck), most=1)


async def test_an_xlsx_is_read_sheet_by_sheet(converter):
    book = openpyxl.Workbook()
    book.active.title = "Stock"
    for row in (["Item", "Count"], ["Anchors", 12], [None, None], ["Ropes", 7.5]):
        book.active.append(row)
    other = book.create_sheet("Dates")
    other["B2"] = datetime.date(2024, 5, 1)
    other["C2"] = "=B2+1"
    other["C3"] = True
    first, second = await pages(converter, saved(book))
    assert first == (
        "## Stock\n\n| Item | Count |\n| --- | --- |\n| Anchors | 12 |\n| Ropes | 7.5 |"
    )
    assert second == "## Dates\n\n| 2024-05-01 | =B2+1 |\n| --- | --- |\n|  | TRUE |"
    assert "2 sheets" in await refusal(converter, saved(book), most=1)


async def test_an_archive_bomb_is_refused(converter):
    bomb = office.zipped({"word/document.xml": bytes(201 << 20)})
    assert len(bomb) < 1 << 20
    assert "200 MiB" in await refusal(converter, bomb)


async def test_an_archive_with_a_false_size_is_refused(converter):
    content = bytearray(office.zipped({"word/document.xml": bytes(50 << 20)}))
    directory = content.rindex(b"PK\x01\x02")
    content[directory + 24 : directory + 28] = (1000).to_bytes(4, "little")
    assert "damaged" in await refusal(converter, bytes(content))


async def test_an_xml_bomb_is_refused(converter):
    entities = '<!ENTITY a0 "lol">' + "".join(
        f'<!ENTITY a{number} "{f"&a{number - 1};" * 10}">' for number in range(1, 12)
    )
    content = office.zipped(
        {
            "word/document.xml": f"<!DOCTYPE w [{entities}]><w>&a11;</w>",
            "[Content_Types].xml": "<Types/>",
            "_rels/.rels": office.relations(("r1", "officeDocument", "word/document.xml")),
        }
    )
    assert await refusal(converter, content)


@pytest.mark.parametrize("name", ["word/document.xml", "ppt/presentation.xml", "xl/workbook.xml"])
async def test_a_damaged_document_is_refused(converter, name):
    assert "damaged" in await refusal(converter, office.zipped({name: "<not closed"}))


def sheet(rows: str, *, sheets: int = 1) -> bytes:
    """Return an XLSX whose sheets have the XML of rows."""
    space = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    related = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    numbers = range(1, sheets + 1)
    listed = "".join(f'<sheet name="S{n}" sheetId="{n}" r:id="r{n}"/>' for n in numbers)
    relations = [(f"r{n}", "worksheet", f"worksheets/sheet{n}.xml") for n in numbers]
    parts = {f"xl/worksheets/sheet{n}.xml": rows for n in numbers}
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml"
    types = "".join(
        f'<Override PartName="/{name}" ContentType="{kind}.{what}+xml"/>'
        for name, what in [("xl/workbook.xml", "sheet.main"), *((n, "worksheet") for n in parts)]
    )
    return office.zipped(
        {
            "[Content_Types].xml": "<Types xmlns='http://schemas.openxmlformats.org/package/2006/"
            f"content-types'>{types}</Types>",
            "_rels/.rels": office.relations(("r1", "officeDocument", "xl/workbook.xml")),
            "xl/_rels/workbook.xml.rels": office.relations(*relations),
            "xl/workbook.xml": f'<workbook xmlns="{space}" xmlns:r="{related}">'
            f"<sheets>{listed}</sheets></workbook>",
            **{
                name: f'<worksheet xmlns="{space}"><dimension ref="A1:XFD1048576"/>'
                f"<sheetData>{xml}</sheetData></worksheet>"
                for name, xml in parts.items()
            },
        }
    )


def cell(place: str, value: int = 1) -> str:
    """Return a cell."""
    return f'<c r="{place}"><v>{value}</v></c>'


async def test_cells_in_the_corners_of_a_sheet_cost_nothing(converter):
    corners = "".join(
        f'<row r="{row}">{cell(f"{column}{row}")}</row>'
        for row, column in ((1, "XFD"), (1_048_576, "XFD"), (2_000_000_000, "XFD"))
    )
    texts = await pages(converter, sheet(corners, sheets=40))
    assert texts == [f"## S{number}\n\n| 1 |\n| --- |\n| 1 |\n| 1 |" for number in range(1, 41)]


async def test_a_sheet_says_where_it_goes_on(converter):
    wide = f'<row r="1">{cell("B1", 7)}{cell("XFD1", 8)}</row><row r="2">{cell("B2", 9)}</row>'
    (text,) = await pages(converter, sheet(wide))
    assert text.startswith("## S1\n\n| 7 |  |") and "8" not in text and "| 9 |" in text
    assert text.endswith("\n\n… the sheet goes on")
    long = f'<row r="1">{cell("A1", 7)}</row>' + "<row/>" * 200_000
    first, second = await pages(converter, sheet(long, sheets=2))
    assert first == "## S1\n\n| 7 |\n| --- |\n\n… the sheet goes on"
    assert second == "## S2\n\n… the sheet goes on"


@pytest.mark.parametrize("name", ["word/document.xml", "word/styles.xml"])
async def test_more_xml_than_can_be_read_soon_is_refused(converter, name):
    parts = {"word/document.xml": "<w/>", name: "<a/>" * 1_000_001}
    assert f"{name} and the like have more than" in await refusal(converter, office.zipped(parts))


async def test_tables_within_tables_without_end_are_refused(converter):
    begin, end = "<w:tbl><w:tr><w:tc>", "</w:tc></w:tr></w:tbl>"
    content = office.docx(begin * 5_000 + "<w:p/>" + end * 5_000)
    assert "nested too deeply" in await refusal(converter, content)
