"""Conversions and fetches without libraries and networks, for tests of what decides on them."""

import hashlib
from collections.abc import Mapping

from prometheus_client import CollectorRegistry

from services.common.errors import GatewayError, invalid
from services.common.process.byte_budget import Admit
from services.inference.adaptation.session import MediaAdaptation
from services.inference.metrics import InferenceMetrics
from services.inference.usage.metering import Metering
from services.media.conversion.cache import Cache
from services.media.conversion.parts import (
    Film,
    ImageFacts,
    Ocr,
    PageText,
    Picture,
    Source,
    WebPage,
)
from services.media.fetching.fetched import Fetched

DAMAGED = b"damaged"


class FakeConverter:
    """Converts documents whose pages are parted by form feeds; `asked` tells what it did."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def pages_as_text(
        self, source: Source, *, max_pages: int, ocr: Ocr
    ) -> tuple[PageText, ...]:
        self.asked.append(f"text {ocr.value}")
        return tuple(
            PageText(number, page.decode("cp1252"), ocr is Ocr.ALWAYS)
            for number, page in enumerate(_pages(source, max_pages), 1)
        )

    async def pages_as_pictures(self, source: Source, *, max_pages: int) -> tuple[Picture, ...]:
        self.asked.append("pictures")
        return tuple(
            Picture(number, picture(page), "image/png")
            for number, page in enumerate(_pages(source, max_pages), 1)
        )

    async def image_facts(self, source: Source) -> ImageFacts:
        self.asked.append("facts")
        if DAMAGED in source.content:
            raise invalid("", "the image is damaged")
        return ImageFacts(7, 5, "PNG", ("red", "white"), "EXIT\nthis way")

    async def transcript(self, source: Source, *, language: str) -> str:
        self.asked.append(f"transcript {language}".strip())
        return f"{len(source.content)} bytes of speech"

    async def film(self, source: Source, *, frames: int) -> Film:
        self.asked.append(f"film {frames}")
        if DAMAGED in source.content:
            raise invalid("", "the film is damaged")
        taken = tuple(
            Picture(number, picture(source.content + b" %d" % number), "image/png", number - 0.5)
            for number in range(1, frames + 1)
        )
        sound = (
            None
            if b"silent" in source.content
            else b"RIFF" + hashlib.sha256(source.content).digest()[:5]
        )
        return Film(float(frames), taken, sound)

    async def web_page(self, source: Source, *, url: str) -> WebPage:
        raise NotImplementedError


class FakeFetcher:
    """Brings what a mapping has under addresses; `asked` tells which were asked for."""

    def __init__(self, held: Mapping[str, tuple[str, bytes]] | None = None) -> None:
        self.held = dict(held or {})
        self.asked: list[str] = []

    async def fetch(self, url: str, *, at_most: int, admit: Admit | None = None) -> Fetched:
        self.asked.append(url)
        if url not in self.held:
            raise invalid("", "the address is not public")
        mime_type, content = self.held[url]
        if len(content) > at_most:
            raise invalid("", f"the address holds more than {at_most:,} bytes")
        if admit is not None:
            await admit(len(content))
        return Fetched(url, content, mime_type, "", url.rpartition("/")[2])


class FreeLease:
    """A lease that nobody else wants."""

    async def take(self) -> bool:
        return True

    async def release(self) -> None:
        pass


class InMemoryStore:
    """A store of conversions in memory."""

    def __init__(self) -> None:
        self.held: dict[str, bytes] = {}

    async def get(self, key: str, admit: Admit | None = None) -> bytes | None:
        return self.held.get(key)

    async def put(self, key: str, content: bytes) -> None:
        self.held[key] = content


class FailingStore:
    """A store that does not work."""

    def __init__(self, error: GatewayError) -> None:
        self.error = error

    async def get(self, key: str, admit: Admit | None = None) -> bytes | None:
        raise self.error

    async def put(self, key: str, content: bytes) -> None:
        raise self.error


def adaptation(metrics: InferenceMetrics | None = None) -> MediaAdaptation:
    """Return what converts as `FakeConverter` does."""
    metrics = metrics or InferenceMetrics(CollectorRegistry())
    return MediaAdaptation(
        FakeConverter(),
        FakeFetcher(),
        Cache(InMemoryStore(), metrics.adaptation_cache),
        metrics,
        Metering(),
    )


def picture(content: bytes) -> bytes:
    """Return the beginning of a PNG that is another for other content."""
    size = 1 + hashlib.sha256(content).digest()[0]
    return b"\x89PNG\r\n\x1a\n" + (13).to_bytes(4, "big") + b"IHDR" + size.to_bytes(4, "big") * 2


def _pages(source: Source, max_pages: int) -> list[bytes]:
    if DAMAGED in source.content:
        raise invalid("", "the document is damaged")
    pages = source.content.split(b"\f")
    if len(pages) > max_pages:
        raise invalid("", f"the document has {len(pages)} pages, and {max_pages} are taken")
    return pages
