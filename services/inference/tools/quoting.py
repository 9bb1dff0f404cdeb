"""Mark web content and passages of files as data for a model. Pure."""

from collections.abc import Iterable
from typing import Protocol

from services.inference.request.quoting import as_data


class Quotable(Protocol):
    """Web content that can be quoted."""

    @property
    def url(self) -> str:
        """The URL."""

    @property
    def title(self) -> str:
        """The title; may be empty."""

    @property
    def text(self) -> str:
        """The text, or an extract of it; may be empty."""


class QuotablePage(Quotable, Protocol):
    """A web page, such as `pages.Page` or the proto `WebPage`."""

    @property
    def is_cut(self) -> bool:
        """Whether the text was truncated."""


class QuotableResult(Quotable, Protocol):
    """A search result, such as `search.SearchResult` or its proto."""

    @property
    def age(self) -> str:
        """The age; may be empty."""


def quoted_page(page: QuotablePage) -> str:
    """Return a page as the result of a tool."""
    lines = [f"URL: {page.url}"]
    if page.title:
        lines.append(f"Title: {page.title}")
    if page.is_cut:
        lines.append(f"(the first {len(page.text):,} characters; the page has more)")
    text = page.text or "(the page has no text; its content may be made by scripts)"
    return as_data("a web page", "\n".join((*lines, "", text)))


class QuotableFile(Protocol):
    """A passage of a file, such as the proto `FileResult`."""

    @property
    def filename(self) -> str:
        """The name of the file."""

    @property
    def text(self) -> str:
        """The passage."""


def quoted_files(results: Iterable[QuotableFile]) -> str:
    """Return passages of files as the result of a tool."""
    parts = [
        f"{number}. File: {result.filename}\n{result.text}"
        for number, result in enumerate(results, 1)
    ]
    if not parts:
        return "The search found nothing in the files."
    return as_data("passages of files", "\n\n".join(parts))


def quoted_results(results: Iterable[QuotableResult]) -> str:
    """Return search results as the result of a tool."""
    parts = [
        "\n".join(
            line
            for line in (
                f"{number}. {result.title or result.url}",
                f"URL: {result.url}",
                f"Age: {result.age}" if result.age else "",
                result.text,
            )
            if line
        )
        for number, result in enumerate(results, 1)
    ]
    if not parts:
        return "The search found nothing."
    return as_data("results of a web search", "\n\n".join(parts))
