"""Fetch URLs as text, for the tool `web_fetch`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from services.common.errors import invalid
from services.common.grpc.authentication import caller_id
from services.common.process.byte_budget import ByteBudget, Charge, request_charge
from services.common.text.mime import HEAD_SIZE, detect_type, is_text_type
from services.inference.tools.domains import domain_of, permits
from services.media.charsets import decode
from services.media.conversion.converter import Converter
from services.media.conversion.parts import Ocr, Source
from services.media.fetching.fetched import Fetched, Fetches

MAX_CHARACTERS = 100_000  # maximum characters of a page's text
_MAX_PAGES = 1_000  # of a document
_HTML = frozenset({"text/html", "application/xhtml+xml"})
_DOCUMENTS = frozenset(
    {
        "application/pdf",
        "application/vnd.openxmlformats-officedocument.presentationml.presentation",
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    }
)


@dataclass(frozen=True, slots=True)
class Page:
    """The text content of a URL.

    Attributes:
        url: after redirects.
        title: may be empty.
        text: Markdown where the page has structure; may be empty.
        mime_type: detected from the content.
        is_cut: whether the text was truncated.
    """

    url: str
    title: str
    text: str
    mime_type: str
    is_cut: bool = False


class Reads(Protocol):
    """Reads web pages, as `Pages` does."""

    async def read(
        self,
        url: str,
        *,
        max_characters: int,
        allowed_domains: Sequence[str],
        blocked_domains: Sequence[str],
    ) -> Page:
        """Return the text of a URL; see `Pages.read`."""
        ...


class Pages:
    """Reads the text of URLs.

    Args:
        fetches: the fetcher.
        converter: converts HTML and documents to text.
        max_fetched: maximum size of the fetched content in bytes.
        budget: limits the bytes that the process holds.
    """

    def __init__(
        self, fetches: Fetches, converter: Converter, max_fetched: int, budget: ByteBudget
    ) -> None:
        self._budget = budget
        self._fetches = fetches
        self._converter = converter
        self._max_fetched = max_fetched

    async def read(
        self,
        url: str,
        *,
        max_characters: int = MAX_CHARACTERS,
        allowed_domains: Sequence[str] = (),
        blocked_domains: Sequence[str] = (),
    ) -> Page:
        """Return the text of a URL, truncated to `max_characters`.

        Raises:
            GatewayError: invalid_request, if a domain is malformed, the URL or a redirect is
                outside of the allowed domains, or the content has an unsupported format; see
                `Fetches.fetch` and `Converter`.
        """
        allowed = [domain_of(rule) for rule in allowed_domains]
        blocked = [domain_of(rule) for rule in blocked_domains]
        if not permits(url, allowed, blocked):
            raise invalid("", "the domain of the URL is not allowed")
        with Charge(self._budget, caller_id(), request_charge.get()) as charge:
            fetched = await self._fetches.fetch(
                url, at_most=self._max_fetched, admit=charge.acquire
            )
            if not permits(fetched.url, allowed, blocked):
                raise invalid("", "the URL redirects to a domain that is not allowed")
            kind = detect_type(fetched.content[:HEAD_SIZE], fetched.mime_type, fetched.name)
            title, text = await self._text(fetched, kind)
        is_cut = len(text) > max_characters
        return Page(fetched.url, title, text[:max_characters], kind, is_cut)

    async def _text(self, fetched: Fetched, kind: str) -> tuple[str, str]:
        """Return the title and the text of a fetched document."""
        if not fetched.content:
            return "", ""
        if kind in _HTML:
            charset = f"; charset={fetched.charset}" if fetched.charset else ""
            source = Source(fetched.content, kind + charset, fetched.name)
            page = await self._converter.web_page(source, url=fetched.url)
            return page.title, page.text
        source = Source(fetched.content, kind, fetched.name)
        if is_text_type(kind):
            text = decode(fetched.content, fetched.charset)
            if text is not None:
                return fetched.name, text
        elif kind not in _DOCUMENTS:
            raise invalid(
                "",
                f"the content of the URL is {kind}; supported are HTML, text, PDF, DOCX, PPTX "
                "and XLSX",
            )
        pages = await self._converter.pages_as_text(source, max_pages=_MAX_PAGES, ocr=Ocr.AUTO)
        if len(pages) == 1:
            return fetched.name, pages[0].text
        return fetched.name, "\n\n".join(f"[Page {page.number}]\n{page.text}" for page in pages)
