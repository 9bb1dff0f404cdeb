"""Documents as PDF without glyphs in the fonts: on any machine, as its own fonts are left out."""

from functools import partial

import pypdfium2 as pdfium
import pytest
import typst

from services.media.conversion.errors import ConversionError
from services.media.conversion.typeset import docx_as_pdf
from tests.services.media.conversion import office
from tests.services.media.conversion.office import paragraph


@pytest.fixture(autouse=True)
def _own_fonts_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(typst, "compile", partial(typst.compile, ignore_system_fonts=True))


def text_of(content: bytes) -> str:
    document = pdfium.PdfDocument(docx_as_pdf(content))
    return str(document[0].get_textpage().get_text_bounded())


def test_symbols_without_a_font_are_named() -> None:
    content = office.docx(paragraph("Thanks \N{PARTY POPPER}\N{VARIATION SELECTOR-16}"))
    assert "Thanks [party popper]" in text_of(content)


def test_letters_without_a_font_are_reported() -> None:
    with pytest.raises(ConversionError, match="no font"):
        docx_as_pdf(office.docx(paragraph("\N{CUNEIFORM SIGN A}")))
