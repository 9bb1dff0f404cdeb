"""The interface of conversions."""

from collections.abc import Mapping
from typing import Protocol

from services.media.conversion.parts import (
    Film,
    ImageFacts,
    Ocr,
    PageText,
    Picture,
    Source,
    WebPage,
)

# Version of each conversion, part of cache keys. Increment it whenever a change of the code or of a
# library changes results.
VERSIONS: Mapping[str, int] = {
    "pages_as_text": 2,
    "pages_as_pictures": 1,
    "page_picture": 1,
    "docx_as_pdf": 1,
    "image_facts": 1,
    "transcript": 1,
    "film": 1,
    "web_page": 2,
}


class Converter(Protocol):
    """Converts media in worker processes.

    Every method raises GatewayError, whose message contains no path of the request (the caller adds
    it): invalid_request if the medium is damaged, encrypted, of an unsupported format, or exceeds a
    limit (pages, pixels, unpacked bytes, time, memory); unsupported if the library is not
    installed; unavailable if too many conversions are waiting or the process was killed from
    outside.
    """

    async def pages_as_text(
        self, source: Source, *, max_pages: int, ocr: Ocr
    ) -> tuple[PageText, ...]:
        """Return the text of a PDF, DOCX, PPTX or XLSX, or of a text file, page by page."""
        ...

    async def pages_as_pictures(self, source: Source, *, max_pages: int) -> tuple[Picture, ...]:
        """Return a picture of each page of a PDF or DOCX."""
        ...

    async def image_facts(self, source: Source) -> ImageFacts:
        """Return facts about an image that need no model."""
        ...

    async def transcript(self, source: Source, *, language: str) -> str:
        """Return the transcript of a recording, by the embedded engine; `language` may be empty."""
        ...

    async def film(self, source: Source, *, frames: int) -> Film:
        """Return `frames` frames of a film, and its sound."""
        ...

    async def web_page(self, source: Source, *, url: str) -> WebPage:
        """Return the main text of an HTML page; `url` is its address."""
        ...
