"""What can be asked of conversions."""

from collections.abc import Mapping
from typing import Protocol

from services.inference.conversion.parts import (
    Film,
    ImageFacts,
    Ocr,
    PageText,
    Picture,
    Source,
    WebPage,
)

# The version of each conversion, for the keys of caches: it rises with every change, of the code
# or of a library, that makes another result of the same medium.
VERSIONS: Mapping[str, int] = {
    "pages_as_text": 1,
    "pages_as_pictures": 1,
    "image_facts": 1,
    "transcript": 1,
    "film": 1,
    "web_page": 1,
}


class Converter(Protocol):
    """Converts media, in processes of its own.

    Every method raises GatewayError, whose message names no path of the request (the caller
    adds it): invalid_request, when the medium is damaged, encrypted, of a format that nobody
    reads or over a bound (pages, pixels, unpacked bytes, time, memory); unsupported, when the
    library for it is not installed; unavailable, when too many conversions wait or the process
    was ended from outside.
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
        """Return what is known of an image without a model."""
        ...

    async def transcript(self, source: Source, *, language: str) -> str:
        """Return what is said in a recording, by the embedded engine; `language` may be empty."""
        ...

    async def film(self, source: Source, *, frames: int) -> Film:
        """Return so many frames of a film, and its sound."""
        ...

    async def web_page(self, source: Source, *, url: str) -> WebPage:
        """Return the main text of an HTML page that came from an address."""
        ...
