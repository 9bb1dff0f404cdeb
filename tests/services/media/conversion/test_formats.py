"""Which format a document has, and text of every encoding."""

import pytest

from services.media.conversion import plain_text
from services.media.conversion.errors import ConversionError
from services.media.conversion.formats import DocumentFormat, detect
from tests.grid import each_row
from tests.services.media.conversion import office, papers

PDF = papers.pdf("x")
ZIP = office.zipped({"a.txt": "a"})


def refusal(content: bytes) -> str:
    with pytest.raises(ConversionError) as caught:
        detect(content)
    return str(caught.value)


@each_row(
    ("content", "expected"),
    [
        (PDF, DocumentFormat.PDF),
        (b"\xef\xbb\xbf\r\n" + PDF, DocumentFormat.PDF),
        (office.docx(office.paragraph("x")), DocumentFormat.DOCX),
        (office.zipped({"ppt/presentation.xml": ""}), DocumentFormat.PPTX),
        (office.zipped({"xl/workbook.xml": ""}), DocumentFormat.XLSX),
        (b"", DocumentFormat.TEXT),
        (b"a text that explains %PDF-1.7 headers", DocumentFormat.TEXT),
        (b'{"json": true}', DocumentFormat.TEXT),
    ],
)
def test_the_content_says_what_it_is(content, expected):
    assert detect(content) is expected


@each_row(
    ("content", "words"),
    [
        (PDF + ZIP, "both a PDF and a ZIP archive"),
        (ZIP[:30] + PDF + ZIP[30:], "both a ZIP archive and a PDF"),
        (b"<html>" + PDF, "other data before the PDF"),
        (ZIP, "not a document"),
        (ZIP[:40], "damaged"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), "before 2007"),
        (
            b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + "EncryptedPackage".encode("utf-16-le"),
            "encrypted",
        ),
        (b"\x89PNG\r\n\x1a\n", "an image"),
        (b"ID3", "a recording"),
        (b"{\\rtf1", "RTF"),
    ],
)
def test_what_is_no_document_is_named(content, words):
    assert words in refusal(content)


def test_an_encrypted_archive_is_refused():
    content = bytearray(office.zipped({"word/document.xml": "x"}))
    content[content.rindex(b"PK\x01\x02") + 8] |= 1
    assert "encrypted" in refusal(bytes(content))


GERMAN = "Die Fischer beschwerten sich über Zölle, während Möwen über den Kisten kreisten. " * 5


@each_row(
    ("content", "mime_type", "expected"),
    [
        (GERMAN.encode(), "", GERMAN),
        (GERMAN.encode("utf-8-sig"), "", GERMAN),
        (GERMAN.encode("utf-16"), "", GERMAN),
        (GERMAN.encode("cp1252"), "", GERMAN),
        ("日本語".encode("shift_jis"), "text/plain; charset=Shift_JIS", "日本語"),
        ((papers.JAPANESE * 9).encode("euc_jp"), "text/plain", papers.JAPANESE * 9),
        (b"a,b\r\n1,2\r", "text/csv; charset=nonsense", "a,b\n1,2\n"),
        (b"", "", ""),
    ],
)
def test_text_is_decoded(content, mime_type, expected):
    assert plain_text.decode(content, mime_type) == expected


@pytest.mark.parametrize(
    "content", [bytes(range(256)) * 4, b"text\x00with zeros", b"\x7fELF\x02\x01"]
)
def test_what_is_no_text_is_refused(content):
    with pytest.raises(ConversionError, match="neither text nor"):
        plain_text.decode(content, "text/plain")
