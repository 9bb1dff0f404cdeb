"""What converts media and fetches addresses in this process: the one place that chooses."""

from typing import NoReturn

from gateway.errors.v1 import errors_pb2
from services.common.errors import GatewayError
from services.common.settings import Settings
from services.inference.conversion.converter import Converter
from services.inference.conversion.parts import (
    Film,
    ImageFacts,
    Ocr,
    PageText,
    Picture,
    Source,
    WebPage,
)
from services.inference.fetching.fetched import Fetched, Fetches


def open_converter(settings: Settings) -> Converter:
    """Return what converts media."""
    return Absent()


def open_fetcher(settings: Settings) -> Fetches:
    """Return what fetches addresses that callers name."""
    return Absent()


class Absent:
    """Converts and fetches nothing, and says so."""

    async def pages_as_text(
        self, source: Source, *, max_pages: int, ocr: Ocr
    ) -> tuple[PageText, ...]:
        """Refuse."""
        _refuse()

    async def pages_as_pictures(self, source: Source, *, max_pages: int) -> tuple[Picture, ...]:
        """Refuse."""
        _refuse()

    async def image_facts(self, source: Source) -> ImageFacts:
        """Refuse."""
        _refuse()

    async def transcript(self, source: Source, *, language: str) -> str:
        """Refuse."""
        _refuse()

    async def film(self, source: Source, *, frames: int) -> Film:
        """Refuse."""
        _refuse()

    async def web_page(self, source: Source, *, url: str) -> WebPage:
        """Refuse."""
        _refuse()

    async def fetch(self, url: str, *, at_most: int) -> Fetched:
        """Refuse."""
        _refuse()


def _refuse() -> NoReturn:
    raise GatewayError(
        errors_pb2.REASON_UNSUPPORTED,
        "this gateway was installed without what converts media; install llm-gateway[media]",
    )
