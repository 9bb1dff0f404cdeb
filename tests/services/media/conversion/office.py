"""DOCX, PPTX and XLSX written by hand, part by part, so that each says exactly what it holds."""

import io
import zipfile
from collections.abc import Mapping

_W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
_R = 'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'
_RELS = "http://schemas.openxmlformats.org/package/2006/relationships"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_TYPES = "http://schemas.openxmlformats.org/package/2006/content-types"
_WORD = "application/vnd.openxmlformats-officedocument.wordprocessingml"


def zipped(parts: Mapping[str, str | bytes]) -> bytes:
    """Return an archive of the parts."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return packed.getvalue()


def relations(*targets: tuple[str, str, str]) -> str:
    """Return a part of relations: id, type, target."""
    inner = "".join(
        f'<Relationship Id="{name}" Type="{_OFFICE}/{kind}" Target="{target}"/>'
        for name, kind, target in targets
    )
    return f'<Relationships xmlns="{_RELS}">{inner}</Relationships>'


def paragraph(text: str, style: str = "") -> str:
    """Return a paragraph of one run."""
    props = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    return f"<w:p>{props}{run(text)}</w:p>"


def run(text: str, props: str = "") -> str:
    """Return a run of text."""
    return f'<w:r><w:rPr>{props}</w:rPr><w:t xml:space="preserve">{text}</w:t></w:r>'


def table(*rows: tuple[str, ...]) -> str:
    """Return a table."""
    return (
        "<w:tbl>"
        + "".join(
            "<w:tr>" + "".join(f"<w:tc>{paragraph(cell)}</w:tc>" for cell in row) + "</w:tr>"
            for row in rows
        )
        + "</w:tbl>"
    )


def inserted(text: str) -> str:
    """Return a run that a tracked change inserts."""
    return f'<w:ins w:id="1" w:author="A" w:date="2024-01-01T00:00:00Z">{run(text)}</w:ins>'


def deleted(text: str) -> str:
    """Return a run that a tracked change deletes."""
    gone = f'<w:r><w:delText xml:space="preserve">{text}</w:delText></w:r>'
    return f'<w:del w:id="2" w:author="A" w:date="2024-01-01T00:00:00Z">{gone}</w:del>'


FOOTNOTE_MARK = '<w:r><w:footnoteReference w:id="2"/></w:r>'


def picture(relation: str) -> str:
    """Return a run with an inline picture."""
    return (
        '<w:r><w:drawing><wp:inline xmlns:wp="http://schemas.openxmlformats.org/drawingml/2006/'
        'wordprocessingDrawing"><wp:extent cx="952500" cy="952500"/>'
        '<wp:docPr id="1" name="p" descr="a red square"/>'
        '<a:graphic xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main">'
        '<a:graphicData uri="http://schemas.openxmlformats.org/drawingml/2006/picture">'
        '<pic:pic xmlns:pic="http://schemas.openxmlformats.org/drawingml/2006/picture">'
        f'<pic:blipFill><a:blip r:embed="{relation}"/></pic:blipFill></pic:pic>'
        "</a:graphicData></a:graphic></wp:inline></w:drawing></w:r>"
    )


def docx(body: str, *, footnote: str = "", image: bytes = b"") -> bytes:
    """Return a DOCX of a body; a footnote has the id 2, an image the relation `rImage`."""
    related = [("rStyles", "styles", "styles.xml")]
    parts: dict[str, str | bytes] = {
        "[Content_Types].xml": (
            f'<Types xmlns="{_TYPES}"><Default Extension="xml" ContentType="application/xml"/>'
            '<Default Extension="png" ContentType="image/png"/>'
            '<Default Extension="rels" ContentType='
            '"application/vnd.openxmlformats-package.relationships+xml"/>'
            f'<Override PartName="/word/document.xml" ContentType="{_WORD}.document.main+xml"/>'
            "</Types>"
        ),
        "_rels/.rels": relations(("r1", "officeDocument", "word/document.xml")),
        "word/styles.xml": (
            f'<w:styles {_W}><w:style w:type="paragraph" w:styleId="Heading1">'
            '<w:name w:val="heading 1"/></w:style></w:styles>'
        ),
        "word/document.xml": f"<w:document {_W} {_R}><w:body>{body}</w:body></w:document>",
    }
    if footnote:
        related.append(("rNotes", "footnotes", "footnotes.xml"))
        parts["word/footnotes.xml"] = (
            f'<w:footnotes {_W}><w:footnote w:id="2">{paragraph(footnote)}</w:footnote>'
            "</w:footnotes>"
        )
    if image:
        related.append(("rImage", "image", "media/image1.png"))
        parts["word/media/image1.png"] = image
    parts["word/_rels/document.xml.rels"] = relations(*related)
    return zipped(parts)
