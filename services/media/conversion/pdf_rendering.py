"""Render pages of a PDF within bounds of what they draw.

pdfium draws whatever a page contains, however often: a form of few bytes may contain other forms,
and a picture is unpacked each time that it is drawn. Both are counted before a page is rendered.
Its own size needs no bound, however large it says that it is: every page is scaled to a number of
pixels that is known beforehand.
"""

import ctypes
from collections.abc import Callable

import pypdfium2 as pdfium
from PIL import Image
from pypdfium2 import raw

from services.media.conversion.errors import ConversionError
from services.media.conversion.limits import (
    MAX_DRAWN_PIXELS,
    MAX_PICTURE_PIXELS,
    MAX_RENDERED_OBJECTS,
)

# pdfium does not draw forms that are nested more deeply.
_MAX_DEPTH = 40


class PdfRenderer:
    """Renders pages of one document, which may draw so much together."""

    def __init__(self) -> None:
        self._objects_left = MAX_RENDERED_OBJECTS
        self._pixels_left = MAX_DRAWN_PIXELS

    def render(self, page: pdfium.PdfPage, scale: float, longest: int) -> Image.Image:
        """Render a page at `scale` pixels per point, with sides of at most `longest` pixels.

        Raises:
            ConversionError: the pages draw more than is rendered of a document.
        """
        self._count(
            raw.FPDFPage_CountObjects(page), lambda index: raw.FPDFPage_GetObject(page, index), 0
        )
        for index in range(raw.FPDFPage_GetAnnotCount(page)):
            self._count_annotation(page, index)
        width, height = page.get_size()
        fitting = longest / max(float(width), float(height), 1.0)
        image: Image.Image = page.render(scale=min(scale, fitting)).to_pil()
        return image.convert("RGB")

    def _count(
        self, count: int, object_at: Callable[[int], raw.FPDF_PAGEOBJECT], depth: int
    ) -> None:
        """Count objects of a page, a form or an annotation, and the pixels of pictures."""
        self._objects_left -= count
        if self._objects_left < 0:
            raise ConversionError(
                f"the PDF draws more than {MAX_RENDERED_OBJECTS:,} objects; send fewer pages"
            )
        for index in range(count):
            drawn = object_at(index)
            match raw.FPDFPageObj_GetType(drawn):
                case raw.FPDF_PAGEOBJ_IMAGE:
                    self._count_pixels(drawn)
                case raw.FPDF_PAGEOBJ_FORM if depth < _MAX_DEPTH:
                    self._count_form(drawn, depth + 1)

    def _count_annotation(self, page: pdfium.PdfPage, number: int) -> None:
        annotation = raw.FPDFPage_GetAnnot(page, number)
        try:
            self._count(
                max(0, raw.FPDFAnnot_GetObjectCount(annotation)),
                lambda index: raw.FPDFAnnot_GetObject(annotation, index),
                0,
            )
        finally:
            raw.FPDFPage_CloseAnnot(annotation)

    def _count_form(self, form: raw.FPDF_PAGEOBJECT, depth: int) -> None:
        self._count(
            max(0, raw.FPDFFormObj_CountObjects(form)),
            lambda index: raw.FPDFFormObj_GetObject(form, index),
            depth,
        )

    def _count_pixels(self, picture: raw.FPDF_PAGEOBJECT) -> None:
        width, height = ctypes.c_uint(), ctypes.c_uint()
        if not raw.FPDFImageObj_GetImagePixelSize(picture, width, height):
            return  # damaged: pdfium does not draw it
        pixels = width.value * height.value
        if pixels > MAX_PICTURE_PIXELS:
            raise ConversionError(
                f"the PDF has a picture of {width.value:,} by {height.value:,} pixels; at most "
                f"{MAX_PICTURE_PIXELS // 1_000_000} megapixels are converted"
            )
        self._pixels_left -= pixels
        if self._pixels_left < 0:
            raise ConversionError(
                "the PDF draws pictures of more than "
                f"{MAX_DRAWN_PIXELS // 1_000_000:,} megapixels together; send fewer pages"
            )
