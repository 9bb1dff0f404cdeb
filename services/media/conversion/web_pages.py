"""Extract the main text of web pages. Runs in worker processes."""

import logging
import re
from urllib.parse import urljoin

from lxml import etree
from lxml.html import HtmlElement, HTMLParser, document_fromstring

from services.common.process.imports import import_with_stand_in
from services.common.text.texts import cut
from services.media.charsets import decode
from services.media.conversion.charsets import guess
from services.media.conversion.errors import ConversionError
from services.media.conversion.limits import MAX_COMPARISONS, MAX_PAGE_TAGS, MAX_SPAN
from services.media.conversion.parts import Source, WebPage
from services.media.conversion.visible import drop_unseen

# Babel, of 33 MB, is for filters of crawlers alone; installations from a lock file lack it.
trafilatura = import_with_stand_in("trafilatura", "babel", "Locale", "UnknownLocaleError")

# This logger outputs parts of pages.
logging.getLogger("trafilatura").setLevel(logging.CRITICAL)

_MAX_TITLE = 300
# Browsers look for a charset in the first 1024 bytes.
_META_WITHIN = 4_096
_META = re.compile(
    rb"<meta[^<>]{0,512}?charset\s*=\s*(?:[\"']\s*)?([A-Za-z0-9_:.-]{1,40})", re.IGNORECASE
)
_PARAMETER = re.compile(r";\s*charset\s*=\s*\"?([A-Za-z0-9_:.+-]{1,40})", re.IGNORECASE)
# Bytes from which the charset is guessed.
_GUESSED_FROM = 65_536
_LINKED = ("http://", "https://")


def read_page(source: Source, url: str) -> WebPage:
    """Return the main text of an HTML page; `url` is its address.

    Its charset is determined by a byte order mark, the `charset` parameter of the media type or a
    `meta` element; else it is guessed.

    Raises:
        ConversionError: it cannot be read as HTML.
    """
    text = _text(source)
    if not text.strip():
        return WebPage("", "")
    _check(text)
    parser = HTMLParser(encoding="utf-8")
    try:
        page = document_fromstring(text.encode(errors="replace"), parser=parser)
        title = _title(page)
        base = _joined(url, str(page.xpath("string(//base/@href)")).strip())
        drop_unseen(page)
        _fit(page, base)
        return WebPage(title, _main_text(page, url))
    except (etree.LxmlError, ValueError, RecursionError) as error:
        raise ConversionError("the page is not valid HTML") from error


def _check(text: str) -> None:
    """Check that a page can be parsed within seconds: parsers compare each attribute with all."""
    if text.count("<") > MAX_PAGE_TAGS:
        raise ConversionError(f"the page has more than {MAX_PAGE_TAGS:,} tags")
    tags = (tag.partition(">")[0] for tag in text.split("<"))
    if sum(len(tag.split()) ** 2 for tag in tags) > MAX_COMPARISONS:
        raise ConversionError("the page has tags with too many attributes")


def _text(source: Source) -> str:
    content = source.content
    charsets = [match[1] for match in _PARAMETER.finditer(source.mime_type)]
    # Read as ASCII to find the declaration.
    charsets += [match[1].decode() for match in _META.finditer(content[:_META_WITHIN])]
    text = decode(content, *(name for name in charsets if not name.lower().startswith("utf-16")))
    if text is None:
        charset = guess(content[:_GUESSED_FROM]) or "cp1252"
        text = content.decode(charset, errors="replace")
    return text


def _title(page: HtmlElement) -> str:
    for path in (
        "string(//head/title)",
        "string(//meta[@property='og:title']/@content)",
        "string(//h1)",
    ):
        if title := " ".join(str(page.xpath(path)).split()):
            return cut(title, _MAX_TITLE)
    return ""


def _joined(base: str, reference: str) -> str:
    try:
        return urljoin(base, reference)
    except ValueError:
        return ""


def _fit(page: HtmlElement, base: str) -> None:
    """Prepare a page for conversion: keep all text, and make links absolute."""
    for link in list(page.iter("a")):
        href = link.get("href", "").strip()
        # Links within the page cannot be fetched.
        address = _joined(base, href) if href and not href.startswith("#") else ""
        if address.startswith(_LINKED):
            link.set("href", address)
        else:
            link.drop_tag()
    for cell in page.iter("td", "th"):
        for name in ("colspan", "rowspan"):
            span = cell.get(name)
            if span is not None and not (
                span.isdecimal() and len(span) < 4 and int(span) <= MAX_SPAN
            ):
                del cell.attrib[name]
    for block in list(page.iter("pre")):
        # Only code keeps its line breaks, and only if it contains no markup.
        code = block.makeelement("code")
        code.text, block.text = block.text_content(), None
        block[:] = [code]


def _main_text(page: HtmlElement, url: str) -> str:
    body = page.find("body")
    visible_text = " ".join((page if body is None else body).text_content().split())
    if not visible_text:
        return ""
    text = trafilatura.extract(
        page,
        url=url,
        output_format="markdown",
        favor_recall=True,
        include_comments=False,
        include_formatting=True,
        include_links=True,
        include_tables=True,
    )
    # Fall back to the whole text if no main text is found.
    return text or visible_text
