"""Measure what is read of web pages, beside another extractor: `python -m tests.bench.web_pages`.

The pages are those of the tests. Recall is the share of the texts wanted that come through,
noise that of navigation, footers and the like; the time is that of a page, and of a large one.
"""

import time
from collections.abc import Callable

from resiliparse.extract.html2text import extract_plain_text

from services.media.conversion.parts import Source
from services.media.conversion.web_pages import read_page
from tests.services.media.conversion.web import ARTICLE, NOISE, PAGES, document, words

_ROUNDS = 5
_LARGE = 200  # times the text of an article


def ours(html: str) -> str:
    """Return what the gateway reads of a page."""
    return read_page(Source(html.encode(), "text/html"), "https://site.example/").text


def peer(html: str) -> str:
    """Return what Resiliparse reads of it."""
    return str(extract_plain_text(html, main_content=True, alt_texts=False))


def measure(name: str, read: Callable[[str], str]) -> None:
    """Print a line of figures."""
    pages = {title: document(body) for title, (body, _) in PAGES.items()}
    read(pages["an article"])  # loads what is loaded late
    begin = time.perf_counter()
    for _ in range(_ROUNDS):
        texts = {title: words(read(html)) for title, html in pages.items()}
    page_ms = (time.perf_counter() - begin) / _ROUNDS / len(pages) * 1000
    large = document(f"<article><h1>T</h1>{ARTICLE * _LARGE}</article>")
    begin = time.perf_counter()
    read(large)
    large_ms = (time.perf_counter() - begin) * 1000
    # The marks of Markdown are not what is measured.
    plain = {title: text.replace("- ", "").replace("## ", "") for title, text in texts.items()}
    recalls = [
        _unmarked(one) in plain[title] for title, (_, all_of) in PAGES.items() for one in all_of
    ]
    noise = [one in text for text in plain.values() for one in NOISE]
    print(
        f"{name:12} recall {sum(recalls) / len(recalls):.3f}  noise {sum(noise) / len(noise):.3f}  "
        f"{page_ms:.1f} ms a page  {large_ms:.0f} ms for {len(large) // 1000} kB"
    )


def _unmarked(text: str) -> str:
    """Return a text without the marks of Markdown: of a link its words, of a row its cells."""
    text = words(text).replace("## ", "").removeprefix("- ")
    return text.split("](")[0].removeprefix("[").split(" | ")[0]


if __name__ == "__main__":
    measure("gateway", ours)
    measure("resiliparse", peer)
