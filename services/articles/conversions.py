"""Conversions of documents in worker processes, and the numbers of their errors."""

from collections.abc import Awaitable, Mapping
from typing import Protocol, TypeVar

from gateway.articles.v1 import articles_pb2 as wire
from gateway.errors.v1 import errors_pb2
from services.articles.errors import NOT_INSTALLED, SCHEMA, failure
from services.articles.tree.document import Document
from services.common.errors import GatewayError
from services.common.extras import how_to_add
from services.media.conversion.pandoc import has_styles, pandoc_path, style_path
from services.media.conversion.parts import EmbeddedFile, PandocOutput, Source

MAX_STYLE_NAME = 100  # characters

_NAMES: Mapping[int, str] = {
    value: name.removeprefix("DOCUMENT_FORMAT_").lower().replace("_", "-")
    for name, value in wire.DocumentFormat.items()
}

T = TypeVar("T")


def format_name(value: int) -> str:
    """Return the name of a format."""
    return _NAMES.get(value, "")


class DocumentConverter(Protocol):
    """Conversions of documents, whose errors have no numbers; see `PooledConverter`."""

    async def pandoc(
        self,
        content: bytes,
        *,
        reader: str,
        writer: str,
        is_standalone: bool = False,
        numbers_sections: bool = False,
        style: str = "",
    ) -> PandocOutput:
        """Return a document in another format of pandoc's."""
        ...

    async def typeset(self, content: bytes, *, is_typst: bool) -> PandocOutput:
        """Return a document as PDF: an archive with the markup of Typst, or HTML."""
        ...

    async def embedded_files(self, source: Source) -> tuple[EmbeddedFile, ...]:
        """Return the pictures in a DOCX."""
        ...


async def converted(conversion: Awaitable[T], pointer: str) -> T:
    """Return the result of a conversion.

    Raises:
        GatewayError: 50101, a library is not installed; 40003 at `pointer`, the document cannot be
            converted within the limits; unavailable.
    """
    try:
        return await conversion
    except GatewayError as error:
        if error.reason == errors_pb2.REASON_UNSUPPORTED:
            raise failure(NOT_INSTALLED, pointer, error.message) from None
        if error.reason == errors_pb2.REASON_INVALID_REQUEST:
            raise failure(SCHEMA, pointer, error.message) from None
        raise


def has_pandoc() -> bool:
    """Return whether pandoc is installed."""
    return pandoc_path() is not None


def check_pandoc(pointer: str, what: str) -> None:
    """Check that pandoc is installed.

    Raises:
        GatewayError: 50101 at `pointer`; `what` needs it.
    """
    if not (has_pandoc() and has_styles()):
        problem = f"{what} requires pandoc, which the operator can install: {how_to_add('pandoc')}"
        raise failure(NOT_INSTALLED, pointer, problem)


def style_of(document: Document, requested: str) -> str:
    """Return the path of the requested style of citations, or of that of the article; "" for none.

    Raises:
        GatewayError: 40003, there is no style of that name; 50101, pandoc is not installed.
    """
    everywhere = document.style.get("global")
    of_article = everywhere.get("citationStyle") if isinstance(everywhere, dict) else None
    name = requested or str(of_article or "")
    if not name:
        return ""
    check_pandoc("/style", "a style of citations")
    path = style_path(name) if len(name) <= MAX_STYLE_NAME else None
    if path is None:
        problem = (
            f"there is no citation style {name[:MAX_STYLE_NAME]!r}; names are those of "
            "https://www.zotero.org/styles, such as apa, ieee, vancouver, chicago-author-date"
        )
        raise failure(SCHEMA, "/style", problem)
    return path
